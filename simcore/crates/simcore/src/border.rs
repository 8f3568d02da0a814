//! The strict JSON border: the only parser that ever touches a scenario.
//!
//! Stricter than RFC 8259 where parsers disagree: duplicate keys, lone surrogates, numbers outside binary64,
//! integers beyond 2^53 − 1, and anything over the limits are errors. The first error in document order is reported.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Code, Error, Result};
use crate::value::{Object, Value};

/// The most bytes that a document may have.
pub const MAX_BYTES: usize = 1 << 20;
/// How deep arrays and objects may be nested.
pub const MAX_DEPTH: usize = 64;
/// The most values that a document may have.
pub const MAX_NODES: usize = 100_000;
/// The most bytes that a string may have.
pub const MAX_STRING_BYTES: usize = 1 << 16;
/// The most bytes that a key may have.
pub const MAX_KEY_BYTES: usize = 256;
/// How deep what the engine writes may be nested: results wrap the deepest values.
pub const MAX_CANONICAL_DEPTH: usize = MAX_DEPTH + 16;
/// The most bytes of what the engine writes, which may be longer than the document it came from.
const MAX_CANONICAL_BYTES: usize = 1 << 26;
/// The largest integer that an integer literal may name, on either side of zero.
pub const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Parse a JSON document strictly.
///
/// # Errors
///
/// What is wrong, with line and column (both from 1, columns in code points).
pub fn parse(document: &[u8]) -> Result<Value> {
    let text = text(document, MAX_BYTES)?;
    Parser { text, at: 0, nodes: 0, any_integer: false, max_depth: MAX_DEPTH }.document()
}

/// Parse what [`crate::canonical::text`] wrote: as [`parse`], with room for results, and a long integer is a float.
///
/// Canonical form writes 1e17 as an integer literal, which in somebody's document would be an error.
///
/// # Errors
///
/// As [`parse`].
pub fn parse_canonical(document: &[u8]) -> Result<Value> {
    let text = text(document, MAX_CANONICAL_BYTES)?;
    Parser { text, at: 0, nodes: 0, any_integer: true, max_depth: MAX_CANONICAL_DEPTH }.document()
}

fn text(document: &[u8], max_bytes: usize) -> Result<&str> {
    if document.len() > max_bytes {
        let message = format!("the document has {} bytes; at most {max_bytes} are accepted", document.len());
        return Err(Error::new(Code::DocumentTooLarge, message));
    }
    std::str::from_utf8(document).map_err(|error| {
        Error::new(Code::InvalidUtf8, format!("not valid UTF-8 at byte {}", error.valid_up_to()))
    })
}

/// A recursive-descent parser; its depth is bounded, so recursion is safe.
struct Parser<'a> {
    text: &'a str,
    at: usize,
    nodes: usize,
    any_integer: bool,
    max_depth: usize,
}

impl<'a> Parser<'a> {
    fn document(&mut self) -> Result<Value> {
        self.skip_space();
        let value = self.value(0)?;
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.fail(Code::InvalidJson, "expected the end of the document"));
        }
        Ok(value)
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(self.fail(Code::TooManyNodes, &format!("more than {MAX_NODES} values")));
        }
        match self.peek() {
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => Ok(Value::Text(self.string(MAX_STRING_BYTES, Code::StringTooLong)?)),
            Some(b't') if self.take("true") => Ok(Value::Bool(true)),
            Some(b'f') if self.take("false") => Ok(Value::Bool(false)),
            Some(b'n') if self.take("null") => Ok(Value::Null),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value> {
        self.enter(depth)?;
        let mut members = BTreeMap::new();
        if self.take("}") {
            return Ok(Object::default().into());
        }
        loop {
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.fail(Code::InvalidJson, "expected a key in double quotes"));
            }
            let key = self.string(MAX_KEY_BYTES, Code::KeyTooLong)?;
            if members.contains_key(&key) {
                let message = format!("the key {} appears twice in one object", shown(&key));
                return Err(self.fail_at(Code::DuplicateKey, &message, start));
            }
            self.skip_space();
            if !self.take(":") {
                return Err(self.fail(Code::InvalidJson, "expected ':' after the key"));
            }
            self.skip_space();
            let value = self.value(depth)?;
            members.insert(key, value);
            self.skip_space();
            if self.take("}") {
                return Ok(members.into_iter().collect());
            }
            if !self.take(",") {
                return Err(self.fail(Code::InvalidJson, "expected ',' or '}'"));
            }
            self.skip_space();
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value> {
        self.enter(depth)?;
        let mut items = Vec::new();
        if self.take("]") {
            return Ok(items.into());
        }
        loop {
            items.push(self.value(depth)?);
            self.skip_space();
            if self.take("]") {
                return Ok(items.into());
            }
            if !self.take(",") {
                return Err(self.fail(Code::InvalidJson, "expected ',' or ']'"));
            }
            self.skip_space();
        }
    }

    fn enter(&mut self, depth: usize) -> Result<()> {
        if depth > self.max_depth {
            let message = format!("nested deeper than {} levels", self.max_depth);
            return Err(self.fail(Code::TooDeep, &message));
        }
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    fn string(&mut self, limit: usize, code: Code) -> Result<Arc<str>> {
        let start = self.at;
        self.at += 1;
        let plain = self.plain();
        let value = if self.take("\"") { Arc::from(plain) } else { self.long_string(start, plain)? };
        if value.len() > limit {
            return Err(self.fail_at(code, &format!("longer than {limit} bytes"), start));
        }
        Ok(value)
    }

    /// The rest of a string that does not end with its first run of plain characters.
    fn long_string(&mut self, start: usize, plain: &str) -> Result<Arc<str>> {
        let mut value = String::from(plain);
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(value.into());
                }
                Some(b'\\') => value.push(self.escape()?),
                None => return Err(self.fail_at(Code::InvalidJson, "the string is never closed", start)),
                Some(_) => {
                    let message = "control characters must be escaped in a string";
                    return Err(self.fail(Code::InvalidJson, message));
                }
            }
            value.push_str(self.plain());
        }
    }

    /// Characters that stand for themselves, as many as there are.
    fn plain(&mut self) -> &'a str {
        let rest = self.rest();
        let length = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1F));
        let length = length.unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn escape(&mut self) -> Result<char> {
        let start = self.at;
        let plain = match self.text.as_bytes().get(start + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            _ => return self.unicode_escape(start),
        };
        self.at = start + 2;
        Ok(plain)
    }

    fn unicode_escape(&mut self, start: usize) -> Result<char> {
        let unit = self.code_unit(start)?;
        let low = if (0xD800..=0xDBFF).contains(&unit) && self.rest().starts_with("\\u") {
            Some(self.code_unit(self.at)?)
        } else {
            None
        };
        let character = match low {
            None => char::from_u32(unit),
            Some(low) if (0xDC00..=0xDFFF).contains(&low) => {
                char::from_u32(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
            }
            Some(_) => None,
        };
        character
            .ok_or_else(|| self.fail_at(Code::LoneSurrogate, "a lone surrogate is not a character", start))
    }

    /// The four hexadecimal digits of a `\u` escape.
    fn code_unit(&mut self, start: usize) -> Result<u32> {
        let escape = self.text.as_bytes().get(start..start + 6);
        let digits = escape.and_then(|escape| escape.strip_prefix(b"\\u"));
        let unit = digits.and_then(|digits| {
            digits.iter().try_fold(0, |unit, &digit| Some(unit * 16 + char::from(digit).to_digit(16)?))
        });
        let Some(unit) = unit else {
            return Err(self.fail_at(Code::InvalidJson, "unknown escape in a string", start));
        };
        self.at = start + 6;
        Ok(unit)
    }

    fn number(&mut self) -> Result<Value> {
        let Some((literal, is_integer)) = number_literal(self.rest()) else {
            return Err(self.fail(Code::InvalidJson, "expected a value"));
        };
        let value: f64 = literal.parse().unwrap_or(f64::INFINITY);
        if is_integer && value.abs() > MAX_SAFE_INTEGER && !self.any_integer {
            return Err(self.fail(Code::NumberRange, "an integer must lie within ±9007199254740991"));
        }
        if value.is_infinite() {
            return Err(self.fail(Code::NumberRange, "the number does not fit binary64"));
        }
        self.at += literal.len();
        Ok(Value::Number(value + 0.0)) // -0 becomes 0
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn fail(&self, code: Code, message: &str) -> Error {
        self.fail_at(code, message, self.at)
    }

    fn fail_at(&self, code: Code, message: &str, at: usize) -> Error {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        Error::new(code, format!("{message} (line {line}, column {column})"))
    }
}

/// The longest number at the start of a text, and whether it has neither fraction nor exponent.
pub(crate) fn number_literal(text: &str) -> Option<(&str, bool)> {
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

/// A key as it may stand in a message: short, and with nothing that could disturb a terminal.
fn shown(key: &str) -> String {
    let safe: String = key.chars().take(40).map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect();
    format!("'{safe}'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical;

    fn refusal(document: &str) -> String {
        parse(document.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn every_kind_of_value_is_read() {
        let value =
            parse(br#" {"b":[1,-0,2.5e1,"\u00e9\ud83d\ude00\n"],"a":{"x":null,"y":true,"z":false}} "#);
        let expected = "{\"a\":{\"x\":null,\"y\":true,\"z\":false},\"b\":[1,0,25,\"é😀\\n\"]}";
        assert_eq!(canonical::text(&value.unwrap()).unwrap(), expected);
    }

    #[test]
    fn columns_count_code_points() {
        assert_eq!(refusal("\n [\"é😀\" x"), "INVALID_JSON: expected ',' or ']' (line 2, column 8)");
    }

    #[test]
    fn the_first_error_of_a_surrogate_pair_is_where_it_starts() {
        assert!(refusal(r#""a\ud800\u0041""#).ends_with("(line 1, column 3)"));
        assert!(
            refusal(r#""a\ud800\u00x1""#)
                .starts_with("INVALID_JSON: unknown escape in a string (line 1, column 9)")
        );
    }

    #[test]
    fn a_word_is_not_a_prefix() {
        assert_eq!(refusal("tru"), "INVALID_JSON: expected a value (line 1, column 1)");
        assert_eq!(refusal("nulls"), "INVALID_JSON: expected the end of the document (line 1, column 5)");
        assert_eq!(refusal("01"), "INVALID_JSON: expected the end of the document (line 1, column 2)");
        assert_eq!(refusal("NaN"), "INVALID_JSON: expected a value (line 1, column 1)");
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = "[".repeat(10_000);
        assert_eq!(refusal(&deep), "TOO_DEEP: nested deeper than 64 levels (line 1, column 65)");
        assert!(parse(format!("{}{}", "[".repeat(64), "]".repeat(64)).as_bytes()).is_ok());
    }

    #[test]
    fn invalid_utf8_names_its_byte() {
        assert_eq!(parse(b"\"ab\xED\xA0\x80\"").unwrap_err().message(), "not valid UTF-8 at byte 3");
    }
}
