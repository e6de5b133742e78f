//! A session: one transaction after the other.

use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_boilerplate::{ConnectorError, Fence, Keys, Loaded, Stores, Transactor, fence};

use crate::file::{Contents, key_text};

/// A session, and the transaction that it has open.
pub struct Session {
    path: String,
    task: String,
    fence: Fence,
    /// The table of each binding.
    tables: Vec<String>,
    stored: Vec<Stored>,
}

/// A document to write, or a key to delete.
struct Stored {
    table: usize,
    key: String,
    document: Option<Box<RawValue>>,
}

impl Session {
    pub(crate) fn new(path: String, task: String, fence: Fence, tables: Vec<String>) -> Session {
        Session {
            path,
            task,
            fence,
            tables,
            stored: Vec::new(),
        }
    }
}

impl Transactor for Session {
    fn load(
        &mut self,
        binding: u32,
        keys: Keys<'_>,
        loaded: &mut Loaded,
    ) -> Result<(), ConnectorError> {
        let contents = Contents::read(&self.path)?;
        let table = contents.table(&self.tables[binding as usize])?;
        for key in keys {
            let key = key?;
            if let Some(document) = table.rows.get(&key_text(key.tuple)) {
                loaded.push(key.ordinal, document.get().as_bytes());
            }
        }
        Ok(())
    }

    fn store(&mut self, binding: u32, stores: Stores<'_>) -> Result<(), ConnectorError> {
        for store in stores {
            let store = store?;
            let document = match store.delete {
                true => None,
                false => Some(raw(store.document)?),
            };
            self.stored.push(Stored {
                table: binding as usize,
                key: key_text(store.key_tuple),
                document,
            });
        }
        Ok(())
    }

    /// Writes rows and checkpoint in one go, if nobody has opened the task since.
    ///
    /// Between reading the file and replacing it another host could come. A
    /// destination that has transactions closes that gap: check the fence and write
    /// in one of them.
    fn start_commit(&mut self, checkpoint: &str) -> Result<Option<Value>, ConnectorError> {
        let mut contents = Contents::read(&self.path)?;
        let task = contents.tasks.get_mut(&self.task);
        fence::check(task.as_ref().map(|task| task.fence), self.fence)?;
        if let Some(task) = task {
            task.checkpoint = Some(checkpoint.to_owned());
        }
        for Stored {
            table,
            key,
            document,
        } in self.stored.drain(..)
        {
            let table = contents.table_mut(&self.tables[table])?;
            match document {
                Some(document) => table.rows.insert(key, document),
                None => table.rows.remove(&key),
            };
        }
        contents.write(&self.path)?;
        Ok(None)
    }
}

fn raw(document: &[u8]) -> Result<Box<RawValue>, ConnectorError> {
    serde_json::from_slice(document)
        .map_err(|error| ConnectorError::internal(format!("a document is not JSON: {error}")))
}
