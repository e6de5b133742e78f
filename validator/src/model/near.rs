//! Names that an author probably meant, and names of connectors.

use std::cell::Cell;
use std::collections::BTreeSet;
use strsim::damerau_levenshtein;

/// Edits that still make one name a likely misspelling of another; more, and any short name is near all others.
const EDITS_MAX: usize = 2;

/// Suggestions of one run; a catalog with more unknown names lacks a file, and comparing all of them to all known
/// names takes minutes.
const SUGGESTIONS_MAX: usize = 200;

/// Returns the one of `known` that `wanted` is a misspelling of, case aside.
pub(crate) fn nearest<'n>(wanted: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let lower = wanted.to_lowercase();
    let length = lower.chars().count();
    known
        .filter(|name| name.chars().count().abs_diff(length) <= EDITS_MAX)
        .map(|name| (damerau_levenshtein(&lower, &name.to_lowercase()), name))
        .min()
        // In a name of three letters two edits leave nothing of it.
        .filter(|(edits, _)| *edits <= EDITS_MAX && edits * 3 <= length)
        .map(|(_, name)| name)
}

/// Returns "did you mean" for a name, if there is one to mean.
pub(crate) fn did_you_mean<'n>(
    wanted: &str,
    known: impl Iterator<Item = &'n str>,
) -> Option<String> {
    nearest(wanted, known).map(|name| format!("did you mean \"{name}\"?"))
}

/// Known names, for a run that may look for many misspellings.
pub(crate) struct Names<'n> {
    names: BTreeSet<&'n str>,
    left: Cell<usize>,
}

impl<'n> Names<'n> {
    pub(crate) fn new(names: impl Iterator<Item = &'n str>) -> Self {
        Self {
            names: names.collect(),
            left: Cell::new(SUGGESTIONS_MAX),
        }
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    pub(crate) fn did_you_mean(&self, wanted: &str) -> Option<String> {
        self.left.set(self.left.get().checked_sub(1)?);
        // A name without its prefix, or with another, is the other usual slip.
        let last = |name: &'n str| name.rsplit('/').next().unwrap_or(name);
        did_you_mean(wanted, self.names.iter().copied()).or_else(|| {
            let wanted = wanted.rsplit('/').next()?;
            let mut same = self.names.iter().filter(|name| last(name) == wanted);
            match (same.next(), same.next()) {
                (Some(name), None) => Some(format!("did you mean \"{name}\"?")),
                _ => None,
            }
        })
    }
}

/// Returns the component that stands for an image: its last path segment, without tag and digest.
pub fn component_of_image(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or(image);
    let last = image.rsplit('/').next().unwrap_or(image);
    last.split(':').next().unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelling_is_near_and_another_word_is_not() {
        let known = ["bindings", "endpoint", "key"];
        for (wanted, want) in [
            ("binding", Some("bindings")),
            ("endPiont", Some("endpoint")),
            ("source", None),
            ("kez", Some("key")),
            ("abc", None),
        ] {
            assert_eq!(nearest(wanted, known.into_iter()), want, "{wanted}");
        }
    }

    #[test]
    fn names_are_found_under_another_prefix() {
        let names = Names::new(["acmeCo/orders", "acmeCo/users", "b/users"].into_iter());
        let ask = |wanted| names.did_you_mean(wanted);
        assert_eq!(
            ask("orders"),
            Some("did you mean \"acmeCo/orders\"?".into())
        );
        assert_eq!(ask("users"), None, "two could be meant");
    }

    #[test]
    fn an_image_names_a_component() {
        for (image, want) in [
            ("img.lan/x/materialize-sqlite:v1", "materialize-sqlite"),
            ("localhost:5000/materialize-sqlite", "materialize-sqlite"),
            ("materialize-sqlite@sha256:abc", "materialize-sqlite"),
            ("x/materialize-sqlite:v1@sha256:abc", "materialize-sqlite"),
        ] {
            assert_eq!(component_of_image(image), want, "{image}");
        }
    }
}
