//! Keys: a location that every document has, of a type that compares, and that nothing changes.

use crate::diagnostic::{Code, Report, Severity};
use crate::load::tokens;
use crate::model::{Collection, Draft, Located, Resolved, nearest};
use crate::schema::{Shape, Types};

/// Types that a key may have.
pub(super) fn key_types() -> Types {
    Types::BOOLEAN.or(Types::INTEGER).or(Types::STRING)
}

/// Reports what is wrong with the keys of all collections.
pub(crate) fn check_keys(draft: &Draft, report: &mut Report) {
    for collection in draft.collections.values() {
        let Some(resolved) = &collection.resolved else {
            continue;
        };
        for key in &collection.key {
            check_key(draft, collection, resolved, key, report);
        }
    }
}

fn check_key(
    draft: &Draft,
    collection: &Collection,
    resolved: &Resolved,
    key: &Located<String>,
    report: &mut Report,
) {
    let sources = draft.sources();
    let (pointer, name) = (&key.value, &collection.name);
    let Some(located) = resolved.shape.locate(pointer) else {
        if !resolved.complete {
            return;
        }
        let known = resolved.projections.iter().map(|it| it.pointer.as_str());
        let help = match nearest(pointer, known) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => "describe the location in the schema, and require it".to_owned(),
        };
        let message = if resolved.shape.admits(pointer) {
            format!(
                "the schema of \"{name}\" does not name the key location {pointer}, so documents may lack it"
            )
        } else {
            format!("documents of \"{name}\" cannot have the key location {pointer}")
        };
        report
            .add(sources, Code::KeyUnknown, &key.spot, message)
            .help(help);
        return;
    };
    let shape = located.shape;
    if !located.required && shape.default.is_none() {
        let parent = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
        let last = tokens(pointer).last().unwrap_or_default();
        let parent = match parent {
            "" => "the schema".to_owned(),
            parent => format!("the schema of {parent}, as far up as the document"),
        };
        report
            .add(
                sources,
                Code::KeyOptional,
                &key.spot,
                format!("documents of \"{name}\" may lack the key location {pointer}"),
            )
            .help(format!(
                "add \"{last}\" to \"required\" in {parent}, or give the location a default"
            ));
    }
    let is_known = resolved.complete || shape.types != Types::ANY;
    if let Some(problem) = type_problem(shape).filter(|_| is_known) {
        let message = format!(
            "the key location {pointer} of \"{name}\" {}",
            problem.message
        );
        report
            .add(sources, problem.code, &key.spot, message)
            .help(problem.help);
    }
    if let Some((strategy, span)) = &shape.reduce {
        report
            .add(
                sources,
                Code::KeyReduced,
                &key.spot,
                format!("the key location {pointer} of \"{name}\" has the reduction \"{strategy}\", and a key never changes"),
            )
            .related(
                sources,
                &crate::diagnostic::Spot::new(&key.spot.pointer, *span),
                "the reduction is here",
            )
            .help("remove the reduction, or choose another key");
    }
    if let Some(default) = &shape.default
        && !Types::of(default).within(shape.types)
    {
        report
            .add(
                sources,
                Code::KeyType,
                &key.spot,
                format!(
                    "the default of the key location {pointer} is {}, and the location is {}",
                    Types::of(default),
                    shape.types
                ),
            )
            .severity(Severity::Error)
            .help("give it a default of its own type");
    }
}

/// Why a location is no key.
pub(super) struct TypeProblem {
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) help: &'static str,
}

/// Says why values of a location cannot be keys.
pub(super) fn type_problem(shape: &Shape) -> Option<TypeProblem> {
    let types = shape.types;
    let problem = |code, message: String, help| {
        Some(TypeProblem {
            code,
            message,
            help,
        })
    };
    if types == Types::ANY {
        return problem(
            Code::KeyType,
            "may be of any type, and a key is text, an integer or a boolean".to_owned(),
            "give it a \"type\"",
        );
    }
    if types.meets(Types::NULL) {
        return problem(
            Code::KeyNullable,
            "may be null, and a destination cannot hold null in a key".to_owned(),
            "remove \"null\" from its types; a location that may be absent can have a default instead",
        );
    }
    if types.meets(Types::FRACTION) {
        return problem(
            Code::KeyType,
            "may be a fractional number, and such numbers do not compare equal everywhere"
                .to_owned(),
            "make it \"type: integer\", or text with \"format: number\"",
        );
    }
    if !types.within(key_types()) {
        return problem(
            Code::KeyType,
            format!("may be {types}, and a key is text, an integer or a boolean"),
            "choose a location of one of these types",
        );
    }
    None
}
