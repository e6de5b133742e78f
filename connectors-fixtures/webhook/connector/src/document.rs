//! What is sent of a document.

use serde_json::Value;
use tidegate_boilerplate::text::json_text;
use tidegate_boilerplate::{ConnectorError, Projection, SpecBinding, Store};

/// How a binding's documents are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As they are.
    Whole,
    /// As objects of these fields, in this order; the first are of the key.
    Fields {
        /// Names of the key's fields, as JSON text.
        key: Vec<String>,
        /// Names of the others, as JSON text.
        values: Vec<String>,
    },
}

impl Shape {
    /// Returns what a binding asks for: the whole document if it is selected, else the
    /// fields that are.
    pub(crate) fn of(binding: &SpecBinding) -> Self {
        let names = |fields: &[Projection]| {
            let quoted = |it: &Projection| Value::from(&*it.field).to_string();
            fields.iter().map(quoted).collect()
        };
        match binding.document {
            Some(_) => Self::Whole,
            None => Self::Fields {
                key: names(&binding.key),
                values: names(&binding.values),
            },
        }
    }

    /// Returns the JSON text that is sent.
    pub(crate) fn text(&self, store: &Store<'_>) -> Result<String, ConnectorError> {
        let (key, values) = match self {
            Self::Whole => return Ok(store.document_text()?.to_owned()),
            Self::Fields { key, values } => (key, values),
        };
        let (keys, others) = (store.key()?, store.values()?);
        if (keys.len(), others.len()) != (key.len(), values.len()) {
            return Err(ConnectorError::internal(format!(
                "a document has {} and {} values for {} key fields and {} others",
                keys.len(),
                others.len(),
                key.len(),
                values.len()
            )));
        }
        let elements = keys.iter().chain(&others);
        let members: Vec<_> = key
            .iter()
            .chain(values)
            .zip(elements)
            .map(|(name, element)| format!("{name}:{}", json_text(element)))
            .collect();
        Ok(format!("{{{}}}", members.join(",")))
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::json;
    use tidegate_boilerplate::JsonType;
    use tidegate_boilerplate::testing::binding;
    use tidegate_boilerplate::tuple::{self, Bytes, Element};

    use super::*;

    #[test]
    fn fields_become_an_object_with_every_digit() {
        let key: &[(&str, &[JsonType])] = &[("id", &[JsonType::Integer])];
        let values: &[(&str, &[JsonType])] = &[
            ("a\"b", &[JsonType::String]),
            ("n", &[JsonType::Number]),
            ("gone", &[JsonType::Null]),
        ];
        let mut orders = binding("orders", json!({}), key, values);
        let digits = Bytes(Cow::Borrowed(b"0.12345678901234567890"));
        let values = [
            Element::String("x\"\n".into()),
            Element::Bytes(digits),
            Element::Nil,
        ];
        let store = Store {
            key_tuple: &tuple::encode(&[Element::Int(9_007_199_254_740_993)]),
            values_tuple: &tuple::encode(&values),
            document: br#"{ "id": 9007199254740993 }"#,
            exists: false,
            delete: false,
        };
        let text = |binding: &SpecBinding| Shape::of(binding).text(&store).unwrap();
        assert_eq!(text(&orders), r#"{ "id": 9007199254740993 }"#);
        orders.document = None;
        assert_eq!(
            text(&orders),
            r#"{"id":9007199254740993,"a\"b":"x\"\n","n":0.12345678901234567890,"gone":null}"#
        );
        orders.values.pop();
        let error = Shape::of(&orders).text(&store).unwrap_err();
        assert!(error.message.contains("1 and 3 values"), "{error}");
    }
}
