//! Where things are in the directory.

use tidegate_boilerplate::Fence;

/// The folder of the connector's own files.
pub(crate) const OWN: &str = ".tidegate";

/// The folder of the manifests.
pub(crate) const MANIFEST: &str = "manifest";

/// The directory of a task.
#[derive(Clone, Debug)]
pub(crate) struct Root(String);

impl Root {
    /// Returns the directory at a path.
    pub(crate) fn new(path: &str) -> Self {
        Root(match path.trim_end_matches('/') {
            "" => "/".to_owned(),
            path => path.to_owned(),
        })
    }

    /// Returns the path of something in it; of itself, if it has no name.
    pub(crate) fn path(&self, name: &str) -> String {
        match (&*self.0, name) {
            (root, "") => root.to_owned(),
            ("/", name) => format!("/{name}"),
            (root, name) => format!("{root}/{name}"),
        }
    }

    /// Returns where the connector's own files are.
    pub(crate) fn own(&self) -> String {
        self.path(OWN)
    }

    /// Returns where all sessions stage.
    pub(crate) fn staged(&self) -> String {
        self.path(&format!("{OWN}/staged"))
    }

    /// Returns where a session stages, as seen from the directory.
    pub(crate) fn staged_by(fence: Fence) -> String {
        format!("{OWN}/staged/{}.{}", fence.epoch, fence.session)
    }

    /// Returns where a session writes a file that is to take another's place.
    pub(crate) fn aside(&self, fence: Fence) -> String {
        self.path(&format!("{OWN}/aside-{}.{}", fence.epoch, fence.session))
    }

    /// Returns the manifest of a transaction.
    pub(crate) fn manifest(&self, sequence: u64) -> String {
        // As many digits as the largest number has, so that names sort like numbers.
        self.path(&format!("{MANIFEST}/{sequence:020}.json"))
    }
}
