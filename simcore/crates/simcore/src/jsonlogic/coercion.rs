//! Type coercion of JSONLogic: values as numbers and as text.

use std::borrow::Cow;

use crate::canonical_json::number_text;
use crate::error::{Code, Error, Result};
use crate::strict_json::MAX_DEPTH;
use crate::value::Value;

use super::finite;

const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// Convert a value to text. A text is borrowed.
pub(super) fn text_of(value: &Value) -> Result<Cow<'_, str>> {
    if let Value::Text(text) = value {
        return Ok(Cow::Borrowed(text));
    }
    let mut text = String::new();
    append_text(&mut text, value, 0)?;
    Ok(Cow::Owned(text))
}

/// Convert a value to a number: null is 0, a boolean 0 or 1, "" is 0, a numeric string its number.
#[inline]
pub(super) fn number(value: &Value) -> Result<f64> {
    if let Value::Number(number) = value { Ok(*number) } else { coerce(value) }
}

fn coerce(value: &Value) -> Result<f64> {
    match value {
        Value::Number(number) => Ok(*number),
        Value::Null => Ok(0.0),
        Value::Bool(value) => Ok(f64::from(u8::from(*value))),
        Value::Text(text) => match text.trim_matches(BLANKS) {
            "" => Ok(0.0),
            trimmed if is_decimal(trimmed) => finite(trimmed.parse().unwrap_or(f64::INFINITY)),
            _ => Err(not_a_number("the text")),
        },
        Value::Array(_) => Err(not_a_number("an array")),
        Value::Object(_) => Err(not_a_number("an object")),
    }
}

/// Append a value as text: null is "", booleans are words, arrays are joined with commas.
pub(super) fn append_text(out: &mut String, value: &Value, depth: usize) -> Result<()> {
    match value {
        Value::Text(text) => out.push_str(text),
        Value::Null => {}
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number_text(*number)),
        Value::Array(items) => {
            check_depth(depth)?;
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                append_text(out, item, depth + 1)?;
            }
        }
        Value::Object(_) => return Err(Error::new(Code::InvalidArguments, "an object has no text")),
    }
    Ok(())
}

pub(super) fn check_depth(depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        let message = format!("the expression nests values deeper than {MAX_DEPTH} levels");
        return Err(Error::new(Code::FuelExhausted, message));
    }
    Ok(())
}

/// Check the nesting of a value against the limit of documents. Return the number of values in it.
pub(super) fn check_nesting(value: &Value) -> Result<u64> {
    if value.is_scalar() {
        return Ok(0);
    }
    let mut inside = 0;
    let mut pending = vec![(value, 1)];
    while let Some((value, depth)) = pending.pop() {
        match value {
            Value::Array(items) => {
                check_depth(depth)?;
                inside += items.len() as u64;
                pending.extend(items.iter().map(|item| (item, depth + 1)));
            }
            Value::Object(members) => {
                check_depth(depth)?;
                inside += members.len() as u64;
                pending.extend(members.values().map(|item| (item, depth + 1)));
            }
            _ => {}
        }
    }
    Ok(inside)
}

fn not_a_number(kind: &str) -> Error {
    Error::new(Code::NotANumber, format!("{kind} is not a number here"))
}

/// Return True for a decimal number: `1`, `1.`, `1.5` or `.5`, with optional sign and exponent.
fn is_decimal(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_exponent = |text: &str| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        !digits.is_empty() && all_digits(digits)
    };
    all_digits(whole)
        && all_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(is_exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_text_is_a_number() {
        let cases = [("1", 1.0), (" +1. ", 1.0), ("\t-.5e1\n", -5.0), ("", 0.0), (" \r", 0.0), ("-0", 0.0)];
        for (text, expected) in cases {
            assert_eq!(number(&Value::from(text)).unwrap().to_bits(), f64::to_bits(expected), "{text:?}");
        }
    }

    #[test]
    fn other_text_is_not_a_number() {
        for text in ["e5", ".", "1e", "inf", "nan", "0x1", "1_0", "1 2", "\u{a0}1", "١"] {
            assert_eq!(number(&Value::from(text)).unwrap_err().code(), Code::NotANumber, "{text}");
        }
        assert_eq!(number(&Value::from("1e999")).unwrap_err().code(), Code::NumericRange);
    }
}
