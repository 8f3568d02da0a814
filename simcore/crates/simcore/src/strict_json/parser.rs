//! Recursive-descent parser of JSON, generic over the representation of values.

use std::collections::BTreeSet;

use super::{MAX_KEY_BYTES, MAX_NODES, MAX_SAFE_INTEGER, MAX_STRING_BYTES, numbers};
use crate::error::{Code, Error, Result};

/// Builder of parsed values.
pub(crate) trait Builder<'a> {
    /// A text, or a key.
    type Text: Clone + Ord;
    /// A value.
    type Value;

    fn null(&self) -> Self::Value;
    fn boolean(&self, value: bool) -> Self::Value;
    fn number(&self, value: f64) -> Self::Value;
    /// Build a text that the document contains without escapes.
    fn plain(&self, text: &'a str) -> Self::Text;
    /// Build a text that had escapes.
    fn decoded(&self, text: String) -> Self::Text;
    fn text(&self, text: Self::Text) -> Self::Value;
    /// Build an array of the items from `start` on, and remove them.
    fn array(&self, items: &mut Vec<Self::Value>, start: usize) -> Self::Value;
    /// Build an object of the members from `start` on, sorted by key, and remove them.
    fn object(&self, members: &mut Vec<(Self::Text, Self::Value)>, start: usize) -> Self::Value;
}

/// Limits and options of a document.
pub(super) struct Limits {
    pub(super) any_integer: bool,
    pub(super) max_depth: usize,
    /// True if the parser detects canonical form.
    pub(super) detect_canonical: bool,
}

/// A recursive-descent parser. Its depth is bounded, so recursion is safe.
pub(super) struct Parser<'a, B: Builder<'a>> {
    text: &'a str,
    at: usize,
    nodes: usize,
    limits: Limits,
    builder: B,
    /// Items and members of incomplete arrays and objects.
    items: Vec<B::Value>,
    members: Vec<(B::Text, B::Value)>,
    /// True while the input is known to be canonical; always False without detection.
    canonical: bool,
}

/// Up to this number of members the search for an unsorted key is linear.
const FEW: usize = 16;
// RFC 8785 sorts by UTF-16 code units. Below the surrogates this is the order of code points.
const FIRST_BYTE_OF_U_E000: u8 = 0xEE;

impl<'a, B: Builder<'a>> Parser<'a, B> {
    pub(super) fn new(text: &'a str, limits: Limits, builder: B) -> Self {
        let (items, members) = (Vec::new(), Vec::new());
        Self { text, at: 0, nodes: 0, canonical: limits.detect_canonical, limits, builder, items, members }
    }

    /// Parse the document. Return its value, and True if it is known to be canonical.
    pub(super) fn document(mut self) -> Result<(B::Value, bool)> {
        self.skip_space();
        let value = self.value(0)?;
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.fail(Code::InvalidJson, "expected the end of the document"));
        }
        Ok((value, self.canonical))
    }

    fn value(&mut self, depth: usize) -> Result<B::Value> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(self.fail(Code::TooManyNodes, &format!("more than {MAX_NODES} values")));
        }
        match self.peek() {
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => {
                let text = self.string(MAX_STRING_BYTES, Code::StringTooLong)?;
                Ok(self.builder.text(text))
            }
            Some(b't') if self.consume("true") => Ok(self.builder.boolean(true)),
            Some(b'f') if self.consume("false") => Ok(self.builder.boolean(false)),
            Some(b'n') if self.consume("null") => Ok(self.builder.null()),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: usize) -> Result<B::Value> {
        self.enter(depth)?;
        let start = self.members.len();
        // Keys so far, if they are not sorted.
        let mut seen: Option<BTreeSet<B::Text>> = None;
        let mut sorted = true;
        if self.consume_byte(b'}') {
            return Ok(self.builder.object(&mut self.members, start));
        }
        loop {
            let place = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.fail(Code::InvalidJson, "expected a key in double quotes"));
            }
            let key = self.string(MAX_KEY_BYTES, Code::KeyTooLong)?;
            self.canonical = self.canonical && self.has_same_order(place);
            let own = self.members.get(start..).unwrap_or_default();
            if own.last().is_some_and(|(last, _)| *last >= key) || !sorted {
                sorted = false;
                if is_duplicate(own, &mut seen, &key) {
                    let message =
                        format!("the key {} appears twice in one object", self.format_key_at(place));
                    return Err(self.fail_at(Code::DuplicateKey, &message, place));
                }
            }
            self.skip_space();
            if !self.consume_byte(b':') {
                return Err(self.fail(Code::InvalidJson, "expected ':' after the key"));
            }
            self.skip_space();
            let value = self.value(depth)?;
            self.members.push((key, value));
            self.skip_space();
            if self.consume_byte(b'}') {
                break;
            }
            if !self.consume_byte(b',') {
                return Err(self.fail(Code::InvalidJson, "expected ',' or '}'"));
            }
            self.skip_space();
        }
        if !sorted {
            self.canonical = false;
            self.members.get_mut(start..).unwrap_or_default().sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        }
        Ok(self.builder.object(&mut self.members, start))
    }

    /// Return True if the key at a position has the same order by code units as by code points.
    fn has_same_order(&self, place: usize) -> bool {
        let key = self.text.as_bytes().get(place..self.at).unwrap_or_default();
        key.iter().all(|byte| *byte < FIRST_BYTE_OF_U_E000)
    }

    fn array(&mut self, depth: usize) -> Result<B::Value> {
        self.enter(depth)?;
        let start = self.items.len();
        if self.consume_byte(b']') {
            return Ok(self.builder.array(&mut self.items, start));
        }
        loop {
            let item = self.value(depth)?;
            self.items.push(item);
            self.skip_space();
            if self.consume_byte(b']') {
                return Ok(self.builder.array(&mut self.items, start));
            }
            if !self.consume_byte(b',') {
                return Err(self.fail(Code::InvalidJson, "expected ',' or ']'"));
            }
            self.skip_space();
        }
    }

    fn enter(&mut self, depth: usize) -> Result<()> {
        if depth > self.limits.max_depth {
            let message = format!("nested deeper than {} levels", self.limits.max_depth);
            return Err(self.fail(Code::TooDeep, &message));
        }
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    fn string(&mut self, limit: usize, code: Code) -> Result<B::Text> {
        let start = self.at;
        self.at += 1;
        let plain = self.plain();
        let (text, length) = if self.consume_byte(b'"') {
            (self.builder.plain(plain), plain.len())
        } else {
            let text = self.long_string(start, plain)?;
            let length = text.len();
            (self.builder.decoded(text), length)
        };
        if length > limit {
            return Err(self.fail_at(code, &format!("longer than {limit} bytes"), start));
        }
        Ok(text)
    }

    /// Parse the rest of a string after its first plain characters.
    fn long_string(&mut self, start: usize, plain: &str) -> Result<String> {
        self.canonical = false;
        let mut value = String::from(plain);
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(value);
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

    /// Consume plain characters.
    fn plain(&mut self) -> &'a str {
        let rest = self.rest();
        let length = plain_length(rest.as_bytes());
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

    /// Parse the four hexadecimal digits of a `\u` escape.
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

    fn number(&mut self) -> Result<B::Value> {
        let Some((literal, is_integer)) = numbers::literal(self.rest()) else {
            return Err(self.fail(Code::InvalidJson, "expected a value"));
        };
        let value = numbers::value(literal, is_integer);
        if is_integer && value.abs() > MAX_SAFE_INTEGER && !self.limits.any_integer {
            return Err(self.fail(Code::NumberRange, "an integer must lie within ±9007199254740991"));
        }
        if value.is_infinite() {
            return Err(self.fail(Code::NumberRange, "the number does not fit binary64"));
        }
        self.canonical = self.canonical && numbers::is_canonical(literal, is_integer, value);
        self.at += literal.len();
        Ok(self.builder.number(value + 0.0)) // -0 becomes 0
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.canonical = false;
            self.at += 1;
        }
    }

    #[inline]
    fn consume_byte(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn consume(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    /// Format the key at a position for a message.
    fn format_key_at(&mut self, place: usize) -> String {
        let after = std::mem::replace(&mut self.at, place + 1);
        let plain = self.plain();
        let key = if self.peek() == Some(b'"') { Ok(plain.into()) } else { self.long_string(place, plain) };
        self.at = after;
        format_key(&key.unwrap_or_default())
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

/// Return the length of the plain prefix of a string, eight bytes at a time.
fn plain_length(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks();
    let others = words.iter().map(|word| special_bytes(u64::from_le_bytes(*word)));
    if let Some((at, others)) = others.enumerate().find(|(_, others)| *others != 0) {
        return at * size_of::<u64>() + (others.trailing_zeros() / u8::BITS) as usize;
    }
    let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1F));
    bytes.len() - rest.len() + length.unwrap_or(rest.len())
}

/// Return the high bits of the special bytes. Bits above the lowest one may be false positives.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xFF;
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | is(b'"') | is(b'\\')) & (ONES << 7)
}

/// Return True if an unsorted object already has a key.
fn is_duplicate<K: Clone + Ord, V>(members: &[(K, V)], seen: &mut Option<BTreeSet<K>>, key: &K) -> bool {
    if members.len() < FEW {
        return members.iter().any(|(name, _)| name == key);
    }
    let seen = seen.get_or_insert_with(BTreeSet::new);
    // Add the members since the last call.
    seen.extend(members.get(seen.len()..).unwrap_or_default().iter().map(|(name, _)| name.clone()));
    seen.contains(key)
}

/// Format a key for a message: short, and harmless to a terminal.
fn format_key(key: &str) -> String {
    let safe: String = key.chars().take(40).map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect();
    format!("'{safe}'")
}
