//! Canonical JSON (RFC 8785): one spelling of each value in every language.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::error::{Code, Error, Result};
use crate::json_node::{self, Json, View};
use crate::strict_json::{MAX_CANONICAL_DEPTH, MAX_SAFE_INTEGER};
use crate::value::Value;

// ECMAScript writes a number without an exponent if its decimal point is within these positions.
const LARGEST_PLAIN_EXPONENT: i32 = 21;
const SMALLEST_PLAIN_EXPONENT: i32 = -6;
const LARGEST_PLAIN: f64 = 1e21;
const SMALLEST_PLAIN: f64 = 1e-6;
const FIRST_BYTE_OF_U_E000: u8 = 0xEE;
// Below this number of digits, two candidates of equal length never both round-trip in binary64.
const LEAST_TIED_FRACTION: usize = 13;

/// Return the canonical text of a value.
///
/// # Errors
///
/// `TOO_DEEP` for a value that is nested deeper than [`MAX_CANONICAL_DEPTH`].
pub fn text(value: &Value) -> Result<String> {
    text_of(value, 0)
}

/// As [`text`], for any JSON tree; `expected` is the approximate length.
pub(crate) fn text_of(value: &impl Json, expected: usize) -> Result<String> {
    let mut out = String::with_capacity(expected);
    write(&mut out, value, 0)?;
    Ok(out)
}

/// Writer of an object. The caller writes the keys in order.
pub(crate) struct Members<'a> {
    out: &'a mut String,
    /// Nesting depth of the member values.
    depth: usize,
    separator: char,
}

impl<'a> Members<'a> {
    /// Start an object around values of a depth.
    pub(crate) fn new(out: &'a mut String, depth: usize) -> Self {
        Self { out, depth, separator: '{' }
    }

    /// Start a member. The caller writes its value next.
    pub(crate) fn begin(&mut self, key: &str) -> &mut String {
        self.out.push(self.separator);
        self.separator = ',';
        write_string(self.out, key);
        self.out.push(':');
        self.out
    }

    pub(crate) fn text(&mut self, key: &str, text: &str) {
        write_string(self.begin(key), text);
    }

    pub(crate) fn value(&mut self, key: &str, value: &Value) -> Result<()> {
        let depth = self.depth;
        write(self.begin(key), value, depth)
    }

    /// Write a list of objects as a member. The items are one level deeper.
    pub(crate) fn list<T>(
        &mut self,
        key: &str,
        items: &[T],
        mut write: impl FnMut(&T, Members<'_>) -> Result<()>,
    ) -> Result<()> {
        let depth = self.depth + 2;
        let out = self.begin(key);
        out.push('[');
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            write(item, Members::new(out, depth))?;
        }
        out.push(']');
        Ok(())
    }

    /// Finish an object, which must have a member.
    pub(crate) fn end(self) {
        self.out.push('}');
    }
}

/// Return the SHA-256 of bytes in lower-case hexadecimal digits.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    let digit = |half| char::from_digit(half, 16).unwrap_or_default();
    let halves = |&byte: &u8| [digit(u32::from(byte >> 4)), digit(u32::from(byte & 15))];
    Sha256::digest(bytes).iter().flat_map(halves).collect()
}

/// Format a number as ECMAScript does (`Number::toString`).
#[must_use]
pub fn number_text(value: f64) -> String {
    let mut out = String::new();
    write_number(&mut out, value);
    out
}

fn write(out: &mut String, value: &impl Json, depth: usize) -> Result<()> {
    match value.view() {
        View::Null => out.push_str("null"),
        View::Bool(true) => out.push_str("true"),
        View::Bool(false) => out.push_str("false"),
        View::Number(number) => write_number(out, number),
        View::Text(text) => write_string(out, text),
        View::Array(_) | View::Object(_) if depth == MAX_CANONICAL_DEPTH => {
            return Err(Error::new(
                Code::TooDeep,
                format!("nested deeper than {MAX_CANONICAL_DEPTH} levels"),
            ));
        }
        View::Array(items) => write_array(out, items, depth)?,
        View::Object(members) => write_object(out, members, depth)?,
    }
    Ok(())
}

fn write_array(out: &mut String, items: &[impl Json], depth: usize) -> Result<()> {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(out, item, depth + 1)?;
    }
    out.push(']');
    Ok(())
}

fn write_object(out: &mut String, members: json_node::Members<'_, impl Json>, depth: usize) -> Result<()> {
    // RFC 8785 sorts by UTF-16 code units. Below the surrogates this is the order of code points.
    if members.keys().any(|key| key.bytes().any(|byte| byte >= FIRST_BYTE_OF_U_E000)) {
        let mut sorted: Vec<_> = members.iter().collect();
        sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
        write_members(out, sorted.into_iter(), depth)
    } else {
        write_members(out, members.iter(), depth)
    }
}

fn write_members<'a, T: Json + 'a>(
    out: &mut String,
    members: impl Iterator<Item = (&'a str, &'a T)>,
    depth: usize,
) -> Result<()> {
    out.push('{');
    for (at, (key, value)) in members.enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_string(out, key);
        out.push(':');
        write(out, value, depth + 1)?;
    }
    out.push('}');
    Ok(())
}

/// Write a string in double quotes with as few escapes as JSON permits.
pub(crate) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    if !text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        out.push_str(text);
        out.push('"');
        return;
    }
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn write_number(out: &mut String, value: f64) {
    if value.fract() == 0.0 && value.abs() <= MAX_SAFE_INTEGER {
        #[expect(clippy::cast_possible_truncation, reason = "a safe integer")]
        let integer = value as i64;
        match u8::try_from(integer) {
            Ok(digit @ 0..=9) => out.push(char::from(b'0' + digit)),
            _ => drop(write!(out, "{integer}")),
        }
        return;
    }
    // Within these bounds the formatter gives the same digits and the same layout as ECMAScript.
    if (SMALLEST_PLAIN..LARGEST_PLAIN).contains(&value.abs()) {
        let start = out.len();
        let _ = write!(out, "{value}");
        if out.len() - start <= LEAST_TIED_FRACTION {
            return;
        }
        out.truncate(start);
    }
    if value < 0.0 {
        out.push('-');
    }
    let shortest = shortest(value.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits = mantissa.replace('.', "");
    write_layout(out, &digits, exponent.parse::<i32>().unwrap_or(0) + 1);
}

/// Return the shortest digits that round-trip, in scientific notation.
fn shortest(value: f64) -> String {
    let digits = format!("{value:e}");
    let fraction = digits.find('e').unwrap_or(0).saturating_sub(2);
    if fraction < LEAST_TIED_FRACTION {
        return digits;
    }
    // Of two candidates that are equally short and close, ECMAScript selects the even one. The formatter
    // selects the larger one; rounding to a given length selects the even one.
    let even = format!("{value:.fraction$e}");
    if even.parse() == Ok(value) { even } else { digits }
}

/// Write digits with the decimal point before digit number `point`.
fn write_layout(out: &mut String, digits: &str, point: i32) {
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    let (whole, fraction) = digits.split_at(usize::try_from(point.clamp(0, count)).unwrap_or(0));
    if count <= point && point <= LARGEST_PLAIN_EXPONENT {
        *out += digits;
        *out += &zeros(point - count);
    } else if 0 < point && point <= LARGEST_PLAIN_EXPONENT {
        let _ = write!(out, "{whole}.{fraction}");
    } else if SMALLEST_PLAIN_EXPONENT < point && point <= 0 {
        let _ = write!(out, "0.{}{digits}", zeros(-point));
    } else {
        let (first, others) = digits.split_at(1);
        let dot = if others.is_empty() { "" } else { "." };
        let _ = write!(out, "{first}{dot}{others}e{:+}", point - 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn numbers_are_formatted_as_in_ecmascript() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (123_456_789_012_345_680_000.0, "123456789012345680000"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.234e-7, "1.234e-7"),
            (0.1 + 0.2, "0.30000000000000004"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::from_bits(1), "5e-324"),
            (9_007_199_254_740_991.0, "9007199254740991"),
            (6_410_674_249_248_093.0 / 4.0, "1602668562312023.2"),
        ];
        for (number, text) in cases {
            assert_eq!(number_text(number), text);
        }
    }

    #[test]
    fn keys_are_sorted_by_utf16_code_units() {
        let value = Value::from_iter(["\u{FB33}", "😀", "a"].map(|key| (Arc::from(key), Value::Null)));
        assert_eq!(text(&value).unwrap(), "{\"a\":null,\"😀\":null,\"\u{FB33}\":null}");
    }

    #[test]
    fn a_hash_is_lower_case_hexadecimal() {
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256_hex(b""), expected);
    }
}
