//! What the connector says of itself and of fields.

use std::collections::BTreeSet;

use jsonschema::draft202012;
use tidegate_host::sandbox::SessionConfig;
use tidegate_wit::message::ConstraintKind;

use super::{Bench, Collection, Failure, Passed, any};

/// The spec is whole, and the same each time.
pub(super) async fn spec(bench: &Bench) -> Passed {
    let spec = &bench.spec;
    for (name, schema) in [
        ("configSchema", &spec.config_schema),
        ("resourceSchema", &spec.resource_schema),
    ] {
        draft202012::new(schema)
            .map_err(|error| Failure::wrong(format!("the {name} does not compile: {error}")))?;
    }
    if spec.documentation_url.is_empty() {
        return Err(Failure::wrong("the spec has no documentationUrl"));
    }
    let config = SessionConfig::without_grants("conformance/spec");
    let again = bench.component.start(config).await?.spec().await?;
    if again != *spec {
        return Err(Failure::wrong("the spec is another one each time"));
    }
    Ok(String::new())
}

/// Every field has its constraint, every binding its resource.
pub(super) async fn validate(bench: &Bench) -> Passed {
    let kind = any(bench)?;
    let mut asked = Vec::new();
    for nth in 0..2 {
        asked.push((bench.resource(kind, "validate", nth)?, Collection::plain()));
    }
    let answer = bench.validate(&asked).await?;
    if answer != bench.validate(&asked).await? {
        return Err(Failure::wrong("validate answers something else each time"));
    }
    if answer.bindings.len() != asked.len() {
        return Err(Failure::wrong(format!(
            "validate answered for {} bindings of {}",
            answer.bindings.len(),
            asked.len()
        )));
    }
    let mut paths = BTreeSet::new();
    for (validated, (_, collection)) in answer.bindings.iter().zip(&asked) {
        for projection in collection.projections() {
            let field = &projection.field;
            let constraint = validated.constraints.get(field).ok_or_else(|| {
                Failure::wrong(format!("validate says nothing of the field {field:?}"))
            })?;
            if constraint.kind == ConstraintKind::Forbidden && constraint.reason.is_empty() {
                return Err(Failure::wrong(format!(
                    "the field {field:?} is forbidden without a reason"
                )));
            }
        }
        if !paths.insert(&validated.resource_path) {
            return Err(Failure::wrong(format!(
                "two resources have the path {:?}",
                validated.resource_path
            )));
        }
    }
    Ok(String::new())
}
