//! Whose the directory is: the task, and the session that opened it last.
//!
//! ```text
//! apply -> claim | refuse          open -> raise the fence          every later step -> check it
//! ```

use serde::{Deserialize, Serialize};
use tidegate_boilerplate::{ConnectorError, Fence, directory, fence};

use crate::disk;
use crate::root::{OWN, Root};

/// What is in `.tidegate/task.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Owner {
    task: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fence: Option<Fence>,
}

/// Before any session, nobody has a fence.
const UNFENCED: Fence = Fence {
    epoch: 0,
    session: 0,
};

fn path(root: &Root) -> String {
    root.path(&format!("{OWN}/task.json"))
}

/// Reads whose the directory is, if it is anybody's.
fn read(root: &Root) -> Result<Option<Owner>, ConnectorError> {
    let path = path(root);
    let Some(bytes) = disk::read(&path)? else {
        return Ok(None);
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        ConnectorError::schema(format!(
            "{path:?} is damaged: {error}. Restore it from a copy, or name another directory"
        ))
    })
}

/// Makes the directory a task's; says whether there was anything to do.
pub(crate) fn claim(root: &Root, task: &str, dry_run: bool) -> Result<bool, ConnectorError> {
    match read(root)? {
        Some(owner) => owner.check_task(root, task).map(|()| false),
        None if dry_run => Ok(true),
        None => {
            disk::make_directory(&root.own())?;
            // Also where it was made before, by a host that was killed then.
            directory::synchronize(&root.path(""))?;
            let owner = Owner {
                task: task.to_owned(),
                fence: None,
            };
            owner.write(root, UNFENCED).map(|()| true)
        }
    }
}

/// Raises the fence of a task's directory.
pub(crate) fn open(root: &Root, task: &str, own: Fence) -> Result<(), ConnectorError> {
    let Some(mut owner) = read(root)? else {
        return Err(ConnectorError::schema(format!(
            "{:?} is not there: the task was never applied to this directory, or the directory was emptied or \
             replaced. Put it back, or name another directory and raise the bindings' backfill counters",
            path(root)
        )));
    };
    owner.check_task(root, task)?;
    owner.fence = Some(fence::raise(owner.fence, own)?);
    owner.write(root, own)
}

/// Refuses a session that is not the last one that opened the directory.
pub(crate) fn check(root: &Root, own: Fence) -> Result<(), ConnectorError> {
    fence::check(read(root)?.and_then(|owner| owner.fence), own)
}

impl Owner {
    fn check_task(&self, root: &Root, task: &str) -> Result<(), ConnectorError> {
        if self.task == task {
            return Ok(());
        }
        Err(ConnectorError::schema(format!(
            "directory {:?} belongs to task {}: name another directory in the endpoint's path",
            root.path(""),
            self.task
        )))
    }

    fn write(&self, root: &Root, session: Fence) -> Result<(), ConnectorError> {
        let text = serde_json::to_vec(self).expect("an owner is text and numbers");
        disk::replace(&path(root), &root.aside(session), &text)
    }
}
