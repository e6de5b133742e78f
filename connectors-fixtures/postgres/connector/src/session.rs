//! A session: loads, stores and commits.
//!
//! ```text
//! load -> keys wait; many of them go to a temporary table
//! flush -> the rest of the keys, then documents while the answer has room
//! store -> BEGIN (once) -> COPY of what is new, COPY of what is not into temporary tables
//! start_commit -> merge, delete -> checkpoint if the claim holds -> COMMIT
//! ```

use fallible_iterator::FallibleIterator;
use serde_json::Value;
use tidegate_boilerplate::text::{json_text, key_text};
use tidegate_boilerplate::tuple::{self, Element};
use tidegate_boilerplate::{ConnectorError, Key, Keys, Loaded, Store, Stores, Transactor};

use crate::checkpoint::Claim;
use crate::client::{Client, unreadable};
use crate::column::ColumnType;
use crate::copy::Rows;
use crate::table::{Column, Table, Temporary};

/// Rows wait for each other up to this size, of each kind and binding: enough to make
/// a round trip cheap, and little beside what an instance may use with many bindings.
const ROWS_BYTES: usize = 512 << 10;

/// A session of the PostgreSQL connector.
#[derive(Debug)]
pub struct Session {
    client: Client,
    claim: Claim,
    bindings: Vec<Binding>,
    /// Whether a transaction is open.
    writing: bool,
    /// The binding whose rows wait.
    storing: Option<usize>,
}

/// A binding, and what of it waits to be sent.
#[derive(Debug)]
struct Binding {
    index: usize,
    table: Table,
    keys: Staged,
    /// Whether documents of a flush are still to be read.
    flushing: bool,
    inserts: Rows,
    upserts: Staged,
    deletes: Staged,
}

/// Rows for a temporary table.
#[derive(Debug)]
struct Staged {
    temporary: Temporary,
    rows: Rows,
    /// Whether the temporary table has been made.
    made: bool,
    /// Whether rows of this transaction are in it.
    filled: bool,
    /// Whether rows that have been used are in it.
    used: bool,
}

impl Staged {
    fn new(temporary: Temporary) -> Self {
        Self {
            temporary,
            rows: Rows::default(),
            made: false,
            filled: false,
            used: false,
        }
    }

    /// Sends the rows that wait.
    fn send(
        &mut self,
        client: &mut Client,
        table: &Table,
        index: usize,
    ) -> Result<(), ConnectorError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        if !self.made {
            client.run(&table.create_temporary(self.temporary, index))?;
            self.made = true;
        }
        client.copy(&self.temporary.copy(index), &self.rows.take())?;
        self.filled = true;
        Ok(())
    }
}

impl Session {
    /// Returns a session of a claim that has been made.
    pub(crate) fn new(client: Client, claim: Claim, tables: Vec<Table>) -> Self {
        let bindings = tables.into_iter().enumerate();
        Self {
            client,
            claim,
            bindings: bindings
                .map(|(index, table)| Binding::new(index, table))
                .collect(),
            writing: false,
            storing: None,
        }
    }

    /// Runs a step of the transaction, after beginning it; an error rolls it back, so
    /// that others need not wait for this instance's end.
    fn write(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<(), ConnectorError>,
    ) -> Result<(), ConnectorError> {
        let error = match self.begin().and_then(|()| step(self)) {
            Err(error) if self.writing => error,
            result => return result,
        };
        self.writing = false;
        // A rollback fails if the connection is lost, and then the server rolls back by itself.
        if self.client.run("ROLLBACK").is_ok() {
            // A stale session meets the rows of the one that took over, as duplicate keys,
            // before it meets its fence: what is told is the cause.
            self.claim.check(&mut self.client)?;
        }
        Err(error)
    }

    /// Begins the transaction, in which keys that have been looked up are forgotten.
    fn begin(&mut self) -> Result<(), ConnectorError> {
        if self.writing {
            return Ok(());
        }
        // The fence needs to see what others have committed, whatever the server's default.
        self.client.run("BEGIN ISOLATION LEVEL READ COMMITTED")?;
        self.writing = true;
        let used = self.bindings.iter_mut().filter(|it| it.keys.used);
        let used: Vec<_> = used
            .map(|binding| {
                binding.keys.used = false;
                Temporary::Load.name(binding.index)
            })
            .collect();
        if !used.is_empty() {
            self.client.run(&format!("TRUNCATE {}", used.join(", ")))?;
        }
        Ok(())
    }

    /// Sends what waits of the binding that was stored last.
    fn send_stored(&mut self) -> Result<(), ConnectorError> {
        match self.storing.take() {
            Some(last) => self.bindings[last].send_stored(&mut self.client, 0),
            None => Ok(()),
        }
    }
}

impl Transactor for Session {
    fn load(&mut self, binding: u32, keys: Keys<'_>, _: &mut Loaded) -> Result<(), ConnectorError> {
        let binding = &mut self.bindings[binding as usize];
        for key in keys {
            binding.ask(key?)?;
        }
        if binding.keys.rows.len() >= ROWS_BYTES {
            binding
                .keys
                .send(&mut self.client, &binding.table, binding.index)?;
        }
        Ok(())
    }

    fn flush(&mut self, binding: u32, loaded: &mut Loaded) -> Result<(), ConnectorError> {
        self.bindings[binding as usize].look_up(&mut self.client, loaded)
    }

    fn store(&mut self, binding: u32, stores: Stores<'_>) -> Result<(), ConnectorError> {
        let index = binding as usize;
        self.write(|session| {
            if session.storing != Some(index) {
                session.send_stored()?;
                session.storing = Some(index);
            }
            let binding = &mut session.bindings[index];
            for store in stores {
                binding.take(&store?)?;
            }
            binding.send_stored(&mut session.client, ROWS_BYTES)
        })
    }

    fn start_commit(&mut self, checkpoint: &str) -> Result<Option<Value>, ConnectorError> {
        self.write(|session| {
            session.send_stored()?;
            for binding in &mut session.bindings {
                binding.merge(&mut session.client)?;
            }
            session.claim.commit(&mut session.client, checkpoint)?;
            session.client.run("COMMIT")?;
            session.writing = false;
            Ok(())
        })?;
        Ok(None)
    }
}

impl Binding {
    fn new(index: usize, table: Table) -> Self {
        Self {
            index,
            table,
            keys: Staged::new(Temporary::Load),
            flushing: false,
            inserts: Rows::default(),
            upserts: Staged::new(Temporary::Store),
            deletes: Staged::new(Temporary::Delete),
        }
    }

    /// Notes a key that is to be looked up.
    fn ask(&mut self, key: Key<'_>) -> Result<(), ConnectorError> {
        let rows = &mut self.keys.rows;
        rows.begin(1 + self.table.key.len());
        rows.push(|out| {
            out.extend(i64::from(key.ordinal).to_be_bytes());
            Ok::<_, ConnectorError>(())
        })?;
        push_key(rows, &self.table.key, key.tuple)
    }

    /// Reads documents of keys while there is room for them.
    fn look_up(&mut self, client: &mut Client, loaded: &mut Loaded) -> Result<(), ConnectorError> {
        if !self.flushing {
            self.keys
                .send(client, &self.table, self.index)
                .map_err(|error| of_table(error, &self.table))?;
            if !self.keys.filled {
                return Ok(());
            }
            client.stream(&self.table.select(self.index))?;
            self.flushing = true;
        }
        while !loaded.is_full() {
            let row = client.next_row();
            let Some(row) = row.map_err(|error| of_table(error, &self.table))? else {
                self.flushing = false;
                self.keys.filled = false;
                self.keys.used = true;
                break;
            };
            let fields: Vec<_> = row.ranges().collect().map_err(unreadable)?;
            let [Some(ordinal), document] = &fields[..] else {
                return Err(ConnectorError::internal(
                    "a row of loaded documents has no ordinal",
                ));
            };
            let Some(document) = document else {
                return Err(ConnectorError::schema(format!(
                    "a row of table {:?} has no document, so it was not written by this connector: delete such \
                     rows, or raise the binding's backfill counter",
                    self.table.name
                )));
            };
            let ordinal = row.buffer()[ordinal.clone()].try_into().ok();
            let ordinal = ordinal.and_then(|it| u32::try_from(i64::from_be_bytes(it)).ok());
            let ordinal = ordinal.ok_or_else(|| {
                ConnectorError::internal("a loaded document has an ordinal that was not asked for")
            })?;
            loaded.push(ordinal, &row.buffer()[document.clone()]);
        }
        Ok(())
    }

    /// Converts a document, to wait with others of its kind.
    fn take(&mut self, store: &Store<'_>) -> Result<(), ConnectorError> {
        if store.delete && !self.table.delta_updates {
            let rows = &mut self.deletes.rows;
            rows.begin(self.table.key.len());
            return push_key(rows, &self.table.key, store.key_tuple);
        }
        // No upsert of what is new: a row that exists although the host says that it does not
        // is a fault somewhere, and its reduction has missed what is in the row.
        let rows = match store.exists && !self.table.delta_updates {
            true => &mut self.upserts.rows,
            false => &mut self.inserts,
        };
        let table = &self.table;
        rows.begin(table.key.len() + table.values.len());
        push_key(rows, &table.key, store.key_tuple)?;
        let fields = table.values.len() - usize::from(table.document.is_some());
        push_fields(
            rows,
            &table.values[..fields],
            store.values_tuple,
            store.key_tuple,
        )?;
        if table.document.is_some() {
            rows.push(|out| {
                out.extend(store.document);
                Ok::<_, ConnectorError>(())
            })?;
        }
        Ok(())
    }

    /// Sends rows of each kind of which as many bytes wait.
    fn send_stored(&mut self, client: &mut Client, bytes: usize) -> Result<(), ConnectorError> {
        let table = &self.table;
        let mut send = || {
            if !self.inserts.is_empty() && self.inserts.len() >= bytes {
                client.copy(&table.copy(), &self.inserts.take())?;
            }
            for staged in [&mut self.upserts, &mut self.deletes] {
                if staged.rows.len() >= bytes {
                    staged.send(client, table, self.index)?;
                }
            }
            Ok(())
        };
        send().map_err(|error| of_table(error, table))
    }

    /// Brings what is in the temporary tables into the table.
    fn merge(&mut self, client: &mut Client) -> Result<(), ConnectorError> {
        // The server empties both at the transaction's end.
        if std::mem::take(&mut self.upserts.filled) {
            let merged = client.run(&self.table.merge(self.index));
            merged.map_err(|error| of_table(error, &self.table))?;
        }
        if std::mem::take(&mut self.deletes.filled) {
            let deleted = client.run(&self.table.delete(self.index));
            deleted.map_err(|error| of_table(error, &self.table))?;
        }
        Ok(())
    }
}

/// Adds the fields of a key to a row.
fn push_key(rows: &mut Rows, columns: &[Column], key: &[u8]) -> Result<(), ConnectorError> {
    let elements = tuple::decode(key)?;
    if let Some(position) = elements.iter().position(|it| matches!(it, Element::Nil))
        && let Some(column) = columns.get(position)
    {
        let field = &column.name;
        return Err(ConnectorError::document(format!(
            "key field {field:?} is null, and a key column holds no null: give the location a default in the \
             collection's schema"
        ))
        .of_key(key_text(&elements))
        .of_field(field));
    }
    push_fields(rows, columns, key, key)
}

/// Adds the elements of a tuple to a row, as their columns hold them.
fn push_fields(
    rows: &mut Rows,
    columns: &[Column],
    elements: &[u8],
    key: &[u8],
) -> Result<(), ConnectorError> {
    let elements = tuple::decode(elements)?;
    if columns.len() != elements.len() {
        return Err(ConnectorError::internal(format!(
            "a tuple has {} elements for {} fields",
            elements.len(),
            columns.len()
        )));
    }
    for (column, element) in columns.iter().zip(&elements) {
        column
            .column_type
            .push(rows, element)
            .map_err(|reason| unholdable(column, element, reason, key))?;
    }
    Ok(())
}

fn unholdable(column: &Column, element: &Element<'_>, reason: &str, key: &[u8]) -> ConnectorError {
    let key = tuple::decode(key).map(|key| key_text(&key));
    let advice = match column.column_type {
        ColumnType::KeyText => "Correct the document, or take another location as the key",
        _ => {
            "Correct the document, exclude the field, or leave out its format or allow another type beside it in \
             the collection's schema, which makes the column text or JSON"
        }
    };
    ConnectorError::document(format!(
        "field {:?} cannot hold {}: {reason}. {advice}",
        column.name,
        json_text(element),
    ))
    .of_key(key.unwrap_or_default())
    .of_field(&column.name)
}

fn of_table(error: ConnectorError, table: &Table) -> ConnectorError {
    ConnectorError {
        message: format!("table {:?}: {}", table.name, error.message),
        ..error
    }
}
