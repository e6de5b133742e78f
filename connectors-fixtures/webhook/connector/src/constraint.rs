//! Which fields can be sent: all of them, the whole document by default.

use std::collections::BTreeSet;

use tidegate_boilerplate::{
    ConnectorError, Constraint, ConstraintKind, Projection, ValidateRequest, ValidateResponse,
    ValidatedBinding,
};

use crate::config::{Config, Resource};

/// Answers a request.
pub(crate) fn validate(request: &ValidateRequest) -> Result<ValidateResponse, ConnectorError> {
    let target = Config::read(&request.config)?.target()?;
    let mut uris = BTreeSet::new();
    let bindings = (0..).zip(&request.bindings).map(|(index, binding)| {
        let path = Resource::read(&binding.resource).and_then(|resource| {
            let uri = target.uri(&resource.path)?.to_string();
            match uris.insert(uri) {
                true => Ok(resource.path),
                false => Err(ConnectorError::config(format!(
                    "path {:?} leads where another binding's leads: give each its own",
                    resource.path
                ))
                .of_field("path")),
            }
        });
        let constraints = binding.projections.iter();
        Ok(ValidatedBinding {
            resource_path: vec![path.map_err(|error| error.of_binding(index))?],
            delta_updates: true,
            constraints: constraints
                .map(|it| (it.field.clone(), constraint(it)))
                .collect(),
        })
    });
    Ok(ValidateResponse {
        bindings: bindings.collect::<Result<_, ConnectorError>>()?,
    })
}

fn constraint(projection: &Projection) -> Constraint {
    let (kind, reason) = match (&*projection.pointer, projection.key) {
        ("", _) => (ConstraintKind::Recommended, "the document is sent as it is"),
        (_, true) => (ConstraintKind::Recommended, "it is part of the key"),
        _ => (
            ConstraintKind::Optional,
            "it is sent where the whole document is not selected",
        ),
    };
    Constraint {
        kind,
        reason: reason.to_owned(),
    }
}
