//! What is validated, and what is said of the connector.

use serde_json::{Value, json};
use tidegate_boilerplate::testing::{Harness, projection, spec};
use tidegate_boilerplate::{
    ConnectorError, ConstraintKind, ErrorKind, JsonType, Projection, ValidateBinding,
    ValidateRequest, ValidateResponse,
};
use webhook_connector::WebhookConnector;

fn validated(resources: &[Value]) -> Result<ValidateResponse, ConnectorError> {
    let binding = |resource: &Value| ValidateBinding {
        collection: "acme/animals".to_owned(),
        resource: resource.clone(),
        key: vec!["/id".to_owned()],
        projections: vec![
            Projection {
                key: true,
                ..projection("id", &[JsonType::Integer])
            },
            Projection {
                pointer: String::new(),
                ..projection("flow_document", &[JsonType::Object])
            },
            projection("name", &[JsonType::String]),
        ],
        backfill: 0,
    };
    let request = ValidateRequest {
        task: "acme/task".to_owned(),
        config: json!({"address": "https://hooks.example.com/base"}),
        bindings: resources.iter().map(binding).collect(),
        last: None,
    };
    Harness::of(WebhookConnector, spec(json!({}), vec![])).validate(&request)
}

#[test]
fn the_whole_document_is_sent_unless_the_catalog_says_otherwise() {
    use ConstraintKind::{Optional, Recommended};
    let response = validated(&[json!({"path": "/animals"})]).unwrap();
    let binding = &response.bindings[0];
    assert_eq!(binding.resource_path, ["/animals"]);
    assert!(binding.delta_updates, "a server loads nothing");
    let kinds = binding.constraints.iter();
    let kinds: Vec<_> = kinds.map(|(field, it)| (&**field, it.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("flow_document", Recommended),
            ("id", Recommended),
            ("name", Optional)
        ]
    );
}

#[test]
fn bindings_that_would_send_to_one_place_are_refused() {
    for second in ["/a", "/b", "/a?x=1"] {
        let paths = [json!({"path": "/a"}), json!({"path": second})];
        let answer = validated(&paths);
        assert_eq!(answer.is_ok(), second != "/a", "{answer:?}");
    }
    let error = validated(&[json!({}), json!({"path": ""})]).unwrap_err();
    assert_eq!((error.kind, error.binding), (ErrorKind::Config, Some(1)));
    let error = validated(&[json!({"path": "/a b"})]).unwrap_err();
    assert_eq!((error.kind, error.binding), (ErrorKind::Config, Some(0)));
}

#[test]
fn it_wants_its_address_and_marks_what_is_secret() {
    let mut harness = Harness::of(WebhookConnector, spec(json!({}), vec![]));
    let response = harness.spec_response();
    assert_eq!(response.wants.network, ["/address"]);
    assert!(response.wants.directory.is_empty());
    let properties = &response.config_schema["properties"];
    assert_eq!(properties["address"]["secret"], true);
    assert_eq!(
        properties["headers"]["additionalProperties"]["secret"],
        true
    );
}
