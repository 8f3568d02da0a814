//! Number literals of JSON.

use super::MAX_SAFE_INTEGER;
use crate::canonical_json::number_text;

/// Decimal digits that binary64 always distinguishes.
const DISTINCT_DIGITS: usize = 15;

/// Return the longest number at the start of a text, and True if it is an integer literal.
pub(super) fn literal(text: &str) -> Option<(&str, bool)> {
    let bytes = text.as_bytes();
    let digits_at = |at: usize| bytes.iter().skip(at).take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = usize::from(bytes.first() == Some(&b'-'));
    end += match bytes.get(end) {
        Some(b'0') => 1,
        Some(b'1'..=b'9') => digits_at(end),
        _ => return None,
    };
    let whole = end;
    if bytes.get(end) == Some(&b'.') && digits_at(end + 1) > 0 {
        end += 1 + digits_at(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let digits = digits_at(end + 1 + sign);
        end += if digits > 0 { 1 + sign + digits } else { 0 };
    }
    Some((text.get(..end)?, end == whole))
}

/// Return the value of a literal; infinite if it is out of range.
pub(super) fn value(literal: &str, is_integer: bool) -> f64 {
    if is_integer && literal.len() <= DISTINCT_DIGITS {
        parse_small(literal)
    } else {
        literal.parse().unwrap_or(f64::INFINITY)
    }
}

/// Return the value of a short integer literal with an optional minus.
#[expect(clippy::cast_precision_loss, reason = "so few digits are exact")]
fn parse_small(literal: &str) -> f64 {
    let digits = literal.strip_prefix('-').unwrap_or(literal);
    let value = digits.bytes().fold(0_u64, |value, digit| value * 10 + u64::from(digit & 15)) as f64;
    if digits.len() < literal.len() { -value } else { value }
}

/// Return True if a literal has the spelling of canonical form.
///
/// A literal of few digits is always the shortest spelling, because no other short decimal has the same
/// value.
pub(super) fn is_canonical(literal: &str, is_integer: bool, value: f64) -> bool {
    if is_integer {
        return value.abs() <= MAX_SAFE_INTEGER && literal != "-0";
    }
    if literal.len() > DISTINCT_DIGITS {
        return number_text(value) == literal;
    }
    let Some((whole, fraction)) = literal.split_once('.') else { return false };
    let shortest = fraction.bytes().all(|byte| byte.is_ascii_digit()) && !fraction.ends_with('0');
    let plain = whole.trim_start_matches('-') != "0" || !fraction.starts_with("000000");
    shortest && plain
}
