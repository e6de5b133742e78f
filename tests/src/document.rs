//! Two collections that most tests use, and documents for them.

use fastrand::Rng;
use serde_json::{Value, json};

/// The collection that keeps the last document of a key, and deletes.
pub const ORDERS: &str = "acmeCo/orders";

/// The collection that adds up.
pub const SALES: &str = "acmeCo/sales";

/// Returns the schema of documents that replace each other.
pub fn order_schema() -> Value {
    json!({
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": { "type": "integer" },
            "status": { "type": "string" },
            "total": { "type": "number" },
            "line": { "type": "integer" },
            "_meta": {
                "type": "object",
                "properties": { "op": { "type": "string", "enum": ["c", "u", "d"] } },
            },
        },
    })
}

/// Returns the schema of documents that add up.
pub fn sale_schema() -> Value {
    json!({
        "type": "object",
        "required": ["id"],
        "reduce": { "strategy": "merge" },
        "properties": {
            "id": { "type": "integer" },
            "n": { "type": "integer", "reduce": { "strategy": "sum" } },
            "revenue": { "type": "number", "reduce": { "strategy": "sum" } },
            "last": { "type": "integer" },
        },
    })
}

/// Returns `count` orders over `keys` keys; about one in ten deletes.
pub fn orders(random: &mut Rng, count: usize, keys: u32) -> Vec<String> {
    let order = |line| {
        let id = random.u32(1..=keys);
        let op = if random.u32(0..10) == 0 { "d" } else { "u" };
        let total = money(random, 100_000);
        let status = random
            .choice(["placed", "paid", "shipped"])
            .expect("there is a choice");
        // The space after the colons and the zeros at the end of a number are
        // for whoever takes text for a value.
        format!(
            r#"{{"id": {id},"status":"{status}","total":{total},"line":{line},"_meta":{{"op":"{op}"}}}}"#
        )
    };
    (1..=count).map(order).collect()
}

/// Returns `count` sales over `keys` keys.
pub fn sales(random: &mut Rng, count: usize, keys: u32) -> Vec<String> {
    let sale = |line| {
        let id = random.u32(1..=keys);
        let n = random.i32(-3..10);
        let revenue = money(random, 100_000);
        format!(r#"{{"id":{id},"n":{n},"revenue":{revenue},"last":{line}}}"#)
    };
    (1..=count).map(sale).collect()
}

/// Hundredths add up to nonsense in binary, which is why they are here.
fn money(random: &mut Rng, cents_max: u32) -> String {
    let cents = random.u32(0..cents_max);
    format!("{}.{:02}", cents / 100, cents % 100)
}
