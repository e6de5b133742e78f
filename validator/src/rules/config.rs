//! Configurations against connectors' JSON schemas.
//!
//! ```text
//! config -> readable (encrypted and emptied fields set aside) -> schema narrowed to the alternative chosen -> errors
//! ```
//!
//! A `oneOf` with a discriminator is replaced by the one alternative that the configuration names, so that an error
//! names the field that is wrong and not all the alternatives that were not meant.

use super::instance::{explain_error, listed, nearest_options};
use crate::diagnostic::{Code, Report, Severity, Spot};
use crate::load::{Kind, Node, Sources, join, shown_name, tokens};
use crate::model::{ComponentRef, nearest};
use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Marks a field whose value is encrypted.
const ENCRYPTED_SUFFIX: &str = "_sops";

/// Levels of schema that are narrowed; connectors' forms have three.
const NARROW_DEPTH_MAX: usize = 16;

/// Longest value that a message repeats.
const VALUE_SHOWN_CHARS: usize = 60;

/// Compiled schemas of connectors, by what was chosen in them: ten thousand tasks share a handful.
#[derive(Default)]
pub(crate) struct Schemas {
    compiled: BTreeMap<Chosen, Result<Arc<Validator>, String>>,
}

/// A connector, whether its config or a resource is meant, and the alternatives that were chosen.
type Chosen = (ComponentRef, bool, Vec<String>);

/// What a configuration is checked against.
pub(crate) struct CheckedConfig<'c> {
    pub(crate) component: &'c ComponentRef,
    pub(crate) schema: &'c Value,
    pub(crate) node: &'c Node,
    pub(crate) pointer: &'c str,
    /// [`Code::ConfigInvalid`] or [`Code::ResourceInvalid`].
    pub(crate) code: Code,
}

/// Reports what is wrong with a configuration; an error is a schema that is none.
pub(crate) fn check_config(
    checked: &CheckedConfig<'_>,
    schemas: &mut Schemas,
    sources: &Sources,
    report: &mut Report,
) -> Result<(), String> {
    let readable = Readable::of(checked.node);
    let mut choices = Vec::new();
    let schema = narrow(checked.schema, &readable.value, &mut choices, 0);
    let is_config = checked.code == Code::ConfigInvalid;
    let validator = schemas
        .compiled
        .entry((checked.component.clone(), is_config, choices))
        .or_insert_with(|| {
            jsonschema::draft202012::options()
                .build(&schema)
                .map(Arc::new)
                .map_err(|error| error.masked().to_string())
        })
        .clone()?;
    let mut checking = Checking {
        checked,
        schema: &schema,
        readable: &readable,
        sources,
        report,
    };
    for error in validator.iter_errors(&readable.value) {
        checking.error(&error);
    }
    checking.misspellings("", &readable.value, 0);
    Ok(())
}

/// A configuration as its schema means it.
struct Readable {
    value: Value,
    /// Pointers of values that are encrypted, whose content says nothing.
    encrypted: Vec<String>,
}

impl Readable {
    fn of(node: &Node) -> Self {
        let mut encrypted = Vec::new();
        let mut value = decrypted(node, "", &mut encrypted);
        if let Value::Object(fields) = &mut value {
            fields.remove("sops");
            // An emptied form leaves these behind, and they mean nothing.
            if let Some(Value::Object(schedule)) = fields.get_mut("syncSchedule") {
                schedule.retain(|_, it| !it.is_null() && it.as_str() != Some(""));
            }
            if fields.get("syncSchedule").is_some_and(Value::is_null) {
                fields.remove("syncSchedule");
            }
        }
        Self { value, encrypted }
    }

    fn is_encrypted(&self, pointer: &str) -> bool {
        self.encrypted.iter().any(|it| {
            pointer == it
                || pointer
                    .strip_prefix(it)
                    .is_some_and(|it| it.starts_with('/'))
        })
    }
}

fn decrypted(node: &Node, pointer: &str, encrypted: &mut Vec<String>) -> Value {
    match &node.kind {
        Kind::Object(entries) => {
            let mut fields = Map::new();
            for entry in entries {
                let name = entry.key.strip_suffix(ENCRYPTED_SUFFIX);
                let pointer = join(pointer, name.unwrap_or(&entry.key));
                let value = decrypted(&entry.value, &pointer, encrypted);
                if name.is_some() {
                    encrypted.push(pointer);
                }
                fields.insert(name.unwrap_or(&entry.key).to_owned(), value);
            }
            Value::Object(fields)
        }
        Kind::List(items) => items
            .iter()
            .enumerate()
            .map(|(position, item)| {
                decrypted(item, &join(pointer, &position.to_string()), encrypted)
            })
            .collect(),
        _ => node.to_value(),
    }
}

/// Returns the schema with each discriminated `oneOf` replaced by the alternative that the value names.
fn narrow(schema: &Value, value: &Value, choices: &mut Vec<String>, depth: usize) -> Value {
    let Value::Object(fields) = schema else {
        return schema.clone();
    };
    if depth >= NARROW_DEPTH_MAX {
        return schema.clone();
    }
    let mut fields = fields.clone();
    if let Some(branches) = fields.get("oneOf").and_then(Value::as_array).cloned()
        && let Some(name) = discriminator(&fields, &branches)
    {
        fields.remove("oneOf");
        let chosen = value.get(&name);
        let branch = branches
            .iter()
            .find(|branch| chosen.is_some() && chosen == constant(branch, &name));
        let (choice, branch) = match branch {
            Some(branch) => (
                chosen.map(Value::to_string).unwrap_or_default(),
                narrow(branch, value, choices, depth + 1),
            ),
            None => {
                let options: Vec<_> = branches
                    .iter()
                    .filter_map(|branch| constant(branch, &name).cloned())
                    .collect();
                let branch = json!({
                    "type": "object",
                    "required": [name],
                    "properties": { &name: { "enum": options } },
                });
                (String::new(), branch)
            }
        };
        choices.push(choice);
        match fields.get_mut("allOf").and_then(Value::as_array_mut) {
            Some(all) => all.push(branch),
            None => {
                fields.insert("allOf".to_owned(), json!([branch]));
            }
        }
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        for (name, property) in properties {
            if let Some(value) = value.get(name) {
                *property = narrow(property, value, choices, depth + 1);
            }
        }
    }
    Value::Object(fields)
}

/// Returns the property that tells the branches apart: the declared one, or the one that each branch fixes.
fn discriminator(fields: &Map<String, Value>, branches: &[Value]) -> Option<String> {
    let fixed = |name: &str| {
        branches
            .iter()
            .all(|branch| constant(branch, name).is_some())
    };
    let declared = fields
        .get("discriminator")
        .and_then(|it| it.get("propertyName"))
        .and_then(Value::as_str)
        .filter(|name| fixed(name));
    if let Some(name) = declared {
        return Some(name.to_owned());
    }
    let properties = branches.first()?.get("properties")?.as_object()?;
    let name = properties.keys().find(|name| fixed(name))?;
    Some(name.clone())
}

fn constant<'b>(branch: &'b Value, name: &str) -> Option<&'b Value> {
    let property = branch.get("properties")?.get(name)?;
    property
        .get("const")
        .or_else(|| match property.get("enum")?.as_array()?.as_slice() {
            [only] => Some(only),
            _ => None,
        })
}

struct Checking<'c> {
    checked: &'c CheckedConfig<'c>,
    schema: &'c Value,
    readable: &'c Readable,
    sources: &'c Sources,
    report: &'c mut Report,
}

impl Checking<'_> {
    fn error(&mut self, error: &jsonschema::ValidationError<'_>) {
        let at = error.instance_path().as_str().to_owned();
        if self.readable.is_encrypted(&at) {
            return;
        }
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                for name in unexpected {
                    self.unknown(&at, name);
                }
            }
            ValidationErrorKind::Enum { options } => {
                let options = options.as_array().map_or(&[][..], Vec::as_slice);
                self.not_listed(&at, options);
            }
            _ => {
                let (message, help) = explain_error(error);
                let (spot, revealed) = self.spot(&at);
                let help = help.map(|help| self.with_options(&at, error, help));
                let message = format!("{}: {message}", self.name(&at));
                self.report
                    .add(self.sources, self.checked.code, &spot, message)
                    .reveal(revealed)
                    .help_if(help);
            }
        }
    }

    /// Returns what a message calls a place.
    fn name(&self, at: &str) -> String {
        let what = match self.checked.code {
            Code::ConfigInvalid => "config",
            _ => "resource",
        };
        format!("{what}{at}")
    }

    fn spot(&self, at: &str) -> (Spot, bool) {
        let (spot, node) = self.found(at);
        (spot, !self.is_secret(at) && self.is_harmless(at, node))
    }

    /// Free text may be a secret at a wrong place, or an address with a password in it; what is nearly one of the
    /// values that are offered is not, nor is a number where numbers belong.
    fn is_harmless(&self, at: &str, node: &Node) -> bool {
        let schemas = self.subschemas(at);
        let says = |key: &str| {
            schemas
                .iter()
                .any(|it| it.get(key) == Some(&Value::Bool(true)))
        };
        let holds_more = ["properties", "items", "additionalProperties"];
        if schemas
            .iter()
            .any(|it| holds_more.iter().any(|key| it.get(key).is_some()))
        {
            return false;
        }
        match &node.kind {
            Kind::Text(text) => {
                let offered = schemas.iter().filter_map(|it| it.get("enum")?.as_array());
                let constants = schemas.iter().filter_map(|it| it.get("const"));
                let offered: Vec<Value> = offered.flatten().chain(constants).cloned().collect();
                says("nonsensitive") || !nearest_options(&offered, text).is_empty()
            }
            _ => true,
        }
    }

    /// Returns the last value on the way to a place.
    fn found(&self, at: &str) -> (Spot, &Node) {
        let mut node = self.checked.node;
        for token in tokens(at) {
            let encrypted = format!("{token}{ENCRYPTED_SUFFIX}");
            match node.child(&token).or_else(|| node.child(&encrypted)) {
                Some(child) => node = child,
                None => break,
            }
        }
        let spot = Spot::new(format!("{}{at}", self.checked.pointer), node.span);
        (spot, node)
    }

    /// Returns every subschema that describes a place.
    fn subschemas(&self, at: &str) -> Vec<&Value> {
        spread(self.described(at))
    }

    /// Does the same, without alternatives at the place itself.
    fn described(&self, at: &str) -> Vec<&Value> {
        let mut schemas = vec![self.schema];
        for token in tokens(at) {
            let mut next = Vec::new();
            for schema in spread(schemas) {
                let named = schema.get("properties").and_then(|it| it.get(&token));
                let other = || schema.get("additionalProperties").or(schema.get("items"));
                next.extend(named.or_else(other));
            }
            schemas = next;
        }
        schemas
    }

    /// A place of which the schema says nothing may well hold a secret.
    fn is_secret(&self, at: &str) -> bool {
        let mut prefix = String::new();
        for token in tokens(at) {
            prefix = join(&prefix, &token);
            let schemas = self.subschemas(&prefix);
            let marked = |schema: &&Value| {
                ["secret", "airbyte_secret", "writeOnly"]
                    .iter()
                    .any(|key| schema.get(key) == Some(&Value::Bool(true)))
                    || schema.get("format").and_then(Value::as_str) == Some("password")
            };
            if schemas.is_empty() || schemas.iter().any(marked) {
                return true;
            }
        }
        false
    }

    fn unknown(&mut self, at: &str, name: &str) {
        let spot = self.key_spot(at, name);
        let schemas = self.subschemas(at);
        let known: Vec<_> = schemas
            .iter()
            .filter_map(|schema| schema.get("properties")?.as_object())
            .flat_map(Map::keys)
            .map(String::as_str)
            .collect();
        let help = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if known.is_empty() => "remove it".to_owned(),
            None => format!("fields here are {}", known.join(", ")),
        };
        let message = format!(
            "{}: there is no field \"{}\" here",
            self.name(at),
            shown_name(name)
        );
        self.report
            .add(self.sources, self.checked.code, &spot, message)
            .help(help);
    }

    /// Returns the place of a field's key.
    fn key_spot(&self, at: &str, name: &str) -> Spot {
        let (parent, node) = self.found(at);
        let encrypted = format!("{name}{ENCRYPTED_SUFFIX}");
        let entry = node.entry(name).or_else(|| node.entry(&encrypted));
        let span = entry.map_or(parent.span, |entry| entry.key_span);
        Spot::new(join(&parent.pointer, shown_name(name)), span)
    }

    /// Warns of fields that an open schema does not know, and that are near ones that it knows and that are not set.
    fn misspellings(&mut self, at: &str, value: &Value, depth: usize) {
        let Value::Object(fields) = value else { return };
        if depth >= NARROW_DEPTH_MAX || self.readable.is_encrypted(at) {
            return;
        }
        let schemas = self.subschemas(at);
        let open = schemas
            .iter()
            .all(|schema| schema.get("additionalProperties").is_none());
        let known: BTreeSet<String> = schemas
            .iter()
            .filter_map(|schema| schema.get("properties")?.as_object())
            .flat_map(|properties| properties.keys().cloned())
            .collect();
        for (name, value) in fields {
            let pointer = join(at, name);
            if known.contains(name) {
                self.misspellings(&pointer, value, depth + 1);
                continue;
            }
            let unset = known.iter().filter(|it| !fields.contains_key(*it));
            let Some(near) = nearest(name, unset.map(String::as_str)).filter(|_| open) else {
                continue;
            };
            let spot = self.key_spot(at, name);
            let message = format!(
                "{}: the connector's schema does not know the field \"{}\"",
                self.name(at),
                shown_name(name)
            );
            self.report
                .add(self.sources, self.checked.code, &spot, message)
                .severity(Severity::Warning)
                .help(format!("did you mean \"{near}\"?"));
        }
    }

    fn not_listed(&mut self, at: &str, options: &[Value]) {
        let (spot, revealed) = self.spot(at);
        let value = self.readable.value.pointer(at);
        let text = value
            .and_then(Value::as_str)
            .filter(|it| revealed && it.chars().count() <= VALUE_SHOWN_CHARS);
        let name = self.name(at);
        let message = match text {
            Some(text) => format!("{name}: \"{text}\" is not one of {}", listed(options)),
            None => format!("{name}: this must be one of {}", listed(options)),
        };
        let near = text.map_or_else(Vec::new, |text| nearest_options(options, text));
        let help = (!near.is_empty()).then(|| format!("the nearest is {}", near.join(" or ")));
        self.report
            .add(self.sources, self.checked.code, &spot, message)
            .reveal(revealed)
            .help_if(help);
    }

    /// Adds to the help for a missing field what it may be.
    fn with_options(
        &self,
        at: &str,
        error: &jsonschema::ValidationError<'_>,
        help: String,
    ) -> String {
        let ValidationErrorKind::Required { property } = error.kind() else {
            return help;
        };
        let pointer = join(at, property.as_str().unwrap_or_default());
        let schemas = self.subschemas(&pointer);
        let options = schemas
            .iter()
            .find_map(|schema| schema.get("enum")?.as_array());
        // Titles of alternatives say nothing of what they are alternatives of.
        let title = self
            .described(&pointer)
            .into_iter()
            .find_map(|schema| schema.get("title")?.as_str());
        match (options, title) {
            (Some(options), _) => format!("{help}, one of {}", listed(options)),
            (None, Some(title)) => format!("{help} ({title})"),
            (None, None) => help,
        }
    }
}

/// Returns schemas and the alternatives within them.
fn spread(schemas: Vec<&Value>) -> Vec<&Value> {
    let mut spread = Vec::new();
    let mut left = schemas;
    while let Some(schema) = left.pop() {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let branches = schema.get(keyword).and_then(Value::as_array);
            left.extend(branches.into_iter().flatten());
        }
        spread.push(schema);
    }
    spread
}
