//! Brings tables from what was applied to what the spec says.
//!
//! ```text
//! record, table -> plan -> statements, new record
//! ```
//!
//! A plan is made for each binding before any statement runs, and all of them run
//! in one SQLite transaction.

use tidegate_boilerplate::sql::{Dialect, collisions};
use tidegate_boilerplate::sqlite::Database;
use tidegate_boilerplate::{ApplyRequest, ApplyResponse, ConnectorError, SpecBinding};

use crate::checkpoint;
use crate::config::{Config, Resource};
use crate::dialect::Sqlite;
use crate::record::{self, Record, Shape};

/// Applies a spec, or says what applying it would do.
pub(crate) fn apply(request: &ApplyRequest) -> Result<ApplyResponse, ConnectorError> {
    let config = Config::read(&request.next.config)?;
    let db = Database::open(&config.path)?;
    if request.dry_run {
        let plans = plan_all(&db, request)?;
        return Ok(response(&plans));
    }
    db.execute("BEGIN IMMEDIATE", &[])?;
    // An error drops the connection, which rolls back.
    let plans = plan_all(&db, request)?;
    record::create(&db)?;
    checkpoint::create(&db)?;
    for plan in &plans {
        for statement in &plan.statements {
            db.execute(statement, &[])?;
        }
        record::write(&db, &plan.table, &plan.record)?;
    }
    if plans.iter().any(|plan| !plan.statements.is_empty()) {
        checkpoint::end_sessions(&db, &request.next.task)?;
    }
    db.execute("COMMIT", &[])?;
    Ok(response(&plans))
}

fn response(plans: &[Plan]) -> ApplyResponse {
    ApplyResponse {
        actions: plans
            .iter()
            .flat_map(|plan| plan.statements.clone())
            .collect(),
        patch: None,
    }
}

/// What is to be done for one binding.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    table: String,
    statements: Vec<String>,
    record: Record,
}

fn plan_all(db: &Database, request: &ApplyRequest) -> Result<Vec<Plan>, ConnectorError> {
    let bindings = (0..).zip(&request.next.bindings).map(|(index, binding)| {
        let resource = Resource::read(&binding.resource)?;
        let (record, exists) = record::read(db, &resource.table)?;
        plan(&request.next.task, binding, &resource, record, exists)
            .map_err(|error: ConnectorError| error.of_binding(index))
    });
    bindings.collect()
}

fn plan(
    task: &str,
    binding: &SpecBinding,
    resource: &Resource,
    record: Option<Record>,
    exists: bool,
) -> Result<Plan, ConnectorError> {
    check_columns(binding, resource)?;
    let name = &resource.table;
    let table = record::table(binding, resource);
    let made = |statements| Plan {
        table: name.clone(),
        statements,
        record: Record {
            task: task.to_owned(),
            backfill: binding.backfill,
            shape: Shape::of(binding, resource),
        },
    };
    let Some(record) = record else {
        if exists {
            return Err(ConnectorError::schema(format!(
                "table {name:?} exists and was not made by this connector: name another table in the binding's \
                 resource, or move the existing one away"
            )));
        }
        return Ok(made(vec![table.create(&Sqlite)]));
    };
    if record.task != task {
        return Err(ConnectorError::schema(format!(
            "table {name:?} belongs to task {}: name another table in the binding's resource",
            record.task
        )));
    }
    if binding.backfill > record.backfill {
        let drop = exists.then(|| table.drop(&Sqlite));
        let create = table.create(&Sqlite);
        return Ok(made(drop.into_iter().chain([create]).collect()));
    }
    if binding.backfill < record.backfill {
        return Err(ConnectorError::schema(format!(
            "table {name:?} was made for backfill counter {}, and the spec says {}: a counter is only ever raised",
            record.backfill, binding.backfill
        )));
    }
    if !exists {
        return Err(ConnectorError::schema(format!(
            "table {name:?} is gone, though it was made: raise the binding's backfill counter to fill it anew"
        )));
    }
    extend(binding, resource, record)
}

/// Plans the new columns of a table that stays.
fn extend(
    binding: &SpecBinding,
    resource: &Resource,
    mut record: Record,
) -> Result<Plan, ConnectorError> {
    let name = &resource.table;
    let table = record::table(binding, resource);
    let want = Shape::of(binding, resource);
    let have = &record.shape;
    let incompatible = |what: String| {
        Err(ConnectorError::schema(format!(
            "table {name:?} was made with {what}: raise the binding's backfill counter to make it anew"
        )))
    };
    if have.delta_updates != want.delta_updates {
        return incompatible(format!("delta_updates {}", have.delta_updates));
    }
    if have.key != want.key {
        let columns = have
            .key
            .iter()
            .map(|(name, sql_type)| format!("{name} {sql_type}"));
        let columns: Vec<_> = columns.collect();
        return incompatible(format!("another key, ({})", columns.join(", ")));
    }
    if have.document != want.document && !want.delta_updates {
        let document = have.document.as_deref().unwrap_or_default();
        return incompatible(format!("its document in column {document:?}"));
    }
    let mut statements = Vec::new();
    for column in &table.values {
        match have.values.get(&Sqlite.fold(&column.name)) {
            Some(sql_type) if *sql_type == column.sql_type => {}
            Some(sql_type) => {
                return incompatible(format!(
                    "column {:?} as {sql_type}, and it would be {} now",
                    column.name, column.sql_type
                ));
            }
            None => statements.push(table.add_column(&Sqlite, column)),
        }
    }
    record.shape.values.extend(want.values);
    record.shape.document = want.document;
    Ok(Plan {
        table: name.clone(),
        statements,
        record,
    })
}

/// Refuses names and numbers of columns that SQLite does.
fn check_columns(binding: &SpecBinding, resource: &Resource) -> Result<(), ConnectorError> {
    let table = record::table(binding, resource);
    let names: Vec<_> = table
        .key
        .iter()
        .chain(&table.values)
        .map(|it| &*it.name)
        .collect();
    for name in &names {
        if let Some(reason) = Sqlite.refuse(name) {
            let message = format!("field {name:?} cannot be a column: {reason}");
            return Err(ConnectorError::schema(message).of_field(*name));
        }
    }
    if let Some((later, earlier)) = collisions(&Sqlite, names.iter().copied())
        .into_iter()
        .next()
    {
        return Err(ConnectorError::schema(format!(
            "fields {earlier:?} and {later:?} are one column to SQLite: exclude one, or give it another name \
             with a projection"
        ))
        .of_field(later));
    }
    if names.len() > Sqlite::COLUMNS_MAX {
        return Err(ConnectorError::schema(format!(
            "table {:?} would have {} columns, and SQLite allows {}: exclude fields",
            table.name,
            names.len(),
            Sqlite::COLUMNS_MAX
        )));
    }
    Ok(())
}
