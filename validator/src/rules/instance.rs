//! What a JSON schema's error means, in words that do not repeat the value.

use crate::model::nearest;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;
use std::time::Duration;

/// Alternatives that a message lists.
const LISTED_MAX: usize = 24;

/// Returns what is wrong, and what to do about it. Values of the instance are repeated by the caller only.
pub(crate) fn explain_error(error: &ValidationError<'_>) -> (String, Option<String>) {
    use ValidationErrorKind as Kind;
    let found = type_name(error.instance());
    let message = match error.kind() {
        Kind::Type { kind } => format!("this must be {}, not {found}", kinds(kind)),
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            return (
                format!("\"{name}\" is missing"),
                Some(format!("add \"{name}\"")),
            );
        }
        Kind::Enum { options } => {
            let options = options.as_array().map_or(&[][..], Vec::as_slice);
            format!("this must be one of {}", listed(options))
        }
        Kind::Constant { expected_value } => format!("this must be {expected_value}"),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("there is no field \"{}\" here", unexpected.join("\", \""))
        }
        Kind::Pattern { pattern } => format!("this must match the pattern {pattern}"),
        Kind::Format { format } => format!("this is not a valid {format}"),
        Kind::MinLength { limit: 1 } => "this must not be empty".to_owned(),
        Kind::MinLength { limit } => format!("this must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("this must have at most {limit} characters"),
        Kind::Minimum { limit } => format!("this must be at least {limit}"),
        Kind::Maximum { limit } => format!("this must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("this must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("this must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("this must be a multiple of {multiple_of}"),
        Kind::MinItems { limit } => format!("this must have at least {limit} items"),
        Kind::MaxItems { limit } => format!("this must have at most {limit} items"),
        Kind::AdditionalItems { limit } => format!("this must have at most {limit} items"),
        Kind::MinProperties { limit } => format!("this must have at least {limit} fields"),
        Kind::MaxProperties { limit } => format!("this must have at most {limit} fields"),
        Kind::UniqueItems => "no two items may be equal".to_owned(),
        Kind::FalseSchema => "nothing may stand here".to_owned(),
        Kind::Not { .. } => "this is of a kind that is excluded here".to_owned(),
        Kind::OneOfMultipleValid { .. } => {
            "this fits several alternatives, and must fit one".to_owned()
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            return alternatives(context);
        }
        Kind::PropertyNames { error } => {
            return (
                format!("a field's name is not allowed: {}", explain_error(error).0),
                None,
            );
        }
        _ => format!("{}", error.masked()),
    };
    (message, None)
}

/// Speaks of the alternative that came closest: the one whose errors lie deepest, then one of the
/// value's own type, then the one with the fewest.
fn alternatives(context: &[Vec<ValidationError<'static>>]) -> (String, Option<String>) {
    let depth = |errors: &[ValidationError<'_>]| {
        let depths = errors
            .iter()
            .map(|it| it.instance_path().as_str().matches('/').count());
        depths.max().unwrap_or_default()
    };
    let closest = context
        .iter()
        .filter(|errors| !errors.is_empty())
        .max_by_key(|errors| {
            let of_other_type =
                |it: &ValidationError<'_>| matches!(it.kind(), ValidationErrorKind::Type { .. });
            (
                depth(errors),
                !errors.iter().all(of_other_type),
                std::cmp::Reverse(errors.len()),
            )
        });
    let message = format!("this fits none of the {} alternatives", context.len());
    match closest.and_then(|errors| errors.first()) {
        Some(error) => (
            format!("{message}; of the closest one: {}", explain_error(error).0),
            None,
        ),
        None => (message, None),
    }
}

/// Returns a list of values for a message.
pub(super) fn listed(options: &[Value]) -> String {
    let shown: Vec<_> = options
        .iter()
        .take(LISTED_MAX)
        .map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned))
        .collect();
    let mut text = shown.join(", ");
    if options.len() > LISTED_MAX {
        text.push_str(", ...");
    }
    text
}

/// Returns the options nearest to a value: by length where all are durations, else by spelling.
pub(super) fn nearest_options(options: &[Value], value: &str) -> Vec<String> {
    let texts: Vec<_> = options.iter().filter_map(Value::as_str).collect();
    let lengths: Option<Vec<Duration>> = texts
        .iter()
        .map(|it| humantime::parse_duration(it).ok())
        .collect();
    if let (Some(lengths), Ok(wanted)) = (lengths, humantime::parse_duration(value)) {
        let below = lengths.iter().zip(&texts).filter(|(it, _)| **it < wanted);
        let above = lengths.iter().zip(&texts).filter(|(it, _)| **it > wanted);
        let nearest = [below.max(), above.min()].into_iter().flatten();
        return nearest.map(|(_, text)| (*text).to_owned()).collect();
    }
    let near = nearest(value, texts.into_iter());
    near.into_iter().map(str::to_owned).collect()
}

fn kinds(kind: &TypeKind) -> String {
    let name = |kind: JsonType| match kind {
        JsonType::Null => "null",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Number => "a number",
        JsonType::String => "text",
        JsonType::Array => "a list",
        JsonType::Object => "an object",
    };
    match kind {
        TypeKind::Single(kind) => name(*kind).to_owned(),
        TypeKind::Multiple(kinds) => kinds.iter().map(name).collect::<Vec<_>>().join(" or "),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_nearest_duration_is_by_length() {
        let options = ["0s", "30s", "5m", "15m", "30m", "1h", "2h", "4h"].map(Value::from);
        for (value, want) in [
            ("20m", vec!["15m", "30m"]),
            ("9h", vec!["4h"]),
            ("90m", vec!["1h", "2h"]),
            ("soon", vec![]),
        ] {
            assert_eq!(nearest_options(&options, value), want, "{value}");
        }
        let names = ["skip", "replace"].map(Value::from);
        assert_eq!(nearest_options(&names, "replcae"), ["replace"]);
    }

    #[test]
    fn no_message_repeats_the_value() {
        let schema = json!({
            "properties": {
                "a": {"type": "string"}, "b": {"enum": ["x"]}, "c": {"const": 1}, "d": {"pattern": "^x"},
                "e": {"minimum": 1e9}, "f": {"maxLength": 2}, "g": {"multipleOf": 10},
                "h": {"anyOf": [{"type": "null"}, {"minLength": 99}]}, "i": {"format": "ipv4"},
                "j": {"not": {"type": "string"}}, "k": {"contains": {"const": 1}},
                "l": {"maxItems": 0}, "m": {"propertyNames": {"maxLength": 1}},
            }
        });
        let instance = json!({
            "a": 4242, "b": "4242", "c": 4242, "d": "4242", "e": 4242, "f": "4242", "g": 4242, "h": "4242",
            "i": "4242", "j": "4242", "k": ["4242"], "l": ["4242"], "m": {"ab": "4242"},
        });
        let validator = jsonschema::draft202012::options()
            .should_validate_formats(true)
            .build(&schema)
            .expect("the schema compiles");
        let mut wrong = std::collections::BTreeSet::new();
        for error in validator.iter_errors(&instance) {
            let (message, help) = explain_error(&error);
            assert!(!message.contains("4242"), "{message}");
            assert!(!help.unwrap_or_default().contains("4242"));
            wrong.insert(error.instance_path().as_str().to_owned());
        }
        let all: Vec<_> = ('a'..='m').map(|name| format!("/{name}")).collect();
        assert_eq!(wrong.into_iter().collect::<Vec<_>>(), all);
    }
}
