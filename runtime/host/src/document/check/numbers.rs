//! The rules about numbers, exactly: bounds and `multipleOf`.
//!
//! The validator's own versions calculate with doubles, for which 600.03 is no
//! multiple of 0.01.

use std::cmp::Ordering;

use jsonschema::json::Json;
use jsonschema::{Keyword, ValidationError, ValidationOptions};
use num_bigint::BigInt;

use super::representation::Parsed;
use crate::document::decimal::Decimal;
use crate::document::value::Value;

/// Replaces the rules about numbers by exact ones.
pub(super) fn with_exact_numbers<R>(
    options: ValidationOptions<'_, R, Parsed>,
) -> ValidationOptions<'_, R, Parsed> {
    let bounds: [(&str, Holds, &str); 4] = [
        ("minimum", Ordering::is_ge, "less than the minimum of"),
        ("maximum", Ordering::is_le, "greater than the maximum of"),
        ("exclusiveMinimum", Ordering::is_gt, "not greater than"),
        ("exclusiveMaximum", Ordering::is_lt, "not less than"),
    ];
    let options = bounds
        .into_iter()
        .fold(options, |options, (keyword, holds, words)| {
            options.with_keyword(keyword, move |_, limit, _| {
                rule(limit, words, Test::Bound(holds))
            })
        });
    options.with_keyword("multipleOf", |_, divisor, _| {
        rule(divisor, "not a multiple of", Test::MultipleOf)
    })
}

/// Whether a rule holds for the order of a number and the limit.
type Holds = fn(Ordering) -> bool;

#[derive(Clone, Copy)]
enum Test {
    Bound(Holds),
    MultipleOf,
}

struct Rule {
    /// The limit or divisor, as text.
    limit: String,
    words: &'static str,
    test: Test,
}

fn rule<'a>(
    limit: &'a serde_json::Value,
    words: &'static str,
    test: Test,
) -> Result<Box<dyn for<'i> Keyword<'i, Parsed>>, ValidationError<'a>> {
    let Some(limit) = limit.as_number() else {
        return Err(ValidationError::custom("expected a number"));
    };
    Ok(Box::new(Rule {
        limit: limit.to_string(),
        words,
        test,
    }))
}

impl<'i> Keyword<'i, Parsed> for Rule {
    fn validate(&self, instance: <Parsed as Json>::Node<'i>) -> Result<(), ValidationError<'i>> {
        if Keyword::is_valid(self, instance) {
            return Ok(());
        }
        let Rule { limit, words, .. } = self;
        Err(ValidationError::custom(format!("it is {words} {limit}")))
    }

    fn is_valid(&self, instance: Value<'i>) -> bool {
        let Some(number) = instance.number() else {
            return true;
        };
        let limit = Decimal::of_text(&self.limit);
        match self.test {
            Test::Bound(holds) => holds(number.cmp(&limit)),
            Test::MultipleOf => is_multiple(&number, &limit),
        }
    }
}

/// Whether a number is a whole multiple of a divisor above zero.
///
/// With `number = digits x 10^e` and the divisor likewise, it is whether
/// `digits x 10^(e - e')` is a multiple of the divisor's digits: the power is
/// taken modulo those, so that no exponent makes a long number.
fn is_multiple(number: &Decimal<'_>, divisor: &Decimal<'_>) -> bool {
    if number.is_zero() {
        return true;
    }
    let last_digit = |decimal: &Decimal<'_>| {
        decimal
            .magnitude()
            .saturating_sub(decimal.digit_count() as i64)
    };
    let digits =
        |decimal: &Decimal<'_>| decimal.scaled(decimal.digit_count() as i64 - decimal.magnitude());
    let modulus = digits(divisor);
    let shift = last_digit(number).saturating_sub(last_digit(divisor));
    let zero = BigInt::default();
    match u64::try_from(shift) {
        Ok(shift) => {
            let power = BigInt::from(10).modpow(&BigInt::from(shift), &modulus);
            digits(number) * power % &modulus == zero
        }
        // The number has digits behind the divisor's last place, and the last
        // one is not zero: no multiple of a power of ten divides that.
        Err(_) => false,
    }
}
