//! Names that an author probably meant.

use strsim::damerau_levenshtein;

/// Edits that still make one name a likely misspelling of another; more, and any short name is near all others.
const EDITS_MAX: usize = 2;

/// Returns whether so many edits of `wanted` leave enough of it to be a misspelling.
pub(crate) fn is_near(edits: usize, wanted: &str) -> bool {
    // In a name of three letters two edits leave nothing of it.
    edits <= EDITS_MAX && edits * 3 <= wanted.chars().count()
}

/// Finds the one of `names` that `wanted` is a misspelling of, case aside.
pub(crate) fn nearest<'names>(wanted: &str, names: &[&'names str]) -> Option<&'names str> {
    let wanted = wanted.to_lowercase();
    let distance = |name: &str| damerau_levenshtein(&wanted, &name.to_lowercase());
    let (edits, name) = names.iter().map(|name| (distance(name), *name)).min()?;
    is_near(edits, &wanted).then_some(name)
}
