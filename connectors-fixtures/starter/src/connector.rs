//! What the connector is, and how a session begins.

use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_boilerplate::{
    ApplyRequest, ApplyResponse, Authority, Connector, ConnectorError, Constraint, ConstraintKind,
    Guarantee, NameLimits, OpenRequest, Opened, Projection, SpecResponse, ValidateBinding,
    ValidateRequest, ValidateResponse, ValidatedBinding, Wants, fence,
};

use crate::file::{Contents, Table, Task};
use crate::session::Session;

/// The connector.
#[derive(Clone, Copy, Debug, Default)]
pub struct StarterConnector;

/// What a catalog says of the endpoint.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    path: String,
}

/// What a catalog says of a binding.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resource {
    table: String,
}

impl Connector for StarterConnector {
    type Transactor = Session;

    fn spec(&self) -> SpecResponse {
        SpecResponse {
            config_schema: json!({
                "title": "JSON file",
                "type": "object",
                "required": ["path"],
                "additionalProperties": false,
                "properties": {
                    "path": {
                        "title": "Path",
                        "description": "The file. Its directory must exist.",
                        "type": "string",
                        "minLength": 1
                    }
                }
            }),
            resource_schema: json!({
                "title": "Table",
                "type": "object",
                "required": ["table"],
                "additionalProperties": false,
                "properties": {
                    "table": {
                        "title": "Table",
                        "description": "Where in the file the documents are.",
                        "type": "string",
                        "minLength": 1,
                        "x-collection-name": true
                    }
                }
            }),
            documentation_url: "https://example.com/materialize-starter".to_owned(),
            // All that the connector can reach: the directory of the file.
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
        read::<Config>("endpoint", &request.config)?;
        let bindings: Result<_, _> = request.bindings.iter().map(validated).collect();
        Ok(ValidateResponse {
            bindings: bindings?,
        })
    }

    fn apply(&self, request: &ApplyRequest) -> Result<ApplyResponse, ConnectorError> {
        let path = read::<Config>("endpoint", &request.next.config)?.path;
        let mut contents = Contents::read(&path)?;
        let mut actions = Vec::new();
        for (index, binding) in (0..).zip(&request.next.bindings) {
            let name = read::<Resource>("resource", &binding.resource)?.table;
            let made = Table::of(&request.next.task, binding.backfill);
            match contents.tables.get(&name) {
                Some(table) if table.task != made.task => {
                    return Err(ConnectorError::schema(format!(
                        "table {name:?} is of task {}: name another table",
                        table.task
                    ))
                    .of_binding(index));
                }
                Some(table) if table.backfill >= made.backfill => continue,
                _ => {}
            }
            actions.push(format!("make table {name:?}, empty"));
            contents.tables.insert(name, made);
        }
        if !request.dry_run && !actions.is_empty() {
            contents.write(&path)?;
        }
        Ok(ApplyResponse {
            actions,
            patch: None,
        })
    }

    fn open(&self, request: &OpenRequest) -> Result<(Opened, Session), ConnectorError> {
        let spec = &request.spec;
        let path = read::<Config>("endpoint", &spec.config)?.path;
        let mut tables = Vec::new();
        for binding in &spec.bindings {
            tables.push(read::<Resource>("resource", &binding.resource)?.table);
        }
        // The fence rises together with reading the checkpoint: whoever was before
        // can commit no more.
        let mut contents = Contents::read(&path)?;
        let held = contents.tasks.get(&spec.task);
        let fence = fence::raise(held.map(|task| task.fence), request.fence)?;
        let checkpoint = held.and_then(|task| task.checkpoint.clone());
        let task = Task {
            fence,
            checkpoint: checkpoint.clone(),
        };
        contents.tasks.insert(spec.task.clone(), task);
        contents.write(&path)?;
        let opened = Opened {
            authority: Authority::Remote,
            guarantee: Guarantee::ExactlyOnce,
            checkpoint,
            jitter_key: None,
        };
        Ok((opened, Session::new(path, spec.task.clone(), fence, tables)))
    }
}

/// Says which fields a binding can hold: its key, and the document as a whole.
fn validated(binding: &ValidateBinding) -> Result<ValidatedBinding, ConnectorError> {
    let resource = read::<Resource>("resource", &binding.resource)?;
    let constraint = |projection: &Projection| {
        let (kind, reason) = match (projection.key, projection.pointer.is_empty()) {
            (true, _) => (ConstraintKind::Required, "it is part of the key"),
            (_, true) => (ConstraintKind::Required, "it is what is kept"),
            _ => (ConstraintKind::Optional, "the document has it"),
        };
        Constraint {
            kind,
            reason: reason.to_owned(),
        }
    };
    let fields = binding.projections.iter();
    Ok(ValidatedBinding {
        resource_path: vec![resource.table],
        delta_updates: false,
        constraints: fields
            .map(|projection| (projection.field.clone(), constraint(projection)))
            .collect(),
    })
}

fn read<'v, T: Deserialize<'v>>(what: &str, value: &'v Value) -> Result<T, ConnectorError> {
    T::deserialize(value).map_err(|error| {
        ConnectorError::config(format!("the {what} configuration is wrong: {error}"))
    })
}
