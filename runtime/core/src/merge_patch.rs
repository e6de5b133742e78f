//! RFC 7396 merge patches, by which connectors change their state.

use serde_json::{Map, Value};

/// Returns `target` with `patch` merged into it, as RFC 7396 says.
pub fn merge_patch(target: Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else {
        return patch.clone();
    };
    let mut object = match target {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    for (name, change) in changes {
        let before = object.remove(name).unwrap_or(Value::Null);
        if !change.is_null() {
            object.insert(name.clone(), merge_patch(before, change));
        }
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Case {
        target: &'static str,
        patch: &'static str,
        want: &'static str,
    }

    fn case(target: &'static str, patch: &'static str, want: &'static str) -> Case {
        Case {
            target,
            patch,
            want,
        }
    }

    fn json(text: &str) -> Value {
        serde_json::from_str(text).expect("the table holds JSON")
    }

    #[test]
    fn merges_as_the_appendix_of_the_rfc_says() {
        let cases = [
            case(r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            case(r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            case(r#"{"a":"b"}"#, r#"{"a":null}"#, r#"{}"#),
            case(r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            case(r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            case(r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            case(
                r#"{"a":{"b":"c"}}"#,
                r#"{"a":{"b":"d","c":null}}"#,
                r#"{"a":{"b":"d"}}"#,
            ),
            case(r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            case(r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            case(r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            case(r#"{"a":"foo"}"#, r#"null"#, r#"null"#),
            case(r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
            case(r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            case(r#"[1,2]"#, r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            case(
                r#"{}"#,
                r#"{"a":{"bb":{"ccc":null}}}"#,
                r#"{"a":{"bb":{}}}"#,
            ),
        ];
        for Case {
            target,
            patch,
            want,
        } in cases
        {
            let merged = merge_patch(json(target), &json(patch));
            assert_eq!(merged, json(want), "{target} patched with {patch}");
        }
    }
}
