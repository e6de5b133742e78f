//! `numeric` as PostgreSQL's binary format has it: decimal digits in groups of
//! four, without a double on the way.
//!
//! ```text
//! "-12345.678" -> sign, digits "12345678", point after 5 -> groups 1 | 2345 | 6780
//! ```

/// Most digits before the point.
const WHOLE_DIGITS_MAX: i64 = 131_072;

/// Most digits after the point.
const FRACTION_DIGITS_MAX: i64 = 16_383;

/// Decimal digits of a group.
const GROUP: i64 = 4;

const POSITIVE: u16 = 0x0000;
const NEGATIVE: u16 = 0x4000;
const NOT_A_NUMBER: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;

/// Appends the number that a text writes in decimal, as JSON does.
///
/// # Errors
///
/// If it is no such number, or has more digits than PostgreSQL keeps.
pub(crate) fn push_decimal(out: &mut Vec<u8>, text: &str) -> Result<(), &'static str> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (NEGATIVE, rest),
        None => (POSITIVE, text),
    };
    let (digits, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, parse_exponent(exponent)?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
        return Err("it is not a number");
    }
    let digits: Vec<u8> = whole
        .bytes()
        .chain(fraction.bytes())
        .map(|it| it - b'0')
        .collect();
    push_digits(out, sign, &digits, whole.len() as i64 + exponent)
}

/// Appends a number, or one of the words for what is none, as text of the formats
/// `number` and `integer` may have.
pub(crate) fn push_formatted(out: &mut Vec<u8>, text: &str) -> Result<(), &'static str> {
    match text {
        "NaN" => push_header(out, 0, 0, NOT_A_NUMBER, 0),
        "Infinity" => push_header(out, 0, 0, INFINITY, 0),
        "-Infinity" => push_header(out, 0, 0, NEGATIVE_INFINITY, 0),
        _ => return push_decimal(out, text),
    }
    Ok(())
}

/// An exponent that no `numeric` could have is cut to one that none has either.
fn parse_exponent(text: &str) -> Result<i64, &'static str> {
    const BEYOND: i64 = 1_000_000;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("it is not a number");
    }
    let size = digits.parse().unwrap_or(BEYOND).min(BEYOND);
    Ok(if text.starts_with('-') { -size } else { size })
}

/// Appends digits of which `point` are before the point; it may lie outside of them.
fn push_digits(
    out: &mut Vec<u8>,
    sign: u16,
    digits: &[u8],
    point: i64,
) -> Result<(), &'static str> {
    let Some(first) = digits.iter().position(|digit| *digit != 0) else {
        push_header(out, 0, 0, POSITIVE, 0);
        return Ok(());
    };
    let last = digits
        .iter()
        .rposition(|digit| *digit != 0)
        .expect("there is a first one");
    let digits = &digits[first..=last];
    let point = point - first as i64;
    let scale = (digits.len() as i64 - point).max(0);
    if point > WHOLE_DIGITS_MAX || scale > FRACTION_DIGITS_MAX {
        return Err("PostgreSQL keeps 131072 digits before the point and 16383 after it");
    }
    // The first group ends where the digits before the point are divided by four.
    let lead = (point - 1).rem_euclid(GROUP) + 1;
    let weight = (point - lead) / GROUP;
    let lead = lead as usize;
    let mut groups = Vec::with_capacity(digits.len() / 4 + 2);
    let (head, tail) = digits.split_at(lead.min(digits.len()));
    groups.push(group(head, lead));
    groups.extend(
        tail.chunks(GROUP as usize)
            .map(|it| group(it, GROUP as usize)),
    );
    push_header(out, groups.len() as u16, weight as i16, sign, scale as u16);
    for group in groups {
        out.extend(group.to_be_bytes());
    }
    Ok(())
}

/// Returns the number of some digits, zeros after them up to `len`.
fn group(digits: &[u8], len: usize) -> u16 {
    (0..len).fold(0, |number, position| {
        number * 10 + u16::from(digits.get(position).copied().unwrap_or(0))
    })
}

fn push_header(out: &mut Vec<u8>, groups: u16, weight: i16, sign: u16, scale: u16) {
    out.extend(groups.to_be_bytes());
    out.extend(weight.to_be_bytes());
    out.extend(sign.to_be_bytes());
    out.extend(scale.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads what was written by the definition: the sum of group * 10000 ^ position.
    fn read(bytes: &[u8]) -> String {
        let words: Vec<u16> = bytes
            .chunks(2)
            .map(|it| u16::from_be_bytes([it[0], it[1]]))
            .collect();
        let (count, weight, sign, scale) = (words[0], words[1] as i16, words[2], words[3]);
        match sign {
            NOT_A_NUMBER => return "NaN".to_owned(),
            INFINITY => return "Infinity".to_owned(),
            NEGATIVE_INFINITY => return "-Infinity".to_owned(),
            _ => {}
        }
        let groups = &words[4..];
        assert_eq!(groups.len(), usize::from(count));
        assert!(groups.iter().all(|it| *it < 10_000));
        let group_at = |position: i32| {
            let index = usize::try_from(i32::from(weight) - position).ok();
            index
                .and_then(|index| groups.get(index))
                .copied()
                .unwrap_or(0)
        };
        let mut text = if sign == NEGATIVE { "-" } else { "" }.to_owned();
        let whole: String = (0..=i32::from(weight).max(0))
            .rev()
            .map(|position| format!("{:04}", group_at(position)))
            .collect();
        let whole = whole.trim_start_matches('0');
        text += if whole.is_empty() { "0" } else { whole };
        if scale > 0 {
            let fraction: String = (1..=i32::from(scale).div_euclid(4) + 1)
                .map(|position| format!("{:04}", group_at(-position)))
                .collect();
            text.push('.');
            text += &fraction[..usize::from(scale)];
        }
        text
    }

    #[test]
    fn numbers_keep_every_digit() {
        let cases = [
            ("0", "0"),
            ("-0", "0"),
            ("0.000", "0"),
            ("1", "1"),
            ("-1", "-1"),
            ("10", "10"),
            ("9999", "9999"),
            ("10000", "10000"),
            ("123456789", "123456789"),
            ("9007199254740993", "9007199254740993"),
            ("18446744073709551616", "18446744073709551616"),
            (
                "-340282366920938463463374607431768211457",
                "-340282366920938463463374607431768211457",
            ),
            ("0.1", "0.1"),
            ("0.0001", "0.0001"),
            ("0.00001", "0.00001"),
            ("0.00012345678", "0.00012345678"),
            ("12345.678", "12345.678"),
            ("-12345.6789012", "-12345.6789012"),
            ("1.50", "1.5"),
            ("0.1000000000000000055", "0.1000000000000000055"),
            ("1e3", "1000"),
            ("1.5E+2", "150"),
            ("1e-7", "0.0000001"),
            ("123e-2", "1.23"),
            ("0.00123e5", "123"),
            ("100e-2", "1"),
            ("007", "7"),
        ];
        for (text, want) in cases {
            let mut bytes = Vec::new();
            push_decimal(&mut bytes, text).unwrap();
            assert_eq!(read(&bytes), want, "{text}");
        }
    }

    #[test]
    fn every_place_of_the_point_and_of_the_first_digit() {
        for lead in 1..10 {
            for shift in -12..12_i32 {
                let digits: String = (0..lead).map(|it| char::from(b'1' + it)).collect();
                let mut bytes = Vec::new();
                push_decimal(&mut bytes, &format!("{digits}e{shift}")).unwrap();
                let moved = match usize::try_from(shift) {
                    Ok(shift) => format!("{digits}{}", "0".repeat(shift)),
                    Err(_) => {
                        let places = shift.unsigned_abs() as usize;
                        let padded = format!("{digits:0>width$}", width = places + 1);
                        let at = padded.len() - places;
                        format!("{}.{}", &padded[..at], &padded[at..])
                    }
                };
                assert_eq!(read(&bytes), moved, "{digits}e{shift}");
            }
        }
    }

    #[test]
    fn what_is_no_number_or_too_long_is_refused() {
        for text in [
            "", "-", ".", "e5", "1e", "1e+", "1x", "+1", " 1", "0x1", "NaN", "--1",
        ] {
            assert!(push_decimal(&mut Vec::new(), text).is_err(), "{text}");
        }
        for (text, fits) in [
            ("1e131071", true),
            ("1e131072", false),
            ("1e-16383", true),
            ("1e-16384", false),
            ("1e99999999999999999999", false),
            ("0e99999999999999999999", true),
        ] {
            assert_eq!(push_decimal(&mut Vec::new(), text).is_ok(), fits, "{text}");
        }
        for text in ["NaN", "Infinity", "-Infinity"] {
            let mut bytes = Vec::new();
            push_formatted(&mut bytes, text).unwrap();
            assert_eq!(read(&bytes), text);
        }
    }
}
