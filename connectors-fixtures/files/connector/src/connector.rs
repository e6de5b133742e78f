//! What the connector is, and how a session begins.

use tidegate_boilerplate::{
    ApplyRequest, ApplyResponse, Authority, Connector, ConnectorError, Guarantee, KeyRange,
    NameLimits, OpenRequest, Opened, SpecResponse, ValidateRequest, ValidateResponse, Wants,
};

use crate::config::{Config, Resource};
use crate::manifest::State;
use crate::root::Root;
use crate::session::Session;
use crate::{apply, constraint, disk, owner};

/// The files connector.
#[derive(Clone, Copy, Debug, Default)]
pub struct FilesConnector;

impl Connector for FilesConnector {
    type Transactor = Session;

    fn spec(&self) -> SpecResponse {
        SpecResponse {
            config_schema: Config::schema(),
            resource_schema: Resource::schema(),
            documentation_url: "https://en.wikipedia.org/wiki/JSON_streaming".to_owned(),
            wants: Wants {
                network: Vec::new(),
                directory: vec!["/path".to_owned()],
            },
            defers_to_schedule: true,
            hard_delete_pointer: None,
            name_limits: NameLimits::default(),
        }
    }

    fn validate(&self, request: &ValidateRequest) -> Result<ValidateResponse, ConnectorError> {
        constraint::validate(request)
    }

    fn apply(&self, request: &ApplyRequest) -> Result<ApplyResponse, ConnectorError> {
        apply::apply(request)
    }

    fn open(&self, request: &OpenRequest) -> Result<(Opened, Session), ConnectorError> {
        let spec = &request.spec;
        // Shards acknowledge each for itself, and a manifest is a whole transaction's.
        if request.range != KeyRange::FULL {
            return Err(ConnectorError::config(
                "files are written by one shard: run the task without others",
            ));
        }
        let config = Config::read(&spec.config)?;
        let root = Root::new(&config.path);
        let state = State::read(&request.state)?;
        // A host that knows of nothing would be refused by the fence as well, and come again
        // with a higher one until it is the highest: better to say at once what is wrong.
        if state == State::default() {
            state.check(&root)?;
        }
        owner::open(&root, &spec.task, request.fence)?;
        state.check(&root)?;
        remove_orphans(&root, &state)?;
        let opened = Opened {
            authority: Authority::Log,
            guarantee: Guarantee::ExactlyOnce,
            checkpoint: None,
            jitter_key: None,
        };
        let session = Session::new(root, request.fence, config, state.sequence, spec)?;
        Ok((opened, session))
    }
}

/// Removes what earlier sessions staged and nobody committed, and what they were
/// about to put in the place of something else.
fn remove_orphans(root: &Root, state: &State) -> Result<(), ConnectorError> {
    for name in disk::names(&root.own())? {
        if name.starts_with("aside-") {
            disk::remove(&format!("{}/{name}", root.own()))?;
        }
    }
    let staged = root.staged();
    for session in disk::names(&staged)? {
        let directory = format!("{staged}/{session}");
        let mut kept = false;
        for name in disk::names(&directory)? {
            let file = format!("{}/staged/{session}/{name}", crate::root::OWN);
            match state.names(&file) {
                true => kept = true,
                false => disk::remove(&root.path(&file))?,
            }
        }
        if !kept {
            disk::remove_directory(&directory)?;
        }
    }
    Ok(())
}
