//! Sums: exact, so that neither the order of adding nor the bounds of
//! transactions can change one.

use num_bigint::BigInt;

use crate::document::decimal::Decimal;

/// Most digits between the first and the last of a sum. A sum of doubles needs
/// at most 632 (from 1e308 to 5e-324); without a bound, adding `1e999999999`
/// and `1` would fill the memory with zeros.
pub const SUM_DIGITS_MAX: i64 = 1000;

/// Adds numbers; appends the sum's text, which depends on what it amounts to
/// and not on how its parts were spelled. None if there would be more digits
/// than [`SUM_DIGITS_MAX`].
pub(super) fn sum<'a>(
    numbers: impl Iterator<Item = Decimal<'a>> + Clone,
    text: &mut Vec<u8>,
) -> Option<()> {
    // Most sums are of plain integers.
    if let Some(total) = integers(numbers.clone()) {
        text.extend_from_slice(total.to_string().as_bytes());
        return Some(());
    }
    let counted = numbers.filter(|number| !number.is_zero());
    let last = |number: &Decimal<'_>| {
        number
            .magnitude()
            .saturating_sub(number.digit_count() as i64)
    };
    let first_digit = counted
        .clone()
        .map(|number| number.magnitude())
        .max()
        .unwrap_or(0)
        .max(0);
    let last_digit = counted
        .clone()
        .map(|number| last(&number))
        .min()
        .unwrap_or(0)
        .min(0);
    if first_digit.saturating_sub(last_digit) > SUM_DIGITS_MAX {
        return None;
    }
    let scale = -last_digit;
    let total: BigInt = counted.map(|number| number.scaled(scale)).sum();
    let scale = usize::try_from(scale).expect("the last digit is at or behind the point");
    push_scaled(&total, scale, text);
    Some(())
}

fn integers<'a>(mut numbers: impl Iterator<Item = Decimal<'a>>) -> Option<i128> {
    numbers.try_fold(0i128, |total, number| {
        total.checked_add(i128::from(number.to_i64()?))
    })
}

/// Appends `total / 10^scale`, without zeros at the end of a fraction.
fn push_scaled(total: &BigInt, scale: usize, text: &mut Vec<u8>) {
    let digits = total.magnitude().to_string();
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let fraction = fraction.trim_end_matches('0');
    if total.sign() == num_bigint::Sign::Minus {
        text.push(b'-');
    }
    text.extend_from_slice(whole.as_bytes());
    if !fraction.is_empty() {
        text.push(b'.');
        text.extend_from_slice(fraction.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(numbers: &[&str]) -> Option<String> {
        let mut text = Vec::new();
        sum(
            numbers.iter().map(|number| Decimal::of_text(number)),
            &mut text,
        )?;
        Some(String::from_utf8(text).unwrap())
    }

    #[test]
    fn sums_are_exact() {
        for (numbers, want) in [
            (&["0.1", "0.2"][..], "0.3"),
            (&["0.1", "0.2", "-0.3"], "0"),
            (&["18446744073709551616", "1"], "18446744073709551617"),
            (&["9007199254740993", "1"], "9007199254740994"),
            (&["9223372036854775807", "1"], "9223372036854775808"),
            (&["1.50", "1.5"], "3"),
            (&["-0.05", "0.01"], "-0.04"),
            (&["1e3", "0.5"], "1000.5"),
            (&["0", "0.0"], "0"),
            (&["1e20", "-1e-5"], "99999999999999999999.99999"),
            (&["0e999999999", "0.5"], "0.5"),
        ] {
            assert_eq!(of(numbers).as_deref(), Some(want), "{numbers:?}");
        }
        assert_eq!(
            of(&["1e308", "5e-324"]).map(|text| text.len()),
            Some(309 + 1 + 324)
        );
        assert_eq!(of(&["1e999999999", "1"]), None);
        assert_eq!(of(&["1", "1e-999999999999999999999"]), None);
    }

    proptest! {
        #[test]
        fn grouping_does_not_change_a_sum(numbers in prop::collection::vec((any::<i64>(), -30i32..30), 3..8), cut in 1usize..3) {
            let numbers: Vec<_> = numbers.iter().map(|(digits, exponent)| format!("{digits}e{exponent}")).collect();
            let texts: Vec<_> = numbers.iter().map(String::as_str).collect();
            let all = of(&texts).unwrap();
            let (left, right) = texts.split_at(cut);
            let left = of(left).unwrap();
            let right = of(right).unwrap();
            prop_assert_eq!(of(&[&left, &right]).unwrap(), all);
        }
    }
}
