//! The OpenAPI document, made from the routes and the protos' descriptors, so
//! that it cannot say anything else than the code does.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use bytes::Bytes;
use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor};
use serde_json::{Map, Value, json};

use super::route::{Endpoint, ROUTES, Route};
use crate::json::POOL;

const PACKAGE: &str = "tidegate.v1";

/// Returns the OpenAPI 3.1 document.
pub fn document() -> Value {
    let mut schemas = Schemas::default();
    schemas.need_named("ErrorResponse");
    let mut paths = Map::new();
    for route in &ROUTES {
        let operation = operation(route, &mut schemas);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tidegate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Messages are those of the gRPC package tidegate.v1 in the JSON mapping of \
                protocol buffers: 64-bit integers are strings, and what has its default is left out. \
                Slashes in names may be written as they are.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
            },
            "schemas": schemas.all(),
        },
    })
}

/// Returns the document's text, which is the same as long as the process runs.
pub(super) fn text() -> Bytes {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(document().to_string()));
    TEXT.clone()
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    if route.rpc.is_empty() {
        return plain(route.endpoint);
    }
    let rpc = rpc(route.rpc);
    let mut operation = json!({
        "operationId": rpc.full_name().trim_start_matches("tidegate.v1."),
        "tags": [rpc.parent_service().name()],
        "description": comment(&rpc.parent_file(), rpc.path()),
        "parameters": parameters(route, &rpc),
        "responses": {
            "200": {"description": "The answer.", "content": content(&rpc, schemas)},
            "default": {
                "description": "An error.",
                "content": {"application/json": {"schema": reference("ErrorResponse")}},
            },
        },
    });
    if route.endpoint == Endpoint::Publish {
        operation["responses"]["422"] = json!({
            "description": "The catalog has errors, and nothing was changed.",
            "content": content(&rpc, schemas),
        });
    }
    match route.endpoint {
        Endpoint::Append => {
            let schema = json!({"type": "string", "description": "JSON documents, one a line."});
            operation["requestBody"] = json!({
                "required": true, "content": {"application/x-ndjson": {"schema": schema}},
            });
        }
        Endpoint::SyncNow | Endpoint::Publish | Endpoint::Validate => {
            let schema = schemas.need(&rpc.input());
            operation["requestBody"] = json!({
                "required": true, "content": {"application/json": {"schema": schema}},
            });
        }
        _ => {}
    }
    operation
}

/// A route that is no gRPC call, and that needs no token.
fn plain(endpoint: Endpoint) -> Value {
    let text = json!({"text/plain": {"schema": {"type": "string"}}});
    let (id, ok, more) = match endpoint {
        Endpoint::Readyz => (
            "Ready",
            "The host takes work.",
            Some("The host does not take work just now."),
        ),
        Endpoint::Healthz => ("Healthy", "The process lives.", None),
        _ => ("OpenApi", "This document.", None),
    };
    let content = match endpoint {
        Endpoint::OpenApi => json!({"application/json": {"schema": {"type": "object"}}}),
        _ => text.clone(),
    };
    let mut operation = json!({
        "operationId": id,
        "security": [],
        "responses": {"200": {"description": ok, "content": content}},
    });
    if let Some(more) = more {
        operation["responses"]["503"] = json!({"description": more, "content": text});
    }
    operation
}

fn rpc(name: &str) -> MethodDescriptor {
    let (service, method) = name.split_once('/').expect("a call has a service");
    let service = POOL.get_service_by_name(&format!("{PACKAGE}.{service}"));
    let service = service.expect("routes name services that there are");
    let found = service.methods().find(|it| it.name() == method);
    found.expect("routes name methods that there are")
}

/// What answers: a message, or a line for each.
fn content(rpc: &MethodDescriptor, schemas: &mut Schemas) -> Value {
    let message = schemas.need(&rpc.output());
    if !rpc.is_server_streaming() {
        return json!({"application/json": {"schema": message}});
    }
    let result = json!({
        "type": "object", "required": ["result"], "properties": {"result": message},
    });
    let schema = json!({
        "description": "Each line.", "oneOf": [result, reference("ErrorResponse")],
    });
    json!({"application/x-ndjson": {"schema": schema}})
}

fn parameters(route: &Route, rpc: &MethodDescriptor) -> Vec<Value> {
    let input = rpc.input();
    let field = |name: &str| {
        let found = input.get_field_by_json_name(name);
        found.expect("parameters are fields of the request")
    };
    let mut parameters = Vec::new();
    if let Some((_, rest)) = route.path.split_once('{') {
        let (name, _) = rest.split_once('}').expect("the template is closed");
        parameters.push(json!({
            "name": name, "in": "path", "required": true,
            "description": field_comment(&field(name)), "schema": {"type": "string"},
        }));
    }
    let query: &[&str] = match route.endpoint {
        Endpoint::ListTasks => &["prefix"],
        Endpoint::Append => &["publishedAt"],
        Endpoint::Read => &["fromOffset", "limit"],
        Endpoint::Publish => &["dryRun"],
        _ => &[],
    };
    for name in query {
        let field = field(name);
        let mut nothing = Schemas::default();
        parameters.push(json!({
            "name": name, "in": "query",
            "description": field_comment(&field), "schema": kind(&field.kind(), &mut nothing),
        }));
    }
    if route.endpoint == Endpoint::Append {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header",
            "description": field_comment(&field("idempotencyKey")), "schema": {"type": "string"},
        }));
    }
    parameters
}

/// The messages that are referred to, and those that they refer to.
#[derive(Default)]
struct Schemas(BTreeSet<String>);

impl Schemas {
    /// Refers to a message.
    fn need(&mut self, message: &MessageDescriptor) -> Value {
        self.need_named(short(message.full_name()))
    }

    fn need_named(&mut self, name: &str) -> Value {
        self.0.insert(name.to_owned());
        reference(name)
    }

    /// Returns the schemas of all of them.
    fn all(mut self) -> Value {
        let mut schemas = Map::new();
        while let Some(name) = self.0.pop_first() {
            if schemas.contains_key(&name) {
                continue;
            }
            let message = POOL.get_message_by_name(&format!("{PACKAGE}.{name}"));
            let message = message.expect("only messages of the package are referred to");
            let schema = object(&message, &mut self);
            schemas.insert(name, schema);
        }
        Value::Object(schemas)
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn short(full_name: &str) -> &str {
    full_name
        .strip_prefix(PACKAGE)
        .map_or(full_name, |name| name.trim_start_matches('.'))
}

fn object(message: &MessageDescriptor, schemas: &mut Schemas) -> Value {
    let mut properties = Map::new();
    for field in message.fields() {
        let mut schema = if field.is_map() {
            let Kind::Message(entry) = field.kind() else {
                panic!("a map is a list of entries")
            };
            let value = entry.map_entry_value_field().kind();
            json!({"type": "object", "additionalProperties": kind(&value, schemas)})
        } else if field.is_list() {
            json!({"type": "array", "items": kind(&field.kind(), schemas)})
        } else {
            kind(&field.kind(), schemas)
        };
        schema["description"] = json!(field_comment(&field));
        properties.insert(field.json_name().to_owned(), schema);
    }
    let mut schema = json!({
        "type": "object",
        "description": comment(&message.parent_file(), message.path()),
        "properties": properties,
    });
    // A message here either is a choice, or has none.
    if message.oneofs().len() > 0 {
        schema["maxProperties"] = json!(1);
    }
    schema
}

fn kind(kind: &Kind, schemas: &mut Schemas) -> Value {
    match kind {
        Kind::String => json!({"type": "string"}),
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Uint32 => json!({"type": "integer", "minimum": 0, "maximum": u32::MAX}),
        Kind::Uint64 => json!({"type": "string", "pattern": "^[0-9]+$"}),
        Kind::Bytes => json!({"type": "string", "contentEncoding": "base64"}),
        Kind::Enum(it) => names(it),
        Kind::Message(it) if it.full_name() == "google.protobuf.Timestamp" => {
            json!({"type": "string", "format": "date-time"})
        }
        Kind::Message(it) => schemas.need(it),
        other => panic!("the protos have no {other:?} yet: say here how JSON writes it"),
    }
}

fn names(of: &EnumDescriptor) -> Value {
    let values = of.values().map(|value| value.name().to_owned());
    json!({"type": "string", "enum": values.collect::<Vec<_>>()})
}

fn field_comment(field: &FieldDescriptor) -> String {
    comment(&field.parent_message().parent_file(), field.path())
}

/// Returns the comment before a declaration.
fn comment(file: &prost_reflect::FileDescriptor, path: &[i32]) -> String {
    let proto = file.file_descriptor_proto();
    let locations = proto.source_code_info.as_ref().map(|it| &it.location);
    let found = locations
        .into_iter()
        .flatten()
        .find(|location| location.path == path);
    let comment = found.map_or("", |location| location.leading_comments());
    let lines: Vec<&str> = comment.lines().map(str::trim).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use axum::http::Method;

    use super::super::route::{self, Found};
    use super::*;

    #[test]
    fn every_route_is_documented_and_every_documented_one_is_there() {
        let document = document();
        let paths = document["paths"].as_object().unwrap();
        let mut documented = 0;
        for (path, operations) in paths {
            for (method, operation) in operations.as_object().unwrap() {
                documented += 1;
                let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap();
                let concrete = path.replace("{task}", "a/b").replace("{collection}", "a/b");
                let found = route::find(&method, &concrete);
                assert!(matches!(found, Found::Route { .. }), "{method} {path}");
                assert!(operation["responses"]["200"].is_object(), "{method} {path}");
            }
        }
        assert_eq!(documented, ROUTES.len());
    }

    #[test]
    fn every_call_has_a_route() {
        let mut calls: BTreeSet<String> = BTreeSet::new();
        for service in POOL.services().filter(|it| it.package_name() == PACKAGE) {
            for method in service.methods() {
                calls.insert(format!("{}/{}", service.name(), method.name()));
            }
        }
        let routed: BTreeSet<String> = ROUTES
            .iter()
            .filter(|route| !route.rpc.is_empty())
            .map(|route| route.rpc.to_owned())
            .collect();
        assert_eq!(calls, routed);
    }

    #[test]
    fn everything_is_described_and_every_reference_leads_somewhere() {
        let document = document();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for (name, schema) in schemas {
            assert_ne!(schema["description"], "", "{name}");
            for (field, property) in schema["properties"].as_object().unwrap() {
                assert_ne!(property["description"], "", "{name}.{field}");
            }
        }
        let mut references = Vec::new();
        collect(&document, &mut references);
        assert!(!references.is_empty());
        for reference in references {
            let name = reference.strip_prefix("#/components/schemas/").unwrap();
            assert!(schemas.contains_key(name), "{reference}");
        }
    }

    fn collect(value: &Value, references: &mut Vec<String>) {
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    match value {
                        Value::String(text) if name == "$ref" => references.push(text.clone()),
                        value => collect(value, references),
                    }
                }
            }
            Value::Array(array) => array.iter().for_each(|value| collect(value, references)),
            _ => {}
        }
    }
}
