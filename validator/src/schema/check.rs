//! Whether a schema is one, and whether its `reduce` annotations mean something.

use super::bundle::Bundled;
use super::{Holds, holds};
use crate::diagnostic::{Code, Report, Spot};
use crate::load::{Kind, Node, Sources, join};
use crate::model::nearest;
use crate::rules::explain_error;
use crate::schema::Types;
use jsonschema::error::ValidationErrorKind;

const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// Strategies that the combiner knows.
const STRATEGIES: [&str; 8] = [
    "append",
    "firstWriteWins",
    "lastWriteWins",
    "maximize",
    "merge",
    "minimize",
    "set",
    "sum",
];

/// Reports what is wrong with a schema; returns whether it is one.
pub(super) fn check(
    bundled: &Bundled,
    schema: &serde_json::Value,
    sources: &Sources,
    report: &mut Report,
) -> bool {
    let mut good = true;
    for error in jsonschema::draft202012::meta::validator().iter_errors(schema) {
        let at = error.instance_path().as_str();
        let node = bundled.node.nearest(at);
        let spot = Spot::new(format!("{}{at}", bundled.pointer), node.span);
        let (mut message, mut help) = explain_error(&error);
        if let (Some(text), true) = (node.text(), at.ends_with("/type")) {
            message = format!("\"{text}\" is not a type");
            help = Some(match nearest(text, TYPES.into_iter()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("types are {}", TYPES.join(", ")),
            });
        }
        let entry = report.add(
            sources,
            Code::SchemaInvalid,
            &spot,
            format!("this is not a valid JSON schema: {message}"),
        );
        let array_of_items = at.ends_with("/items") && node.list().is_some();
        entry.help_if(if array_of_items {
            Some("a list of schemas by position is written \"prefixItems\"".to_owned())
        } else {
            help
        });
        good = false;
    }
    if good && let Err(error) = jsonschema::draft202012::options().build(schema) {
        let at = error.instance_path().as_str();
        let node = bundled.node.nearest(at);
        let spot = Spot::new(format!("{}{at}", bundled.pointer), node.span);
        let message = match error.kind() {
            ValidationErrorKind::Format { format } if format == "regex" => {
                "this is not a regular expression".to_owned()
            }
            _ => format!("this schema cannot be compiled: {}", error.masked()),
        };
        report.add(sources, Code::SchemaInvalid, &spot, message);
        good = false;
    }
    Reductions { sources, report }.schema(&bundled.node, &bundled.pointer);
    good
}

struct Reductions<'r> {
    sources: &'r Sources,
    report: &'r mut Report,
}

impl Reductions<'_> {
    fn schema(&mut self, node: &Node, pointer: &str) {
        for entry in node.entries() {
            let pointer = join(pointer, &entry.key);
            if entry.key == "reduce" {
                self.reduce(node, &entry.value, &pointer);
                continue;
            }
            match (holds(&entry.key), &entry.value.kind) {
                (Holds::One, _) => self.schema(&entry.value, &pointer),
                (Holds::Many, Kind::List(items)) => {
                    for (position, item) in items.iter().enumerate() {
                        self.schema(item, &join(&pointer, &position.to_string()));
                    }
                }
                (Holds::Named, Kind::Object(entries)) => {
                    for named in entries {
                        self.schema(&named.value, &join(&pointer, &named.key));
                    }
                }
                _ => {}
            }
        }
    }

    fn wrong(&mut self, node: &Node, pointer: &str, message: String, help: &str) {
        let spot = Spot::new(pointer, node.span);
        self.report
            .add(self.sources, Code::ReduceInvalid, &spot, message)
            .help(help);
    }

    fn reduce(&mut self, schema: &Node, reduce: &Node, pointer: &str) {
        let example = "write \"reduce: {strategy: sum}\"";
        if !reduce.is_object() {
            let message = format!("reduce is an object, not {}", reduce.type_name());
            return self.wrong(reduce, pointer, message, example);
        }
        for entry in reduce.entries() {
            let pointer = join(pointer, &entry.key);
            match entry.key.as_str() {
                "strategy" | "associative" => {}
                "delete" if entry.value.boolean().is_some() => {}
                "key" => self.key(&entry.value, &pointer),
                "delete" => self.wrong(
                    &entry.value,
                    &pointer,
                    "delete is true or false".to_owned(),
                    "write \"delete: true\"",
                ),
                other => {
                    let message = format!("a reduction has no field \"{other}\"");
                    let help = "fields are strategy, key, delete and associative";
                    self.wrong(&entry.value, &pointer, message, help);
                }
            }
        }
        let Some(strategy) = reduce.get("strategy") else {
            let message = "the reduction has no strategy".to_owned();
            return self.wrong(reduce, pointer, message, example);
        };
        let at = join(pointer, "strategy");
        let Some(name) = strategy.text() else {
            let message = format!("a strategy is text, not {}", strategy.type_name());
            return self.wrong(strategy, &at, message, example);
        };
        if !STRATEGIES.contains(&name) {
            let help = match nearest(name, STRATEGIES.into_iter()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("strategies are {}", STRATEGIES.join(", ")),
            };
            let message = format!("\"{name}\" is not a reduction strategy that is known here");
            return self.wrong(strategy, &at, message, &help);
        }
        self.applies(schema, strategy, name, &at);
    }

    fn key(&mut self, node: &Node, pointer: &str) {
        let pointers = node.list().is_some_and(|items| {
            items.iter().all(|item| {
                item.text()
                    .is_some_and(|text| text.is_empty() || text.starts_with('/'))
            })
        });
        if !pointers {
            self.wrong(
                node,
                pointer,
                "the key of a reduction is a list of JSON pointers".to_owned(),
                "write \"key: [/id]\", relative to an item",
            );
        }
    }

    /// Reports a strategy at a location whose type it cannot reduce.
    fn applies(&mut self, schema: &Node, strategy: &Node, name: &str, pointer: &str) {
        let wanted = match name {
            "append" => Types::ARRAY,
            "merge" => Types::ARRAY.or(Types::OBJECT),
            "set" => Types::OBJECT,
            "sum" => Types::NUMBER.or(Types::STRING),
            _ => return,
        };
        let Some(declared) = schema.get("type") else {
            return;
        };
        let declared = match declared.list() {
            Some(items) => items.iter().filter_map(Node::text).collect(),
            None => declared.text().into_iter().collect::<Vec<_>>(),
        };
        let types = declared
            .iter()
            .filter_map(|name| Types::named(name))
            .fold(Types::NONE, Types::or);
        if !types.is_none() && !types.meets(wanted) {
            self.wrong(
                strategy,
                pointer,
                format!("the strategy \"{name}\" reduces {wanted}, and this location is {types}"),
                "choose a strategy for the location's type, or correct its type",
            );
        }
    }
}
