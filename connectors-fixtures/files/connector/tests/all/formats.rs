//! What files hold, read back by readers of their formats.

use std::borrow::Cow;

use parquet::basic::{LogicalType, TimeUnit};
use parquet::file::reader::FileReader;
use parquet::record::Field;
use serde_json::{Value, json};
use tidegate_boilerplate::testing::{Row, document};
use tidegate_boilerplate::tuple::{Bytes, Element};
use tidegate_boilerplate::{ErrorKind, JsonType, SpecBinding};

use crate::common::{Fixture, INTEGER, TEXT, animal, animals, folder, opened};

/// A binding with a column of each type.
fn values() -> SpecBinding {
    let mut binding = folder(
        "values",
        &[("id", INTEGER)],
        &[
            ("n", &[JsonType::Number]),
            ("b", &[JsonType::Boolean, JsonType::Null]),
            ("s", TEXT),
            ("t", TEXT),
            ("o", &[JsonType::Object]),
            ("m", &[JsonType::Integer, JsonType::String]),
        ],
    );
    let instant = binding.values.iter_mut().find(|it| it.field == "t");
    instant.unwrap().format = Some("date-time".to_owned());
    binding
}

fn text(text: &str) -> Element<'static> {
    Element::String(Cow::Owned(text.to_owned()))
}

fn bytes(text: &str) -> Element<'static> {
    Element::Bytes(Bytes(Cow::Owned(text.as_bytes().to_vec())))
}

fn row(id: i64, values: Vec<Element<'static>>) -> Row {
    Row {
        binding: 0,
        key: vec![Element::Int(id)],
        values,
        document: format!("{{\"id\":{id}}}"),
        delete: false,
        exists: false,
    }
}

/// Two rows of it: one with every value, one with none.
fn rows() -> Vec<Row> {
    let full = vec![
        Element::Double(0.1),
        Element::Bool(true),
        text("a,\"b\"\nc"),
        text("2026-06-23 00:15:23.918411+00:00"),
        bytes("{\"a\":[1,\"x\"]}"),
        text("1"),
    ];
    vec![
        row(9_007_199_254_740_992, vec![Element::Nil; 6]),
        row(9_007_199_254_740_993, full),
    ]
}

/// Writes the rows without a document.
fn written(format: &str, compression: Option<&str>) -> Fixture {
    let mut binding = values();
    binding.document = None;
    let mut config = json!({"format": format});
    if let Some(compression) = compression {
        config["compression"] = compression.into();
    }
    let mut fixture = opened(config, vec![binding]);
    fixture.harness.transact_rows(rows(), "one").unwrap();
    fixture
}

#[test]
fn a_line_is_the_document_as_it_is() {
    let mut fixture = opened(json!({"format": "ndjson"}), vec![values()]);
    let documents = [
        "{\"id\":1,\"n\":0.1234567890123456789,\"t\":\"2026-06-23 00:15:23.918411+00:00\"}",
        "{ \"id\": 9007199254740993,\r\n \"s\": \"a\\nb\" }",
    ];
    let rows = (1..).zip(documents).map(|(id, document)| Row {
        document: document.to_owned(),
        ..row(id, vec![Element::Nil; 6])
    });
    fixture
        .harness
        .transact_rows(rows.collect(), "one")
        .unwrap();
    let one_line = documents[1].replace("\r\n", "  ");
    let want = format!("{}\n{one_line}\n", documents[0]);
    assert_eq!(fixture.text("values"), want);
}

#[test]
fn a_line_without_the_document_is_the_fields() {
    for compression in [None, Some("gzip")] {
        let fixture = written("ndjson", compression);
        let want = [
            "{\"id\":9007199254740992,\"n\":null,\"b\":null,\"s\":null,\"t\":null,\"o\":null,\"m\":null}",
            "{\"id\":9007199254740993,\"n\":0.1,\"b\":true,\"s\":\"a,\\\"b\\\"\\nc\",\
             \"t\":\"2026-06-23 00:15:23.918411+00:00\",\"o\":{\"a\":[1,\"x\"]},\"m\":\"1\"}",
            "",
        ];
        assert_eq!(fixture.text("values"), want.join("\n"), "{compression:?}");
        assert_eq!(fixture.json_lines("values").len(), 2);
    }
}

#[test]
fn csv_tells_null_from_empty_and_text_from_numbers() {
    let mut fixture = written("csv", None);
    let values = vec![
        bytes("0.1234567890123456789"),
        Element::Bool(false),
        text(""),
        Element::Nil,
        bytes("[]"),
        Element::Int(1),
    ];
    fixture
        .harness
        .transact_rows(vec![row(3, values)], "two")
        .unwrap();
    let header = "\"id\",\"n\",\"b\",\"s\",\"t\",\"o\",\"m\"\n";
    let want = [
        header,
        "9007199254740992,,,,,,\n",
        "9007199254740993,0.1,true,\"a,\"\"b\"\"\nc\",\"2026-06-23 00:15:23.918411+00:00\",\
         \"{\"\"a\"\":[1,\"\"x\"\"]}\",\"1\"\n",
        header,
        "3,0.1234567890123456789,false,\"\",,\"[]\",1\n",
    ];
    assert_eq!(fixture.text("values"), want.concat());
}

#[test]
fn csv_is_read_back_by_a_reader_of_it() {
    for compression in [None, Some("gzip")] {
        let fixture = written("csv", compression);
        let text = fixture.text("values");
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(
            reader.headers().unwrap(),
            vec!["id", "n", "b", "s", "t", "o", "m"]
        );
        let records: Vec<_> = reader.records().map(Result::unwrap).collect();
        assert_eq!(
            records[1],
            vec![
                "9007199254740993",
                "0.1",
                "true",
                "a,\"b\"\nc",
                "2026-06-23 00:15:23.918411+00:00",
                "{\"a\":[1,\"x\"]}",
                "1"
            ]
        );
    }
}

#[test]
fn a_selected_document_is_a_column_of_json() {
    let mut binding = animals();
    binding.document = Some("flow_document".to_owned());
    let mut fixture = opened(json!({"format": "csv"}), vec![binding]);
    fixture
        .harness
        .transact(&[animal(1, "ant")], "one")
        .unwrap();
    let want = "\"id\",\"name\",\"flow_document\"\n1,\"ant\",\"{\"\"id\"\":1,\"\"name\"\":\"\"ant\"\"}\"\n";
    assert_eq!(fixture.text("animals"), want);
}

#[test]
fn parquet_is_read_back_by_a_reader_of_it() {
    for compression in [None, Some("none"), Some("gzip"), Some("snappy")] {
        let fixture = written("parquet", compression);
        let names = ["id", "n", "b", "s", "t", "o", "m"];
        let named = |fields: Vec<Field>| -> Vec<(String, Field)> {
            let names = names.iter().map(|it| (*it).to_owned());
            names.zip(fields).collect()
        };
        let mut empty = vec![Field::Null; 7];
        empty[0] = Field::Long(9_007_199_254_740_992);
        let full = vec![
            Field::Long(9_007_199_254_740_993),
            Field::Double(0.1),
            Field::Bool(true),
            Field::Str("a,\"b\"\nc".to_owned()),
            Field::TimestampMicros(1_782_173_723_918_411),
            Field::Str("{\"a\":[1,\"x\"]}".to_owned()),
            Field::Str("\"1\"".to_owned()),
        ];
        let want = [named(empty), named(full)];
        assert_eq!(fixture.parquet_rows("values"), want, "{compression:?}");
    }
}

#[test]
fn parquet_columns_say_what_they_are() {
    let mut fixture = opened(json!({"format": "parquet"}), vec![values()]);
    fixture.harness.transact_rows(rows(), "one").unwrap();
    let reader = &fixture.parquet("values")[0];
    let schema = reader.metadata().file_metadata().schema_descr();
    let columns: Vec<_> = schema
        .columns()
        .iter()
        .map(|it| (it.name().to_owned(), it.logical_type_ref().cloned()))
        .collect();
    let want = [
        ("id", None),
        ("n", None),
        ("b", None),
        ("s", Some(LogicalType::String)),
        ("t", Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        ("o", Some(LogicalType::Json)),
        ("m", Some(LogicalType::Json)),
        ("flow_document", Some(LogicalType::Json)),
    ];
    let want: Vec<_> = want
        .into_iter()
        .map(|(name, logical)| (name.to_owned(), logical))
        .collect();
    assert_eq!(columns, want);
}

#[test]
fn parquet_groups_hold_a_bounded_number_of_bytes() {
    const DOCUMENT_BYTES: usize = 1 << 20;
    let mut fixture = opened(json!({"format": "parquet"}), vec![animals()]);
    let text = "x".repeat(DOCUMENT_BYTES);
    for id in 0..80 {
        let name = format!("{id} {text}");
        let mut row = fixture.harness.row(&animal(id, &name));
        row.document = "{}".to_owned();
        fixture.harness.store(0, &[row]).unwrap();
    }
    fixture.harness.start_commit("one").unwrap();
    fixture.harness.acknowledge().unwrap();
    let reader = &fixture.parquet("animals")[0];
    let groups = reader.metadata().row_groups();
    let rows: Vec<_> = groups.iter().map(|it| it.num_rows()).collect();
    assert_eq!(rows.iter().sum::<i64>(), 80);
    assert!(rows.iter().all(|rows| *rows <= 32), "{rows:?}");
    assert_eq!(fixture.parquet_rows("animals").len(), 80);
}

#[test]
fn a_value_that_parquet_cannot_hold_is_named() {
    let cases = [
        ("t", 3, text("2025-11-29 01:05:28"), "no offset"),
        ("n", 0, bytes("0.1234567890123456789"), "change its digits"),
    ];
    for (field, position, element, want) in cases {
        let mut fixture = opened(json!({"format": "parquet"}), vec![values()]);
        let mut values = vec![Element::Nil; 6];
        values[position] = element;
        let error = fixture
            .harness
            .transact_rows(vec![row(7, values)], "one")
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Document);
        assert!(error.message.contains(want), "{error}");
        assert_eq!(error.field.as_deref(), Some(field));
        assert_eq!(error.key.as_deref(), Some("[7]"));
        assert_eq!(error.binding, Some(0));
        assert_eq!(fixture.manifests(), [Value::Null; 0]);
    }
}

#[test]
fn integers_beyond_64_bits_are_text_in_lines_and_refused_in_parquet() {
    let large = Element::BigInt(i128::from(i64::MAX).into());
    let beyond = || vec![text("x")];
    let mut binding = animals();
    binding.document = None;
    for (format, holds) in [("ndjson", true), ("csv", true), ("parquet", false)] {
        let mut fixture = opened(json!({"format": format}), vec![binding.clone()]);
        let mut row = row(1, beyond());
        row.key = vec![match &large {
            Element::BigInt(it) => Element::BigInt(it * 10),
            _ => unreachable!("it was made so"),
        }];
        let stored = fixture.harness.transact_rows(vec![row], "one");
        assert_eq!(stored.is_ok(), holds, "{format}");
        if holds {
            assert!(fixture.text("animals").contains("92233720368547758070"));
        }
    }
}

#[test]
fn documents_of_a_folder_are_only_in_its_files() {
    let other = folder("other", &[("id", INTEGER)], &[]);
    let mut fixture = opened(json!({"format": "parquet"}), vec![animals(), other]);
    let documents = [animal(1, "ant"), document(1, json!({"id": 2}))];
    fixture.harness.transact(&documents, "one").unwrap();
    assert_eq!(fixture.parquet_rows("animals").len(), 1);
    let fields = fixture.parquet_rows("other").remove(0);
    assert_eq!(fields[0], ("id".to_owned(), Field::Long(2)));
}
