//! A session: rows are staged, named, and put in place.
//!
//! ```text
//! store -> staged file (one at a time) -> full, or another binding's turn -> synchronized
//! start_commit -> names decided -> patch        acknowledge -> published -> patch
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tidegate_boilerplate::{
    ConnectorError, Fence, Keys, Loaded, Spec, Stores, Transactor, directory, instant,
};

use crate::config::{Config, Resource};
use crate::format::Columns;
use crate::manifest::{self, Entry, Manifest, Pending, State};
use crate::output::{Output, Written};
use crate::root::Root;
use crate::{disk, owner};

/// A session of the files connector.
pub struct Session {
    root: Root,
    fence: Fence,
    config: Config,
    /// The last transaction that wrote files.
    sequence: u64,
    bindings: Vec<Binding>,
    /// The file that is being written, and for which binding. One at a time: bindings
    /// take turns, and each open file would hold buffers.
    output: Option<(usize, Output)>,
    /// The transaction's files that are whole: where, and for which binding.
    staged: Vec<(String, usize, Written)>,
    /// How many files the session has staged.
    begun: u64,
}

struct Binding {
    folder: String,
    backfill: u32,
    columns: Columns,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("root", &self.root)
            .field("fence", &self.fence)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Returns a session of a directory whose fence has been raised.
    pub(crate) fn new(
        root: Root,
        fence: Fence,
        config: Config,
        sequence: u64,
        spec: &Spec,
    ) -> Result<Self, ConnectorError> {
        let bindings = spec.bindings.iter().map(|spec| {
            Ok(Binding {
                folder: Resource::read(&spec.resource)?.folder,
                backfill: spec.backfill,
                columns: Columns::new(spec),
            })
        });
        Ok(Self {
            bindings: bindings.collect::<Result<_, ConnectorError>>()?,
            root,
            fence,
            config,
            sequence,
            output: None,
            staged: Vec::new(),
            begun: 0,
        })
    }

    /// Begins a staged file for a binding.
    fn begin(&mut self, binding: usize) -> Result<Output, ConnectorError> {
        owner::check(&self.root, self.fence)?;
        let path = self.root.path(&self.staged_name(self.begun));
        if self.begun == 0 {
            disk::make_directory(disk::parent(&path))?;
            // A session that was killed may have made these and no more.
            directory::synchronize(&self.root.own())?;
            directory::synchronize(&self.root.staged())?;
        }
        self.begun += 1;
        Output::begin(path, &self.config, &self.bindings[binding].columns)
    }

    fn staged_name(&self, number: u64) -> String {
        format!("{}/{number:05}", Root::staged_by(self.fence))
    }

    /// Ends the file that is being written, if one is.
    fn end(&mut self) -> Result<(), ConnectorError> {
        if let Some((binding, output)) = self.output.take() {
            let written = output.finish()?;
            let name = self.staged_name(self.begun - 1);
            self.staged.push((name, binding, written));
        }
        Ok(())
    }

    /// Decides what the staged files will be called.
    fn pending(&mut self, micros: i64) -> Pending {
        let sequence = self.sequence + 1;
        let mut counts = BTreeMap::new();
        let (mut files, mut staged) = (Vec::new(), Vec::new());
        for (name, binding, written) in self.staged.drain(..) {
            let Binding {
                folder, backfill, ..
            } = &self.bindings[binding];
            let directory = manifest::folder(folder, *backfill, self.config.partition, micros);
            let count: &mut u32 = counts.entry(binding).or_default();
            let extension = self.config.extension();
            files.push(Entry {
                path: format!("{directory}/{sequence:020}-{count:05}.{extension}"),
                folder: folder.clone(),
                backfill: *backfill,
                rows: written.rows,
                bytes: written.bytes,
            });
            staged.push(name);
            *count += 1;
        }
        let manifest = Manifest {
            sequence,
            committed_at: instant::text(micros),
            files,
        };
        Pending { manifest, staged }
    }
}

impl Transactor for Session {
    fn load(&mut self, _: u32, _: Keys<'_>, _: &mut Loaded) -> Result<(), ConnectorError> {
        Err(ConnectorError::internal(
            "files are not read back: every binding has delta updates",
        ))
    }

    fn store(&mut self, binding: u32, stores: Stores<'_>) -> Result<(), ConnectorError> {
        let binding = binding as usize;
        if self.output.as_ref().is_some_and(|(of, _)| *of != binding) {
            self.end()?;
        }
        for store in stores {
            let (_, mut output) = match self.output.take() {
                Some(output) => output,
                None => (binding, self.begin(binding)?),
            };
            output.push(&self.bindings[binding].columns, &store?)?;
            let full = output.is_full();
            self.output = Some((binding, output));
            if full {
                self.end()?;
            }
        }
        Ok(())
    }

    fn start_commit(&mut self, _: &str) -> Result<Option<Value>, ConnectorError> {
        self.end()?;
        if self.staged.is_empty() {
            return Ok(None);
        }
        // Before the host commits, what it commits must survive a power loss.
        directory::synchronize(&self.root.path(&Root::staged_by(self.fence)))?;
        owner::check(&self.root, self.fence)?;
        let pending = self.pending(now_micros());
        self.sequence = pending.manifest.sequence;
        let state = State {
            sequence: self.sequence,
            pending: Some(pending),
        };
        Ok(Some(serde_json::to_value(state).expect(
            "a state is text and numbers under names that are text",
        )))
    }

    fn acknowledge(
        &mut self,
        patches: &[Value],
        _recovery: bool,
    ) -> Result<Option<Value>, ConnectorError> {
        for patch in patches {
            if let Some(pending) = State::read(patch)?.pending {
                pending.publish(&self.root, self.fence)?;
            }
        }
        Ok((!patches.is_empty()).then(|| json!({ "pending": null })))
    }
}

fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.map_or(0, |since| since.as_micros());
    i64::try_from(micros).expect("microseconds since 1970 fit 64 bits for 292,000 years")
}
