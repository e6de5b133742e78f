//! Values and keys of every type.
//!
//! The document is what a standard binding loads back, whole. What its columns hold
//! beside it is seen by a command of the setup.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_host::document::shown;
use tidegate_wit::message::{JsonType, Projection};

use super::refusals::document_error;
use super::{Bench, Collection, Failure, Passed, Updates, any, column};
use crate::readback;
use crate::sample::{Described, ID, SEQ, Write, field, stored};
use crate::task::Task;

const INTEGER: &[JsonType] = &[JsonType::Integer];
const NUMBER: &[JsonType] = &[JsonType::Number];
const TEXT: &[JsonType] = &[JsonType::String];

/// A field that values are tried in, and the values, as JSON.
struct Values {
    field: Projection,
    values: &'static [&'static str],
}

fn of(field: Projection, values: &'static [&'static str]) -> Values {
    Values { field, values }
}

/// Everything that a schema can say of a location, with values of its kind. None
/// is so extreme that a destination might refuse it.
fn every_type() -> Vec<Values> {
    use JsonType::{Array, Boolean, Integer, Null, Object, String};
    let format = |name: &str, format: &str| field(name, TEXT).format(format);
    vec![
        of(
            field("integer", INTEGER),
            &[
                "0",
                "-1",
                "9007199254740993",
                "-9007199254740993",
                "9223372036854775807",
                "-9223372036854775808",
            ],
        ),
        of(
            field("number", NUMBER),
            &[
                "0.1",
                "-2.5",
                "1e3",
                "1e100",
                "5e-324",
                "1.7976931348623157e308",
                "123456789.125",
                "0.30000000000000004",
                "100.00",
            ],
        ),
        of(
            field("string", TEXT),
            &[
                r#""""#,
                r#"" ""#,
                r#""a'b\"c\\d\ne\tf""#,
                r#""null""#,
                r#""äöü 日本語 🚲""#,
                r#""\u0001""#,
                r#""e\u0301""#,
                r#""; DROP TABLE x --""#,
                r#""%s {} $1 ?""#,
            ],
        ),
        of(field("boolean", &[Boolean]), &["true", "false"]),
        of(field("nullable", &[Integer, Null]), &["null", "1"]),
        of(field("null", &[Null]), &["null"]),
        of(
            field("array", &[Array]),
            &["[]", r#"[1, "a", null, [2.50]]"#],
        ),
        of(
            field("object", &[Object]),
            &["{}", r#"{"a": {"b": [1, 9007199254740993]}, "": null}"#],
        ),
        of(
            field("several", &[Integer, String, Null]),
            &["1", r#""1""#, r#""x""#, "null"],
        ),
        of(
            format("datetime", "date-time"),
            &[
                r#""2026-03-29T01:02:03Z""#,
                r#""2026-03-29t01:02:03.123456789z""#,
                r#""2026-03-29T01:02:03+05:30""#,
                r#""1969-12-31T23:59:59.5-11:00""#,
                r#""2026-06-23 00:15:23.918411+00:00""#,
            ],
        ),
        of(
            format("date", "date"),
            &[r#""2024-02-29""#, r#""1900-01-01""#],
        ),
        of(
            format("time", "time"),
            &[r#""23:59:59Z""#, r#""00:00:00.5+01:00""#],
        ),
        of(
            format("duration", "duration"),
            &[r#""P3DT4H""#, r#""PT0.5S""#],
        ),
        of(
            format("uuid", "uuid"),
            &[
                r#""0189d5c2-1f3a-7cc0-9d5e-0123456789ab""#,
                r#""0189D5C2-1F3A-7CC0-9D5E-0123456789AB""#,
            ],
        ),
        of(
            format("integertext", "integer"),
            &[r#""-12""#, r#""9223372036854775808""#],
        ),
        of(
            format("numbertext", "number"),
            &[r#""1.50""#, r#""NaN""#, r#""Infinity""#, r#""-Infinity""#],
        ),
        of(
            field("base64", TEXT).encoding("base64"),
            &[r#""""#, r#""AAEC/w==""#],
        ),
    ]
}

/// Returns a collection with a field of every type.
fn every_value() -> Collection {
    let fields = every_type().into_iter().map(|it| it.field);
    Collection {
        key: vec![field(ID, INTEGER).key()],
        values: [field(SEQ, INTEGER)].into_iter().chain(fields).collect(),
    }
}

/// Values that a destination may be unable to hold; then it has to say so.
const EXTREMES: &[(&str, &str)] = &[
    ("integer", "18446744073709551615"),
    ("integer", "-123456789012345678901234567890"),
    ("number", "9007199254740993"),
    ("number", "0.1234567890123456789012345678901"),
    ("number", "123456789.123456789123"),
    ("number", "1e400"),
    ("string", r#""a\u0000b""#),
    ("datetime", r#""0001-01-01T00:00:00Z""#),
    ("datetime", r#""9999-12-31T23:59:59.999999Z""#),
    ("datetime", r#""2025-11-29 01:05:28""#),
    ("numbertext", r#""1e400""#),
    ("integertext", r#""12345678901234567890123""#),
];

/// Either the document comes back as it was, or it is refused by its key.
pub(super) async fn extremes(bench: &Bench) -> Passed {
    let (mut held, mut refused) = (0, Vec::new());
    let collection = every_value();
    let mut task = bench.task("extremes", &[(any(bench)?, collection)]).await?;
    for (id, (field, value)) in (0..).zip(EXTREMES) {
        let text = format!("{{\"{ID}\": {id}, \"{SEQ}\": {id}, \"{field}\": {value}}}");
        let mut run = task.open().await?;
        match task.transact(&mut run, vec![stored(0, text)]).await {
            Ok(()) => held += 1,
            Err(Failure::Fault(fault)) => {
                document_error(&fault).map_err(|failure| failure.during(value))?;
                refused.push(format!("{field} {value}"));
            }
            Err(other) => return Err(other),
        }
    }
    Ok(match refused.as_slice() {
        [] => format!("{held} values are held"),
        refused => format!(
            "{held} values are held, and refused are {}",
            refused.join(", ")
        ),
    })
}

/// Documents come back as they were.
pub(super) async fn values(bench: &Bench) -> Passed {
    let kind = any(bench)?;
    let mut task = bench.task("values", &[(kind, every_value())]).await?;
    let count = store_every_value(&mut task).await?.len();
    task.check_committed().await?;
    let types = every_type().len();
    Ok(match kind {
        Updates::Standard => format!("{count} values of {types} types"),
        Updates::Delta => {
            format!("{count} values of {types} types are taken; nothing is loaded")
        }
    })
}

/// A value that was stored: its field, and its JSON.
type Stored = (Projection, &'static str);

/// Stores a document a value, the other fields absent; returns what has which
/// number in [`SEQ`].
async fn store_every_value(task: &mut Task<'_>) -> Result<BTreeMap<i64, Stored>, Failure> {
    let mut run = task.open().await?;
    let mut all = BTreeMap::new();
    for Values { field, values } in every_type() {
        let name = &field.field;
        let mut writes = Vec::new();
        for value in values {
            let id = all.len() as i64 + 1;
            let text = format!("{{\"{ID}\": {id}, \"{SEQ}\": {id}, \"{name}\": {value}}}");
            writes.push(stored(0, text));
            all.insert(id, (field.clone(), *value));
        }
        let doing = format!("values of {name}");
        task.transact(&mut run, writes)
            .await
            .map_err(|failure| failure.during(&doing))?;
    }
    Ok(all)
}

/// Columns hold what the documents say.
pub(super) async fn columns(bench: &Bench) -> Passed {
    let setup = &bench.setup;
    let command = setup.columns.as_ref().or(setup.readback.as_ref());
    let command = command.ok_or_else(|| Failure::not_applicable(NO_COLUMNS))?;
    let mut task = bench
        .task("columns", &[(any(bench)?, every_value())])
        .await?;
    let mut missing = store_every_value(&mut task).await?;
    let stored = missing.clone();
    let fields = every_type().into_iter().map(|it| it.field);
    let fields: Vec<Projection> = fields.collect();
    let mut compared = BTreeSet::new();
    for (seq, row) in readback::rows(&task, 0, command).await? {
        let Some((valued, value)) = stored.get(&seq) else {
            return Err(Failure::wrong(format!(
                "a row has the {SEQ} {seq}, and no document had it"
            )));
        };
        missing.remove(&seq);
        for field in &fields {
            let Some(found) = row.get(&field.field) else {
                continue;
            };
            let want = match field.field == valued.field {
                true => value,
                false => "null",
            };
            if !column::holds(field, want, found.get()) {
                return Err(Failure::wrong(format!(
                    "the column of {:?} holds {}, and the document has {}",
                    field.field,
                    shown(found.get()),
                    shown(want)
                )));
            }
            compared.insert(&field.field);
        }
    }
    if let Some((seq, (field, value))) = missing.first_key_value() {
        return Err(Failure::wrong(format!(
            "no row has the {SEQ} {seq}, of the document with {:?} {value}",
            field.field
        )));
    }
    match compared.len() {
        0 => Err(Failure::not_applicable(NO_COLUMNS)),
        count => Ok(format!(
            "{} values; columns compared: {count}",
            stored.len()
        )),
    }
}

/// Why columns cannot be compared.
const NO_COLUMNS: &str =
    "nothing shows the columns: give the setup a `columns` command that prints them";

/// Keys of a type, all of them different.
fn every_key() -> BTreeMap<&'static str, (Vec<Projection>, Vec<&'static str>)> {
    let one = |field: Projection| vec![field.key()];
    let text = one(field("k", TEXT));
    BTreeMap::from([
        (
            "integer",
            (
                one(field("k", INTEGER)),
                vec![
                    r#""k": 0"#,
                    r#""k": -1"#,
                    r#""k": 9007199254740992"#,
                    r#""k": 9007199254740993"#,
                    r#""k": 9223372036854775807"#,
                    r#""k": -9223372036854775808"#,
                ],
            ),
        ),
        (
            "text",
            (
                text,
                vec![
                    r#""k": """#,
                    r#""k": " ""#,
                    r#""k": "a""#,
                    r#""k": "a ""#,
                    r#""k": "A""#,
                    r#""k": "ä""#,
                    r#""k": "a\u0308""#,
                    r#""k": "ss""#,
                    r#""k": "ß""#,
                    r#""k": "1""#,
                    r#""k": "01""#,
                    r#""k": "日本""#,
                    r#""k": "\n""#,
                    r#""k": "🚲""#,
                ],
            ),
        ),
        (
            "instant",
            (
                one(field("k", TEXT).format("date-time")),
                vec![
                    r#""k": "2026-01-02T03:04:05Z""#,
                    r#""k": "2026-01-02T03:04:05.0Z""#,
                    r#""k": "2026-01-02T04:04:05+01:00""#,
                    r#""k": "2026-01-02t03:04:05z""#,
                ],
            ),
        ),
        (
            "uuid",
            (
                one(field("k", TEXT).format("uuid")),
                vec![
                    r#""k": "0189d5c2-1f3a-7cc0-9d5e-0123456789ab""#,
                    r#""k": "0189D5C2-1F3A-7CC0-9D5E-0123456789AB""#,
                ],
            ),
        ),
        (
            "boolean",
            (
                one(field("k", &[JsonType::Boolean])),
                vec![r#""k": true"#, r#""k": false"#],
            ),
        ),
        (
            "several",
            (
                vec![field("k", TEXT).key(), field("l", INTEGER).key()],
                vec![
                    r#""k": "a", "l": 11"#,
                    r#""k": "a1", "l": 1"#,
                    r#""k": "", "l": 1"#,
                    r#""k": "a", "l": -11"#,
                ],
            ),
        ),
    ])
}

/// All keys of a type at once, then each replaced.
pub(super) async fn keys(bench: &Bench) -> Passed {
    let mut count = 0;
    for (name, (key, keys)) in every_key() {
        let collection = Collection {
            key,
            values: vec![field(SEQ, INTEGER)],
        };
        let check = format!("keys-{name}");
        let mut task = bench
            .task(&check, &[(Updates::Standard, collection)])
            .await?;
        let mut run = task.open().await?;
        for round in 0..2 {
            let mut writes: Vec<Write> = Vec::new();
            for key in &keys {
                count += 1;
                writes.push(stored(0, format!("{{{key}, \"{SEQ}\": {count}}}")));
            }
            let doing = format!("keys of {name}, transaction {}", round + 1);
            task.transact(&mut run, writes)
                .await
                .map_err(|failure| failure.during(&doing))?;
        }
        drop(run);
        task.check_committed()
            .await
            .map_err(|failure| failure.during(&format!("keys of {name}")))?;
    }
    Ok(format!("{} keys of 6 types", count / 2))
}
