//! Brings tables from what was applied to what the spec says.
//!
//! ```text
//! record, table as it is -> plan -> statements, new record
//! ```
//!
//! A plan is made for each binding before any statement runs, and all of them run
//! in one transaction.

use std::collections::BTreeMap;

use tidegate_boilerplate::sql::{Dialect, collisions};
use tidegate_boilerplate::{ApplyRequest, ApplyResponse, ConnectorError};

use crate::checkpoint;
use crate::client::Client;
use crate::config::{Config, Resource};
use crate::dialect::{NAME_BYTES_MAX, Postgres};
use crate::login;
use crate::record::{self, Actual, ActualTable, Record, Shape};
use crate::table::{Column, Table};

/// Keeps applies apart, which else could both find that there is no table. The number
/// means nothing but that we are the only ones to use it: "tidegate" in ASCII.
const APPLY_LOCK: u64 = u64::from_be_bytes(*b"tidegate");

/// Applies a spec, or says what applying it would do.
pub(crate) fn apply(request: &ApplyRequest) -> Result<ApplyResponse, ConnectorError> {
    let config = Config::read(&request.next.config)?;
    let mut client = login::connect(&config)?;
    if request.dry_run {
        let plans = plan_all(&mut client, &config, request)?;
        let schemas = missing_schemas(&mut client, &config, &plans)?;
        return Ok(response(schemas, &plans));
    }
    client.run("BEGIN ISOLATION LEVEL READ COMMITTED")?;
    // An error drops the connection, which rolls back.
    client.run(&format!("SELECT pg_advisory_xact_lock({APPLY_LOCK})"))?;
    let plans = plan_all(&mut client, &config, request)?;
    let schemas = missing_schemas(&mut client, &config, &plans)?;
    for statement in &schemas {
        client.run(statement)?;
    }
    record::create(&mut client, &config.schema)?;
    checkpoint::create(&mut client, &config.schema)?;
    for plan in &plans {
        for statement in &plan.statements {
            client.run(statement)?;
        }
        record::write(&mut client, &config.schema, &plan.table, &plan.record)?;
    }
    if plans.iter().any(|plan| !plan.statements.is_empty()) {
        checkpoint::end_sessions(&mut client, &config.schema, &request.next.task)?;
    }
    client.run("COMMIT")?;
    Ok(response(schemas, &plans))
}

fn response(schemas: Vec<String>, plans: &[Plan]) -> ApplyResponse {
    let statements = plans.iter().flat_map(|plan| plan.statements.clone());
    ApplyResponse {
        actions: schemas.into_iter().chain(statements).collect(),
        patch: None,
    }
}

/// Returns what makes the schemas that are not there. `IF NOT EXISTS` would ask for a
/// right that a role with a schema of its own does not need.
fn missing_schemas(
    client: &mut Client,
    config: &Config,
    plans: &[Plan],
) -> Result<Vec<String>, ConnectorError> {
    let mut names: Vec<_> = plans.iter().map(|plan| &*plan.table.schema).collect();
    names.push(&config.schema);
    names.sort_unstable();
    names.dedup();
    let mut statements = Vec::new();
    for name in names {
        if !record::schema_exists(client, name)? {
            statements.push(format!("CREATE SCHEMA {}", Postgres.quote(name)));
        }
    }
    Ok(statements)
}

/// What is to be done for one binding.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    table: Table,
    statements: Vec<String>,
    record: Record,
}

fn plan_all(
    client: &mut Client,
    config: &Config,
    request: &ApplyRequest,
) -> Result<Vec<Plan>, ConnectorError> {
    let mut plans = Vec::new();
    for (index, binding) in (0..).zip(&request.next.bindings) {
        let resource = Resource::read(&binding.resource)?;
        let table = Table::of(binding, &resource, config);
        let (record, actual) = record::read(client, &config.schema, &table)?;
        let plan = plan(&request.next.task, binding.backfill, table, record, actual);
        plans.push(plan.map_err(|error| error.of_binding(index))?);
    }
    Ok(plans)
}

fn plan(
    task: &str,
    backfill: u32,
    table: Table,
    record: Option<Record>,
    actual: ActualTable,
) -> Result<Plan, ConnectorError> {
    check_columns(&table)?;
    let name = table.name.clone();
    let made = |table: Table, statements| {
        let shape = Shape::of(&table);
        let task = task.to_owned();
        Plan {
            table,
            statements,
            record: Record {
                task,
                backfill,
                shape,
            },
        }
    };
    let Some(record) = record else {
        if actual.is_some() {
            return Err(ConnectorError::schema(format!(
                "table {name:?} exists and was not made by this connector: name another table in the binding's \
                 resource, or move the existing one away"
            )));
        }
        let create = table.create();
        return Ok(made(table, vec![create]));
    };
    if record.task != task {
        return Err(ConnectorError::schema(format!(
            "table {name:?} belongs to task {}: name another table in the binding's resource",
            record.task
        )));
    }
    if backfill > record.backfill {
        let drop = actual.is_some().then(|| table.drop());
        let statements = drop.into_iter().chain([table.create()]).collect();
        return Ok(made(table, statements));
    }
    if backfill < record.backfill {
        return Err(ConnectorError::schema(format!(
            "table {name:?} was made for backfill counter {}, and the spec says {backfill}: a counter is only ever \
             raised",
            record.backfill
        )));
    }
    let Some(actual) = actual else {
        return Err(ConnectorError::schema(format!(
            "table {name:?} is gone, though it was made: raise the binding's backfill counter to fill it anew"
        )));
    };
    extend(table, record, &actual)
}

/// Plans the new and the wider columns of a table that stays.
fn extend(
    table: Table,
    mut record: Record,
    actual: &BTreeMap<String, Actual>,
) -> Result<Plan, ConnectorError> {
    let want = Shape::of(&table);
    check_shape(&table.name, &record.shape, &want)?;
    let mut statements = Vec::new();
    for column in &table.values {
        let folded = Postgres.fold(&column.name);
        match record.shape.values.get(&folded) {
            Some(sql_type) if sql_type == column.column_type.sql() => {}
            Some(sql_type) => {
                let widen = table.widen(column, sql_type);
                statements.push(widen.ok_or_else(|| {
                    let now = column.column_type.sql();
                    let what = format!(
                        "column {:?} as {sql_type}, and it would be {now} now",
                        column.name
                    );
                    incompatible(&table.name, &what)
                })?);
            }
            None => statements.push(table.add_column(column)),
        }
    }
    let recorded = record.shape.key.iter().map(|(name, sql)| (name, sql));
    for (name, sql_type) in recorded.chain(&record.shape.values) {
        check_actual(&table.name, name, sql_type, actual.get(name))?;
    }
    // Somebody may have made them so; rows without a value there must be possible.
    for name in record.shape.values.keys() {
        if actual.get(name).is_some_and(|it| it.not_null) {
            statements.push(table.drop_not_null(name));
        }
    }
    record.shape.values.extend(want.values);
    record.shape.document = want.document;
    Ok(Plan {
        table,
        statements,
        record,
    })
}

fn incompatible(table: &str, what: &str) -> ConnectorError {
    ConnectorError::schema(format!(
        "table {table:?} was made with {what}: raise the binding's backfill counter to make it anew"
    ))
}

fn check_shape(table: &str, have: &Shape, want: &Shape) -> Result<(), ConnectorError> {
    if have.delta_updates != want.delta_updates {
        let what = format!("delta_updates {}", have.delta_updates);
        return Err(incompatible(table, &what));
    }
    if have.key != want.key {
        let columns = have
            .key
            .iter()
            .map(|(name, sql_type)| format!("{name} {sql_type}"));
        let columns: Vec<_> = columns.collect();
        let what = format!("another key, ({})", columns.join(", "));
        return Err(incompatible(table, &what));
    }
    if have.document != want.document && !want.delta_updates {
        let document = have.document.as_deref().unwrap_or_default();
        let what = format!("its document in column {document:?}");
        return Err(incompatible(table, &what));
    }
    Ok(())
}

/// Refuses a column that somebody changed: rows go in as the type that it was made
/// with, and would be refused one by one, or be misread.
fn check_actual(
    table: &str,
    name: &str,
    sql_type: &str,
    actual: Option<&Actual>,
) -> Result<(), ConnectorError> {
    let changed = match actual {
        None => "has been dropped".to_owned(),
        Some(actual) if actual.sql_type == sql_type => return Ok(()),
        Some(actual) => format!("has been changed to {}", actual.sql_type),
    };
    Err(ConnectorError::schema(format!(
        "column {name:?} of table {table:?} was made as {sql_type} and {changed}: change it back, or raise the \
         binding's backfill counter to make the table anew"
    ))
    .of_field(name))
}

/// Refuses names and numbers of columns that PostgreSQL does.
fn check_columns(table: &Table) -> Result<(), ConnectorError> {
    let names: Vec<_> = table.columns().map(|it: &Column| &*it.name).collect();
    for name in &names {
        if let Some(reason) = Postgres.refuse(name) {
            let message = format!("field {name:?} cannot be a column: {reason}");
            return Err(ConnectorError::schema(message).of_field(*name));
        }
    }
    if let Some((later, earlier)) = collisions(&Postgres, names.iter().copied())
        .into_iter()
        .next()
    {
        return Err(ConnectorError::schema(format!(
            "fields {earlier:?} and {later:?} are one column to PostgreSQL, which keeps {NAME_BYTES_MAX} bytes of a \
             name: exclude one, or give it another name with a projection"
        ))
        .of_field(later));
    }
    if names.len() > Postgres::COLUMNS_MAX {
        return Err(ConnectorError::schema(format!(
            "table {:?} would have {} columns, and PostgreSQL allows {}: exclude fields",
            table.name,
            names.len(),
            Postgres::COLUMNS_MAX
        )));
    }
    Ok(())
}
