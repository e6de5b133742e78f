//! Runs a catalog of a scenario against connectors made of data.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use tidegate_validator::{
    Answers, Built, ComponentRef, ConnectorFault, Diagnostic, Draft, Request, finish, load, plan,
};
use tidegate_wit::message::{
    Constraint, ConstraintKind, JsonType, NameLimits, Spec, SpecResponse, ValidateRequest,
    ValidateResponse, ValidatedBinding,
};

/// Files, and what is known beside them.
pub struct Scenario {
    files: BTreeMap<PathBuf, Vec<u8>>,
    roots: Vec<PathBuf>,
    /// Constraints that a connector returns, by collection and field.
    constraints: Value,
    live: BTreeMap<String, Spec>,
    skip: Option<String>,
    defers: bool,
}

impl Scenario {
    /// Reads `files: {path: text}` and the settings beside it.
    pub fn parse(text: &str) -> Self {
        let value = sections(text);
        let files = value["files"].as_object().expect("a scenario has files");
        let roots = match value["roots"].as_array() {
            Some(roots) => roots
                .iter()
                .map(|it| PathBuf::from(it.as_str().expect("a root is a path")))
                .collect(),
            None => vec![PathBuf::from("flow.yaml")],
        };
        Self {
            files: files
                .iter()
                .map(|(path, text)| {
                    let text = text.as_str().expect("a file is text");
                    (PathBuf::from(path), text.as_bytes().to_vec())
                })
                .collect(),
            roots,
            constraints: value["constraints"].clone(),
            live: serde_json::from_value(value["live"].clone()).unwrap_or_default(),
            skip: value["skip"].as_str().map(str::to_owned),
            defers: value["defers"].as_bool().unwrap_or(false),
        }
    }

    /// Plans until nothing is left to ask, and finishes.
    pub fn run(&self) -> (Draft, Option<Built>, Vec<Diagnostic>) {
        let read = |path: &Path| -> io::Result<Vec<u8>> {
            let found = self.files.get(path).cloned();
            found.ok_or_else(|| io::ErrorKind::NotFound.into())
        };
        let draft = load(&self.roots, &read).with_live(self.live.clone());
        let mut answers = Answers::default();
        let mut rounds = 0;
        loop {
            let requests = plan(&draft, &answers);
            if requests.is_empty() {
                break;
            }
            rounds += 1;
            assert!(rounds <= 2, "specs, then validations");
            for request in requests {
                self.answer(request, &mut answers);
            }
        }
        let (built, diagnostics) = finish(&draft, &answers);
        (draft, built, diagnostics)
    }

    fn answer(&self, request: Request, answers: &mut Answers) {
        match request {
            Request::Spec { component } => {
                let answer = match (&self.skip, spec(&component, self.defers)) {
                    (Some(reason), _) => Err(ConnectorFault::Skipped {
                        reason: reason.clone(),
                    }),
                    (None, Some(spec)) => Ok(spec),
                    (None, None) => Err(ConnectorFault::Unknown {
                        known: NAMES.map(str::to_owned).to_vec(),
                    }),
                };
                answers.specs.insert(component, answer);
            }
            Request::Validate { request, .. } => {
                let answer = self.validate(&request);
                answers.validated.insert(request.task.clone(), answer);
            }
        }
    }

    fn validate(&self, request: &ValidateRequest) -> Result<ValidateResponse, ConnectorFault> {
        let mut bindings = Vec::new();
        for (position, binding) in request.bindings.iter().enumerate() {
            let table = binding.resource["table"].as_str().unwrap_or_default();
            if table == "refused" {
                return Err(ConnectorFault::Refused {
                    message: "there is no place for this table".to_owned(),
                    binding: Some(position),
                });
            }
            let delta_updates = binding.resource["delta_updates"] == json!(true);
            let mut constraints = BTreeMap::new();
            for projection in &binding.projections {
                let scalar = !projection
                    .types
                    .iter()
                    .any(|it| matches!(it, JsonType::Array | JsonType::Object));
                let (kind, reason) = if projection.key {
                    (ConstraintKind::Required, "it is a part of the key")
                } else if projection.pointer.is_empty() && !delta_updates {
                    (ConstraintKind::Required, "reductions need the document")
                } else if projection.types == [JsonType::Null] {
                    (ConstraintKind::Forbidden, "a column of nulls has no type")
                } else if scalar {
                    (ConstraintKind::Recommended, "")
                } else {
                    (ConstraintKind::Optional, "")
                };
                let over = &self.constraints[&binding.collection][&projection.field];
                let constraint = match over {
                    Value::Null => Constraint {
                        kind,
                        reason: reason.to_owned(),
                    },
                    over => serde_json::from_value(over.clone()).expect("a constraint reads"),
                };
                constraints.insert(projection.field.clone(), constraint);
            }
            bindings.push(ValidatedBinding {
                resource_path: vec![table.to_owned()],
                delta_updates,
                constraints,
            });
        }
        Ok(ValidateResponse { bindings })
    }
}

/// Reads `--- path` and what follows as a file, and `key: JSON` before the first of them as a setting.
fn sections(text: &str) -> Value {
    let mut value = serde_json::Map::new();
    let mut files = serde_json::Map::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(path) = line.strip_prefix("--- ") {
            let mut content = String::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("--- ")) {
                content.push_str(line);
                content.push('\n');
            }
            files.insert(path.to_owned(), Value::String(content));
        } else if let Some((key, json)) = line.split_once(": ")
            && !line.starts_with('#')
        {
            let json = serde_json::from_str(json).expect("a setting of a scenario is JSON");
            value.insert(key.to_owned(), json);
        }
    }
    value.insert("files".to_owned(), Value::Object(files));
    Value::Object(value)
}

const NAMES: [&str; 3] = [
    "materialize-plain",
    "materialize-warehouse",
    "materialize-uploads",
];

fn spec(component: &ComponentRef, defers: bool) -> Option<SpecResponse> {
    let name = match component {
        ComponentRef::Name(name) => name.as_str(),
        ComponentRef::Path(path) if path.ends_with("target/sink.wasm") => "materialize-plain",
        ComponentRef::Path(_) => return None,
    };
    let table = json!({
        "type": "object",
        "properties": {
            "table": {"type": "string"},
            "delta_updates": {"type": "boolean"},
        },
        "required": ["table"],
        "additionalProperties": false,
    });
    let (config_schema, field_bytes_max) = match name {
        "materialize-plain" => (
            json!({"type": "object", "properties": {"path": {"type": "string"}, "hardDelete": {"type": "boolean"}}}),
            None,
        ),
        "materialize-warehouse" => (warehouse(), Some(63)),
        "materialize-uploads" => (
            json!({
                "type": "object",
                "properties": {"bucket": {"type": "string"}, "uploadInterval": {"enum": ["1s", "5m", "1h"]}},
                "required": ["bucket"],
            }),
            None,
        ),
        _ => return None,
    };
    Some(SpecResponse {
        config_schema,
        resource_schema: table,
        documentation_url: "https://example.com".to_owned(),
        wants: Default::default(),
        defers_to_schedule: defers,
        hard_delete_pointer: Some("/hardDelete".to_owned()),
        name_limits: NameLimits { field_bytes_max },
    })
}

fn warehouse() -> Value {
    json!({
        "type": "object",
        "properties": {
            "host": {"type": "string", "pattern": "^[^/:]+$"},
            "port": {"type": "integer", "minimum": 1, "maximum": 65535},
            "timestamps": {"type": "string", "enum": ["local", "utc"]},
            "hardDelete": {"type": "boolean"},
            "credentials": {
                "type": "object",
                "discriminator": {"propertyName": "auth"},
                "oneOf": [
                    {
                        "title": "Key",
                        "properties": {
                            "auth": {"const": "jwt"},
                            "key": {"type": "string", "title": "Private key", "secret": true},
                        },
                        "required": ["auth", "key"],
                        "additionalProperties": false,
                    },
                    {
                        "title": "Password",
                        "properties": {
                            "auth": {"const": "password"},
                            "user": {"type": "string"},
                            "password": {"type": "string", "secret": true},
                        },
                        "required": ["auth", "user", "password"],
                        "additionalProperties": false,
                    },
                ],
            },
            "syncSchedule": {
                "type": "object",
                "properties": {
                    "syncFrequency": {
                        "type": "string",
                        "enum": ["0s", "30s", "5m", "15m", "30m", "1h", "2h", "4h"],
                    },
                    "timezone": {"type": "string"},
                    "fastSyncStartTime": {"type": "string"},
                    "fastSyncStopTime": {"type": "string"},
                    "fastSyncEnabledDays": {"type": "string"},
                },
                "additionalProperties": false,
            },
        },
        "required": ["host", "credentials"],
        "additionalProperties": false,
    })
}

/// Returns every scenario, by name.
pub fn all() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let entries = std::fs::read_dir(&root).expect("the scenarios are there");
    let mut all: Vec<_> = entries
        .map(|entry| entry.expect("an entry can be read").path())
        .map(|path| {
            let name = path.file_stem().expect("a file has a name");
            let text = std::fs::read_to_string(&path).expect("a scenario can be read");
            (name.to_string_lossy().into_owned(), text)
        })
        .collect();
    assert!(!all.is_empty());
    all.sort();
    all
}
