//! A server of its own for each test, and a connector that sends to it.

use serde_json::{Value, json};
use tidegate_boilerplate::testing::{Document, Harness, binding, document, spec};
use tidegate_boilerplate::{Driver, JsonType, SpecBinding};
use webhook_connector::WebhookConnector;

use crate::receiver::Receiver;

/// A connector under test.
pub type Webhook = Harness<Driver<WebhookConnector>>;

/// Returns a binding of an integer `id` and a text `name`, whose documents go to a path.
pub fn animals(path: &str) -> SpecBinding {
    let id: &[(&str, &[JsonType])] = &[("id", &[JsonType::Integer])];
    let name: &[(&str, &[JsonType])] = &[("name", &[JsonType::String])];
    let mut animals = binding("acme/animals", json!({"path": path}), id, name);
    animals.resource_path = vec![path.to_owned()];
    animals.delta_updates = true;
    animals
}

/// Returns a connector with one binding and more in its config, opened.
pub fn opened(receiver: &Receiver, more: Value) -> Webhook {
    opened_with(receiver, more, vec![animals("/animals")])
}

/// Returns a connector with bindings and more in its config, opened.
pub fn opened_with(receiver: &Receiver, more: Value, bindings: Vec<SpecBinding>) -> Webhook {
    let mut config = json!({"address": format!("{}/hooks", receiver.url())});
    for (name, value) in more.as_object().into_iter().flatten() {
        config[name] = value.clone();
    }
    let mut harness = Harness::of(WebhookConnector, spec(config, bindings));
    harness.apply().unwrap();
    harness.open().unwrap();
    harness
}

/// Returns an animal.
pub fn animal(id: i64) -> Document {
    document(0, json!({"id": id, "name": "x"}))
}
