use serde_json::{Value, json};
use tidegate_wit::batch::BATCH_BYTES_MAX;
use tidegate_wit::tuple::{self, Element};

use super::*;
use crate::testing::{Harness, binding, document, projection, spec};
use crate::{
    ApplyRequest, ApplyResponse, Authority, ErrorKind, Guarantee, JsonType, NameLimits,
    SpecResponse, ValidateRequest, ValidateResponse, Wants,
};

const INTEGER: &[JsonType] = &[JsonType::Integer];

/// Answers every key with a document of a size; puts off what it is told to.
#[derive(Clone, Debug, Default)]
struct Echo {
    document_bytes: usize,
    put_off: bool,
    paces: bool,
    fails: bool,
}

struct EchoSession {
    echo: Echo,
    waiting: Vec<u32>,
}

impl Connector for Echo {
    type Transactor = EchoSession;

    fn spec(&self) -> SpecResponse {
        let schedule = json!({"syncSchedule": {"type": "object"}});
        SpecResponse {
            config_schema: json!({"properties": if self.paces { schedule } else { json!({}) }}),
            resource_schema: json!({}),
            documentation_url: String::new(),
            wants: Wants::default(),
            defers_to_schedule: true,
            hard_delete_pointer: None,
            name_limits: NameLimits::default(),
        }
    }

    fn validate(&self, _: &ValidateRequest) -> Result<ValidateResponse, ConnectorError> {
        Ok(ValidateResponse {
            bindings: Vec::new(),
        })
    }

    fn apply(&self, _: &ApplyRequest) -> Result<ApplyResponse, ConnectorError> {
        Ok(ApplyResponse {
            actions: Vec::new(),
            patch: None,
        })
    }

    fn open(&self, _: &OpenRequest) -> Result<(Opened, EchoSession), ConnectorError> {
        let opened = Opened {
            authority: Authority::Log,
            guarantee: Guarantee::ExactlyOnce,
            checkpoint: None,
            jitter_key: None,
        };
        let session = EchoSession {
            echo: self.clone(),
            waiting: Vec::new(),
        };
        Ok((opened, session))
    }
}

impl Transactor for EchoSession {
    fn load(&mut self, _: u32, keys: Keys<'_>, loaded: &mut Loaded) -> Result<(), ConnectorError> {
        for key in keys {
            self.waiting.push(key?.ordinal);
        }
        if self.echo.put_off {
            return Ok(());
        }
        self.flush(0, loaded)
    }

    fn flush(&mut self, _: u32, loaded: &mut Loaded) -> Result<(), ConnectorError> {
        let document = vec![b'x'; self.echo.document_bytes];
        for ordinal in self.waiting.drain(..) {
            loaded.push(ordinal, &document);
        }
        Ok(())
    }

    fn store(&mut self, _: u32, _: Stores<'_>) -> Result<(), ConnectorError> {
        if self.echo.fails {
            return Err(ConnectorError::document("too large"));
        }
        Ok(())
    }

    fn start_commit(&mut self, checkpoint: &str) -> Result<Option<Value>, ConnectorError> {
        Ok(Some(json!({"staged": checkpoint})))
    }

    fn acknowledge(&mut self, patches: &[Value], _: bool) -> Result<Option<Value>, ConnectorError> {
        Ok(Some(
            json!({"staged": null, "applied": patches[0]["staged"]}),
        ))
    }
}

fn harness(echo: Echo) -> Harness<Driver<Echo>> {
    let mut delta = binding("log", json!({}), &[("id", INTEGER)], &[]);
    delta.delta_updates = true;
    let bindings = vec![
        binding("animals", json!({}), &[("id", INTEGER)], &[]),
        delta,
    ];
    let mut harness = Harness::of(echo, spec(json!({}), bindings));
    harness.open().unwrap();
    harness
}

fn keys(count: i64) -> Vec<u8> {
    let mut keys = Vec::new();
    for id in 0..count {
        batch::push_row(&mut keys, &tuple::encode(&[Element::Int(id)]));
    }
    keys
}

fn ordinals(answer: &[u8]) -> Vec<u32> {
    batch::loaded(answer).map(|it| it.unwrap().0).collect()
}

#[test]
fn what_does_not_fit_the_answer_is_flushed_in_bounded_batches() {
    for put_off in [false, true] {
        let echo = Echo {
            document_bytes: BATCH_BYTES_MAX / 3,
            put_off,
            ..Echo::default()
        };
        let mut harness = harness(echo);
        let driver = harness.protocol();
        let mut got = ordinals(&driver.load(0, &keys(5)).unwrap());
        assert_eq!(got.is_empty(), put_off);
        got.extend(ordinals(&driver.load(0, &keys(5)).unwrap()));
        loop {
            let answer = driver.flush(0).unwrap();
            if answer.is_empty() {
                break;
            }
            assert!(answer.len() <= BATCH_BYTES_MAX);
            got.extend(ordinals(&answer));
        }
        assert_eq!(got, (0..10).collect::<Vec<_>>(), "ordinals go on");
        driver.start_commit("one").unwrap();
        // The next transaction's loads run ahead, and start anew.
        let mut next = ordinals(&driver.load(0, &keys(2)).unwrap());
        driver.acknowledge(r#"{"patches": [{}]}"#).unwrap();
        next.extend(ordinals(&driver.flush(0).unwrap()));
        assert_eq!(next, [0, 1]);
    }
}

#[test]
fn nothing_is_stored_before_everything_is_flushed() {
    let mut harness = harness(Echo::default());
    let driver = harness.protocol();
    driver.load(0, &keys(1)).unwrap();
    driver.flush(1).unwrap();
    let error = driver.store(0, &[]).unwrap_err();
    assert_eq!(
        error.message,
        "store was called after flush: flush has not returned all loaded documents yet"
    );
}

#[test]
fn calls_that_make_no_sense_are_internal_errors_and_end_the_session() {
    type Make = fn(&mut Driver<Echo>) -> Result<(), ConnectorError>;
    let cases: [(&str, Make); 5] = [
        ("there is no binding 2: the spec has 2", |it| {
            it.load(2, &[]).map(drop)
        }),
        ("delta updates, which are never loaded", |it| {
            it.load(1, &keys(1)).map(drop)
        }),
        ("malformed at byte", |it| it.load(0, &[1, 0, 0]).map(drop)),
        ("acknowledge was called after open", |it| {
            it.acknowledge("{}").map(drop)
        }),
        ("there is no binding 9", |it| it.store(9, &[])),
    ];
    for (want, make) in cases {
        let mut harness = harness(Echo::default());
        let driver = harness.protocol();
        let error = make(driver).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Internal);
        assert!(error.message.contains(want), "{want}: {error}");
        let error = driver.flush(0).unwrap_err();
        assert!(error.message.contains("ended the session"), "{error}");
    }
    let error = Driver::new(Echo::default()).open("{}").unwrap_err();
    assert!(
        error.message.contains("the open-request is malformed"),
        "{error}"
    );
}

#[test]
fn a_connectors_error_gets_the_binding_and_ends_the_session() {
    let mut harness = harness(Echo {
        fails: true,
        ..Echo::default()
    });
    let error = harness
        .transact(&[document(1, json!({"id": 1}))], "one")
        .unwrap_err();
    assert_eq!((error.kind, error.binding), (ErrorKind::Document, Some(1)));
    assert!(harness.start_commit("one").is_err());
}

#[test]
fn patches_reach_the_acknowledgement_and_the_state() {
    let mut harness = harness(Echo::default());
    harness.load_and_store(vec![]).unwrap();
    harness.start_commit("one").unwrap();
    assert_eq!(harness.state, json!({"staged": "one"}));
    harness.open().unwrap();
    harness.recover().unwrap();
    assert_eq!(harness.state, json!({"applied": "one"}));
}

#[test]
fn only_a_config_with_a_schedule_paces() {
    for paces in [false, true] {
        let mut harness = harness(Echo {
            paces,
            ..Echo::default()
        });
        harness.stored_counts = vec![1; 5];
        assert_eq!(harness.open().unwrap().pacing.is_some(), paces);
        assert_eq!(harness.transact(&[], "one").unwrap().pace, paces);
    }
}

#[test]
fn a_projection_of_a_field_escapes_its_name() {
    assert_eq!(projection("a/b~c", INTEGER).pointer, "/a~1b~0c");
}
