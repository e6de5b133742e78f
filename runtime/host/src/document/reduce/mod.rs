//! Reductions: several documents of one key become one.
//!
//! ```text
//! schema -> strategy::compile -> locations
//! texts, oldest first -> parse all -> walk all together -> text
//! ```
//!
//! Every strategy is associative, in text and not only in meaning: what is
//! reduced earlier, later, in one transaction or in five comes out the same.
//! That is also why what does not fit a strategy is an error and not "the last
//! one wins": `{..}`, `5`, `{..}` would depend on which two meet first.

mod strategy;
mod sum;

use serde_json::Value as Schema;

use self::strategy::{Location, LocationId, Strategy};
use super::parse::{Document, ParseError, Tape};
use super::pointer::push_token;
use super::value::{Kind, Value};
use super::{DOCUMENT_BYTES_MAX, shown};

pub use self::strategy::{StrategyError, StrategyProblem};
pub use self::sum::SUM_DIGITS_MAX;

/// Documents that cannot be reduced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReduceError {
    /// One is no document.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// A value is not what its strategy takes.
    #[error("{strategy} at {pointer:?} takes {takes}, and the document has {value}")]
    Mismatch {
        /// Where, in the documents.
        pointer: String,
        /// Name of the strategy.
        strategy: &'static str,
        /// What it takes.
        takes: &'static str,
        /// What a document has there.
        value: String,
    },
    /// A sum has too many digits.
    #[error(
        "the sum at {pointer:?} would have more than {SUM_DIGITS_MAX} digits; one of its parts is {value}"
    )]
    Digits {
        /// Where, in the documents.
        pointer: String,
        /// One of the numbers.
        value: String,
    },
    /// What comes out is too long.
    #[error("the reduced document has {len} bytes; the limit is {DOCUMENT_BYTES_MAX}")]
    Size {
        /// Its length.
        len: usize,
    },
}

impl ReduceError {
    /// Adds the name of the place that it was found in.
    #[cold]
    fn under(mut self, token: &str) -> Self {
        if let ReduceError::Mismatch { pointer, .. } | ReduceError::Digits { pointer, .. } =
            &mut self
        {
            let mut longer = String::new();
            push_token(&mut longer, token);
            pointer.insert_str(0, &longer);
        }
        self
    }
}

/// The compiled `reduce` annotations of a collection's schema.
#[derive(Clone, Debug)]
pub struct Reducer {
    locations: Vec<Location>,
}

/// Position of the location that is the whole document.
const ROOT: LocationId = 0;

impl Reducer {
    /// Compiles the annotations of a schema.
    ///
    /// # Errors
    ///
    /// If one cannot be used; see [`StrategyError`].
    pub fn new(schema: &Schema) -> Result<Self, StrategyError> {
        let locations = strategy::compile(schema)?;
        Ok(Reducer { locations })
    }

    /// Whether a later document simply replaces an earlier one, so that there
    /// is nothing to calculate.
    pub fn replaces(&self) -> bool {
        self.locations[ROOT].strategy == Strategy::LastWriteWins
    }

    /// Reduces documents of one key, oldest first; appends the text of the
    /// result.
    ///
    /// # Errors
    ///
    /// If one is no document, or does not fit its strategy. What was appended
    /// until then stays.
    ///
    /// # Panics
    ///
    /// If there are no documents.
    pub fn reduce(
        &self,
        tape: &mut Tape,
        texts: &[&[u8]],
        reduced: &mut Vec<u8>,
    ) -> Result<(), ReduceError> {
        let begin = reduced.len();
        if self.replaces() || texts.len() == 1 {
            reduced.extend_from_slice(texts.last().expect("there are documents to reduce"));
            return Ok(());
        }
        let documents = tape.parse_all(texts.iter().copied())?;
        let values: Vec<_> = documents.iter().map(Document::root).collect();
        self.write(ROOT, &values, reduced)?;
        match reduced.len() - begin {
            len if len > DOCUMENT_BYTES_MAX => Err(ReduceError::Size { len }),
            _ => Ok(()),
        }
    }

    /// Appends what the values of one location reduce to. A single value is
    /// itself, whatever the strategy.
    fn write(
        &self,
        id: LocationId,
        values: &[Value<'_>],
        reduced: &mut Vec<u8>,
    ) -> Result<(), ReduceError> {
        let location = &self.locations[id];
        let (first, rest) = values
            .split_first()
            .expect("a location without values is left out");
        let chosen = match location.strategy {
            _ if rest.is_empty() => *first,
            Strategy::LastWriteWins => values[values.len() - 1],
            Strategy::FirstWriteWins => *first,
            Strategy::Minimize => extreme(*first, rest, std::cmp::Ordering::is_lt),
            Strategy::Maximize => extreme(*first, rest, std::cmp::Ordering::is_gt),
            Strategy::Append => return append(values, reduced),
            Strategy::Sum => return add(values, reduced),
            Strategy::Merge if first.kind() == Kind::Object => {
                return self.merge_objects(location, values, reduced);
            }
            Strategy::Merge => return self.merge_arrays(location, values, reduced),
        };
        reduced.extend_from_slice(chosen.text().as_bytes());
        Ok(())
    }

    fn merge_objects(
        &self,
        location: &Location,
        values: &[Value<'_>],
        reduced: &mut Vec<u8>,
    ) -> Result<(), ReduceError> {
        expect_all(
            values,
            Kind::Object,
            location.strategy,
            "objects only, or arrays only",
        )?;
        let members: Vec<(Value<'_>, Value<'_>)> =
            values.iter().flat_map(|value| value.members()).collect();
        // Equal names come together, each in the order of the documents, since
        // the sort is stable; the groups then go back to the order in which
        // their names came first.
        let mut order: Vec<usize> = (0..members.len()).collect();
        order.sort_by(|a, b| compare_names(&members[*a].0, &members[*b].0));
        let mut groups: Vec<&[usize]> = order
            .chunk_by(|a, b| compare_names(&members[*a].0, &members[*b].0).is_eq())
            .collect();
        groups.sort_by_key(|group| group[0]);
        let mut group_values = Vec::with_capacity(values.len());
        reduced.push(b'{');
        for (at, group) in groups.into_iter().enumerate() {
            let name = members[group[0]].0;
            group_values.clear();
            group_values.extend(group.iter().map(|member| members[*member].1));
            if at > 0 {
                reduced.push(b',');
            }
            reduced.extend_from_slice(name.text().as_bytes());
            reduced.push(b':');
            let known = name.string().unwrap_or_default();
            let id = location.properties.get(known.as_ref()).copied();
            self.write(id.unwrap_or(location.others), &group_values, reduced)
                .map_err(|error| error.under(&known))?;
        }
        reduced.push(b'}');
        Ok(())
    }

    fn merge_arrays(
        &self,
        location: &Location,
        values: &[Value<'_>],
        reduced: &mut Vec<u8>,
    ) -> Result<(), ReduceError> {
        expect_all(
            values,
            Kind::Array,
            location.strategy,
            "objects only, or arrays only",
        )?;
        let mut arrays: Vec<_> = values.iter().map(Value::elements).collect();
        let mut elements = Vec::with_capacity(values.len());
        reduced.push(b'[');
        for at in 0.. {
            elements.clear();
            elements.extend(arrays.iter_mut().filter_map(Iterator::next));
            if elements.is_empty() {
                break;
            }
            if at > 0 {
                reduced.push(b',');
            }
            let id = location.first_elements.get(at).copied();
            self.write(id.unwrap_or(location.elements), &elements, reduced)
                .map_err(|error| error.under(&at.to_string()))?;
        }
        reduced.push(b']');
        Ok(())
    }
}

fn compare_names(a: &Value<'_>, b: &Value<'_>) -> std::cmp::Ordering {
    let hashes = a.name_hash().cmp(&b.name_hash());
    hashes.then_with(|| a.string().cmp(&b.string()))
}

/// The first of those that no other one beats.
fn extreme<'d>(
    first: Value<'d>,
    rest: &[Value<'d>],
    beats: fn(std::cmp::Ordering) -> bool,
) -> Value<'d> {
    rest.iter()
        .fold(first, |best, value| match beats(value.compare(&best)) {
            true => *value,
            false => best,
        })
}

fn append(values: &[Value<'_>], reduced: &mut Vec<u8>) -> Result<(), ReduceError> {
    expect_all(values, Kind::Array, Strategy::Append, "arrays only")?;
    reduced.push(b'[');
    let mut empty = true;
    for value in values {
        let text = value.text();
        let inside = text[1..text.len() - 1].trim_ascii();
        if inside.is_empty() {
            continue;
        }
        if !empty {
            reduced.push(b',');
        }
        empty = false;
        reduced.extend_from_slice(inside.as_bytes());
    }
    reduced.push(b']');
    Ok(())
}

fn add(values: &[Value<'_>], reduced: &mut Vec<u8>) -> Result<(), ReduceError> {
    expect_all(values, Kind::Number, Strategy::Sum, "numbers only")?;
    let numbers = values.iter().filter_map(Value::number);
    sum::sum(numbers, reduced).ok_or_else(|| {
        let longest = values.iter().max_by_key(|value| value.text().len());
        ReduceError::Digits {
            pointer: String::new(),
            value: longest.map(|value| shown(value.text())).unwrap_or_default(),
        }
    })
}

fn expect_all(
    values: &[Value<'_>],
    kind: Kind,
    strategy: Strategy,
    takes: &'static str,
) -> Result<(), ReduceError> {
    let misfit = match strategy {
        // Nothing that is neither fits, be it the first one or the last.
        Strategy::Merge => values
            .iter()
            .find(|value| !matches!(value.kind(), Kind::Object | Kind::Array)),
        _ => None,
    };
    let misfit = misfit.or_else(|| values.iter().find(|value| value.kind() != kind));
    match misfit {
        None => Ok(()),
        Some(value) => Err(ReduceError::Mismatch {
            pointer: String::new(),
            strategy: strategy.name(),
            takes,
            value: shown(value.text()),
        }),
    }
}

#[cfg(test)]
mod tests;
