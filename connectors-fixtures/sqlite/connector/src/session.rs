//! A session: loads, stores and commits.
//!
//! ```text
//! load -> keys in chunks -> SELECT while the answer has room, the rest at flush
//! store -> BEGIN IMMEDIATE (once) -> INSERT, upsert, DELETE
//! start_commit -> checkpoint if the claim holds -> COMMIT
//! ```

use std::collections::VecDeque;

use serde_json::Value;
use tidegate_boilerplate::claim::Claim;
use tidegate_boilerplate::sqlite::Database;
use tidegate_boilerplate::text::{json_text, key_text};
use tidegate_boilerplate::tuple::{self, Element};
use tidegate_boilerplate::{
    ConnectorError, Keys, Loaded, Projection, Spec, SpecBinding, Store, Stores, Transactor, packed,
};

use crate::checkpoint;
use crate::column::{ColumnType, Unholdable};
use crate::config::Resource;
use crate::dialect::Sqlite;
use crate::record;

/// Keys of one query: enough to make the cost of the call small beside that of the
/// lookups, few enough that the host allows the answer even if each document has
/// 16 MiB (256 MiB in all).
const CHUNK_KEYS: usize = 16;

/// A session of the SQLite connector.
#[derive(Debug)]
pub struct Session {
    db: Database,
    claim: Claim,
    bindings: Vec<Binding>,
    /// Whether a SQLite transaction is open.
    writing: bool,
}

#[derive(Debug)]
struct Binding {
    table: String,
    key: Vec<Field>,
    values: Vec<Field>,
    has_document: bool,
    delta_updates: bool,
    insert: String,
    upsert: String,
    delete: String,
    select: String,
    waiting: VecDeque<Chunk>,
}

#[derive(Debug)]
struct Field {
    name: String,
    column: ColumnType,
}

/// Keys that are to be looked up.
#[derive(Debug)]
struct Chunk {
    first_ordinal: u32,
    count: usize,
    rows: Vec<u8>,
}

impl Session {
    /// Returns a session of a claim that has been made.
    pub(crate) fn new(db: Database, claim: Claim, spec: &Spec) -> Result<Self, ConnectorError> {
        let bindings = spec.bindings.iter().map(Binding::new);
        Ok(Self {
            db,
            claim,
            bindings: bindings.collect::<Result<_, _>>()?,
            writing: false,
        })
    }

    /// Runs a step of the transaction, after beginning it; an error rolls it back, so
    /// that others need not wait for this instance's end.
    fn write(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<(), ConnectorError>,
    ) -> Result<(), ConnectorError> {
        if !self.writing {
            self.db.execute("BEGIN IMMEDIATE", &[])?;
            self.writing = true;
        }
        let result = step(self);
        if result.is_err() {
            self.writing = false;
            // The first error is the one to tell. A rollback fails if SQLite has rolled back
            // already, and dropping the connection rolls back in any case.
            let _ = self.db.execute("ROLLBACK", &[]);
        }
        result
    }
}

impl Transactor for Session {
    fn load(
        &mut self,
        binding: u32,
        keys: Keys<'_>,
        loaded: &mut Loaded,
    ) -> Result<(), ConnectorError> {
        let binding = &mut self.bindings[binding as usize];
        for key in keys {
            let key = key?;
            let row = tuple::encode(&binding.key_row(key.tuple)?);
            binding.wait(key.ordinal, &row);
        }
        binding.look_up(&self.db, loaded)
    }

    fn flush(&mut self, binding: u32, loaded: &mut Loaded) -> Result<(), ConnectorError> {
        self.bindings[binding as usize].look_up(&self.db, loaded)
    }

    fn store(&mut self, binding: u32, stores: Stores<'_>) -> Result<(), ConnectorError> {
        let statements = self.bindings[binding as usize].sort(stores)?;
        self.write(|session| {
            let binding = &session.bindings[binding as usize];
            for (sql, rows) in [
                (&binding.insert, &statements.inserts),
                (&binding.upsert, &statements.upserts),
                (&binding.delete, &statements.deletes),
            ] {
                if !rows.is_empty() {
                    session
                        .db
                        .execute_many(sql, rows)
                        .map_err(|error| of_table(error, &binding.table))?;
                }
            }
            Ok(())
        })
    }

    fn start_commit(&mut self, checkpoint: &str) -> Result<Option<Value>, ConnectorError> {
        self.write(|session| {
            checkpoint::commit(&session.claim, &session.db, checkpoint)?;
            session.db.execute("COMMIT", &[])?;
            session.writing = false;
            Ok(())
        })?;
        Ok(None)
    }
}

/// Packed rows of a batch by what becomes of them. Each key comes once a
/// transaction, so their order does not matter.
#[derive(Debug, Default)]
struct Sorted {
    inserts: Vec<u8>,
    upserts: Vec<u8>,
    deletes: Vec<u8>,
}

impl Binding {
    fn new(spec: &SpecBinding) -> Result<Self, ConnectorError> {
        let resource = Resource::read(&spec.resource)?;
        let table = record::table(spec, &resource);
        let fields = |projections: &[Projection]| {
            let field = |it: &Projection| Field {
                name: it.field.clone(),
                column: ColumnType::of(it),
            };
            projections.iter().map(field).collect()
        };
        let document = spec.document.as_deref();
        Ok(Self {
            key: fields(&spec.key),
            values: fields(&spec.values),
            has_document: document.is_some(),
            delta_updates: resource.delta_updates,
            insert: table.insert(&Sqlite),
            upsert: table.upsert(&Sqlite),
            delete: table.delete(&Sqlite),
            select: table.select(&Sqlite, document.unwrap_or_default()),
            table: resource.table,
            waiting: VecDeque::new(),
        })
    }

    /// Notes a key that is to be looked up.
    fn wait(&mut self, ordinal: u32, row: &[u8]) {
        let goes_on = |chunk: &&mut Chunk| {
            let count = u32::try_from(chunk.count).expect("a chunk is small");
            chunk.count < CHUNK_KEYS && chunk.first_ordinal.checked_add(count) == Some(ordinal)
        };
        if let Some(chunk) = self.waiting.back_mut().filter(goes_on) {
            packed::push_row(&mut chunk.rows, row);
            chunk.count += 1;
            return;
        }
        let mut rows = Vec::new();
        packed::push_row(&mut rows, row);
        self.waiting.push_back(Chunk {
            first_ordinal: ordinal,
            count: 1,
            rows,
        });
    }

    /// Looks keys up while there is room for their documents.
    fn look_up(&mut self, db: &Database, loaded: &mut Loaded) -> Result<(), ConnectorError> {
        while !loaded.is_full() {
            let Some(chunk) = self.waiting.pop_front() else {
                break;
            };
            let found = db
                .query_many(&self.select, &chunk.rows)
                .map_err(|error| of_table(error, &self.table))?;
            for entry in packed::loaded(&found) {
                let (position, row) = entry?;
                match &tuple::decode(row)?[..] {
                    [Element::String(document)] => {
                        loaded.push(chunk.first_ordinal + position, document.as_bytes());
                    }
                    _ => {
                        return Err(ConnectorError::schema(format!(
                            "a row of table {:?} has no document, so it was not written by this connector: \
                             delete such rows, or raise the binding's backfill counter",
                            self.table
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    /// Converts every document of a batch, before any is written.
    fn sort(&self, stores: Stores<'_>) -> Result<Sorted, ConnectorError> {
        let mut sorted = Sorted::default();
        for store in stores {
            let store = store?;
            if self.delta_updates {
                packed::push_row(&mut sorted.inserts, &self.row(&store)?);
            } else if store.delete {
                let key = self.key_row(store.key_tuple)?;
                packed::push_row(&mut sorted.deletes, &tuple::encode(&key));
            } else if store.exists {
                packed::push_row(&mut sorted.upserts, &self.row(&store)?);
            } else {
                // No upsert: a row that exists although the host says that it does not is a fault
                // somewhere, and its reduction has missed what is in the row.
                packed::push_row(&mut sorted.inserts, &self.row(&store)?);
            }
        }
        Ok(sorted)
    }

    fn row(&self, store: &Store<'_>) -> Result<Vec<u8>, ConnectorError> {
        let mut row = self.key_row(store.key_tuple)?;
        row.extend(hold(&self.values, store.values_tuple, store.key_tuple)?);
        if self.has_document {
            row.push(Element::String(store.document_text()?.into()));
        }
        Ok(tuple::encode(&row))
    }

    fn key_row<'a>(&self, key: &'a [u8]) -> Result<Vec<Element<'a>>, ConnectorError> {
        let row = hold(&self.key, key, key)?;
        match row.iter().position(|it| matches!(it, Element::Nil)) {
            None => Ok(row),
            Some(position) => {
                let field = &self.key[position].name;
                Err(ConnectorError::document(format!(
                    "key field {field:?} is null, and a key column holds no null: give the location a default in \
                     the collection's schema"
                ))
                .of_key(key_text(&tuple::decode(key)?))
                .of_field(field))
            }
        }
    }
}

/// Converts the elements of a tuple to what their columns hold.
fn hold<'a>(
    fields: &[Field],
    elements: &'a [u8],
    key: &[u8],
) -> Result<Vec<Element<'a>>, ConnectorError> {
    let elements = tuple::decode(elements)?;
    if fields.len() != elements.len() {
        return Err(ConnectorError::internal(format!(
            "a tuple has {} elements for {} fields",
            elements.len(),
            fields.len()
        )));
    }
    let held = fields.iter().zip(elements).map(|(field, element)| {
        let held = field.column.hold(element);
        held.map_err(|unholdable| unholdable_error(field, &unholdable, key))
    });
    held.collect()
}

fn unholdable_error(field: &Field, unholdable: &Unholdable<'_>, key: &[u8]) -> ConnectorError {
    let Unholdable { element, reason } = unholdable;
    let key = tuple::decode(key).map(|key| key_text(&key));
    ConnectorError::document(format!(
        "field {:?} cannot hold {}: {reason}. Correct the document, exclude the field, or allow another type beside \
         it in the collection's schema, which makes the column JSON text",
        field.name,
        json_text(element),
    ))
    .of_key(key.unwrap_or_default())
    .of_field(&field.name)
}

fn of_table(error: ConnectorError, table: &str) -> ConnectorError {
    ConnectorError {
        message: format!("table {table:?}: {}", error.message),
        ..error
    }
}
