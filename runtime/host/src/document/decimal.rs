//! Numbers as decimal text: what one amounts to, exactly and without
//! calculating.
//!
//! A number is its sign, its digits from the first to the last that is not
//! zero, and its magnitude: `0.d1 d2 d3... x 10^magnitude`. So `1`, `1.0` and
//! `10e-1` are the same, comparing needs no arithmetic, and `1e999999999`
//! costs no more than `1`.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

/// Most digits of an integer that is one in a tuple; the encoding ends at 255
/// bytes, which hold 614. Longer ones travel as their text.
pub const INTEGER_DIGITS_MAX: usize = 600;

/// Digits that any double keeps: a decimal of so many digits is always the
/// shortest text of the double next to it.
const DOUBLE_DIGITS_SAFE: usize = 15;

/// Magnitudes between which a double has its full precision.
const DOUBLE_MAGNITUDES_SAFE: std::ops::Range<i64> = -300..300;

/// A number, by the text that says it.
#[derive(Clone, Copy, Debug)]
pub struct Decimal<'a> {
    text: &'a str,
    negative: bool,
    /// The digits, in at most two pieces: before and behind the point.
    head: &'a [u8],
    tail: &'a [u8],
    magnitude: i64,
}

/// An integer of any size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Integer {
    /// One of 64 bits.
    Small(i64),
    /// A larger one.
    Big(BigInt),
}

impl<'a> Decimal<'a> {
    /// Reads the text of a JSON number.
    ///
    /// The text must have been parsed as one; of any other text the result is
    /// some number.
    pub fn of_text(text: &'a str) -> Self {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match rest.find(['e', 'E']) {
            Some(at) => (&rest[..at], exponent(&rest[at + 1..])),
            None => (rest, 0),
        };
        let (head, tail) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let (mut head, mut tail) = (head.as_bytes(), tail.as_bytes());
        head = &head[zeros(head.iter())..];
        let mut magnitude = exponent.saturating_add(head.len() as i64);
        tail = &tail[..tail.len() - zeros(tail.iter().rev())];
        if head.is_empty() {
            let leading = zeros(tail.iter());
            tail = &tail[leading..];
            magnitude = magnitude.saturating_sub(leading as i64);
        }
        if tail.is_empty() {
            head = &head[..head.len() - zeros(head.iter().rev())];
        }
        // All spellings of zero are one.
        let zero = head.is_empty() && tail.is_empty();
        Decimal {
            text,
            negative: negative && !zero,
            head,
            tail,
            magnitude: if zero { 0 } else { magnitude },
        }
    }

    /// The number's text, as it came.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.digit_count() == 0
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether it has no fraction: `1.0` and `1e3` have none.
    pub fn is_integer(&self) -> bool {
        self.digit_count() as i64 <= self.magnitude.max(0)
    }

    /// How many digits there are from the first to the last that is not zero.
    pub fn digit_count(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Where the point stands, counted from the first digit that is not zero.
    pub fn magnitude(&self) -> i64 {
        self.magnitude
    }

    /// The digits from the first to the last that is not zero, in ASCII.
    pub fn digits(&self) -> impl DoubleEndedIterator<Item = u8> + Clone + 'a {
        self.head.iter().chain(self.tail).copied()
    }

    /// The integer, if it is one of 64 bits.
    pub fn to_i64(&self) -> Option<i64> {
        if !self.is_integer() || self.magnitude > 19 {
            return None;
        }
        let mut value: i64 = 0;
        for digit in self.padded_digits() {
            value = value
                .checked_mul(10)?
                .checked_sub(i64::from(digit - b'0'))?;
        }
        match self.negative {
            true => Some(value),
            false => value.checked_neg(),
        }
    }

    /// The integer, if it is one and has at most [`INTEGER_DIGITS_MAX`] digits.
    pub fn to_integer(&self) -> Option<Integer> {
        if let Some(small) = self.to_i64() {
            return Some(Integer::Small(small));
        }
        if !self.is_integer() || self.magnitude > INTEGER_DIGITS_MAX as i64 {
            return None;
        }
        Some(Integer::Big(self.scaled(0)))
    }

    /// The integer that the number times `10^scale` is.
    ///
    /// The caller bounds the scale and has made sure that it is an integer.
    pub(super) fn scaled(&self, scale: i64) -> BigInt {
        let len = usize::try_from(self.magnitude + scale).unwrap_or(0);
        let digits: Vec<u8> = self
            .digits()
            .chain(std::iter::repeat(b'0'))
            .take(len)
            .map(|digit| digit - b'0')
            .collect();
        let sign = if self.negative {
            Sign::Minus
        } else {
            Sign::Plus
        };
        BigInt::from_radix_be(sign, &digits, 10).unwrap_or_default()
    }

    /// The double, if it is the number exactly: its shortest text amounts to
    /// the same.
    pub fn to_exact_double(&self) -> Option<f64> {
        let double: f64 = self.text.parse().ok()?;
        if !double.is_finite() {
            return None;
        }
        let safe = self.digit_count() <= DOUBLE_DIGITS_SAFE
            && DOUBLE_MAGNITUDES_SAFE.contains(&self.magnitude);
        if safe || Decimal::of_text(&format!("{double:e}")) == *self {
            return Some(double);
        }
        None
    }

    fn padded_digits(&self) -> impl Iterator<Item = u8> + 'a {
        let zeros = self.magnitude - self.digit_count() as i64;
        let zeros = usize::try_from(zeros).unwrap_or(0);
        self.digits().chain(std::iter::repeat_n(b'0', zeros))
    }
}

fn zeros<'b>(digits: impl Iterator<Item = &'b u8>) -> usize {
    digits.take_while(|digit| **digit == b'0').count()
}

/// Reads an exponent; one that no integer holds stands for the farthest.
fn exponent(text: &str) -> i64 {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.trim_start_matches('+')),
    };
    let value = digits.bytes().fold(0i64, |value, digit| {
        value
            .saturating_mul(10)
            .saturating_add(i64::from(digit.wrapping_sub(b'0')))
    });
    if negative { -value } else { value }
}

impl Ord for Decimal<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match number.negative {
            true => -1,
            false => i32::from(!number.is_zero()),
        };
        let by_size = || {
            let sizes = self.magnitude.cmp(&other.magnitude);
            sizes.then_with(|| self.digits().cmp(other.digits()))
        };
        match sign(self).cmp(&sign(other)) {
            Ordering::Equal if self.negative => by_size().reverse(),
            Ordering::Equal => by_size(),
            unequal => unequal,
        }
    }
}

impl PartialOrd for Decimal<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_number_are_equal() {
        let same = [
            &["1", "1.0", "1e0", "10e-1", "0.1e1", "1.000E+0"][..],
            &["0", "-0", "0.0", "-0.0e5", "0e999"],
            &["-120", "-1.2e2", "-120.00", "-0.012e4"],
            &[
                "9007199254740993",
                "9007199254740993.0",
                "9.007199254740993e15",
            ],
        ];
        for (row, spellings) in same.iter().enumerate() {
            for a in *spellings {
                for b in *spellings {
                    assert_eq!(Decimal::of_text(a), Decimal::of_text(b), "{a} {b}");
                }
                for other in same.iter().skip(row + 1).copied().flatten() {
                    assert_ne!(Decimal::of_text(a), Decimal::of_text(other), "{a} {other}");
                }
            }
        }
    }

    #[test]
    fn numbers_are_ordered_by_what_they_amount_to() {
        let ascending = [
            "-1e400",
            "-1e3",
            "-100.5",
            "-100",
            "-99.99",
            "-1e-400",
            "0",
            "1e-999999999999999999999",
            "0.05",
            "0.1",
            "0.11",
            "0.2",
            "1",
            "9",
            "10",
            "9007199254740992",
            "9007199254740993",
            "123456789012345678901234567890",
            "1e400",
        ];
        for pair in ascending.windows(2) {
            assert!(
                Decimal::of_text(pair[0]) < Decimal::of_text(pair[1]),
                "{pair:?}"
            );
        }
    }

    #[test]
    fn integers_of_any_size_are_exact() {
        let small = |text| match Decimal::of_text(text).to_integer() {
            Some(Integer::Small(value)) => Some(value),
            _ => None,
        };
        for (text, want) in [
            ("0", Some(0)),
            ("-0.0", Some(0)),
            ("1200", Some(1200)),
            ("12e2", Some(1200)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("0.5", None),
            ("1e-1", None),
        ] {
            assert_eq!(small(text), want, "{text}");
        }
        let big = |text| match Decimal::of_text(text).to_integer() {
            Some(Integer::Big(value)) => Some(value.to_string()),
            _ => None,
        };
        for (text, want) in [
            (
                "9223372036854775808",
                Some("9223372036854775808".to_owned()),
            ),
            (
                "-18446744073709551616.0",
                Some("-18446744073709551616".to_owned()),
            ),
            ("1e30", Some(format!("1{}", "0".repeat(30)))),
            ("1e601", None),
            ("12345678901234567890.5", None),
        ] {
            assert_eq!(big(text), want, "{text}");
        }
    }

    #[test]
    fn a_double_is_given_only_for_what_it_holds() {
        for (text, want) in [
            ("0.1", Some(0.1)),
            ("-2.50", Some(-2.5)),
            ("1.7976931348623157e308", Some(f64::MAX)),
            ("5e-324", Some(5e-324)),
            ("0.1000000000000000055511151231257827", None),
            ("3.141592653589793", Some(std::f64::consts::PI)),
            ("3.1415926535897931", None),
            ("0.12345678901234567", None),
            ("1e400", None),
            ("1e-400", None),
        ] {
            assert_eq!(Decimal::of_text(text).to_exact_double(), want, "{text}");
        }
    }
}
