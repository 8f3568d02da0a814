//! Paths into a state tree: `state.a.b[2]["odd key"]`.
//!
//! Conditions also accept the JSONLogic spelling `state.a.b.2`. There a run of digits is an index of an array
//! and a key of an object.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::canonical_json::write_string;
use crate::error::{Code, Error, Result};
use crate::strict_json::{self, MAX_KEY_BYTES};
use crate::value::Value;

/// Keys that are dangerous to clients in other languages.
pub(crate) const FORBIDDEN_KEYS: [&str; 3] = ["__proto__", "constructor", "prototype"];
/// The limit of the scenario schema.
pub(crate) const MAX_PATH_CHARACTERS: usize = 512;

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// A member of an object.
    Key(Arc<str>),
    /// An item of an array.
    Index(u64),
    /// A key of digits: a member of an object, or an item of an array.
    Digits(Arc<str>, u64),
}

/// One step of a path as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step<'a> {
    /// A name, quoted or not.
    Name(Cow<'a, str>),
    /// A number in brackets.
    Index(u64),
}

/// Parse the path of an effect, with its root.
///
/// # Errors
///
/// `BAD_PATH` if the text is not a path.
pub fn parse_path(text: &str) -> Result<Vec<Segment>> {
    let mut steps = Vec::new();
    path_steps(text, &mut steps).ok_or_else(|| bad_path(text))?;
    let segment = |step| match step {
        Step::Name(name) => Segment::Key(name.into()),
        Step::Index(index) => Segment::Index(index),
    };
    Ok(steps.into_iter().map(segment).collect())
}

/// Parse the steps of an effect's path, with its root. Return `None` if the text is not a path.
pub(crate) fn path_steps<'a>(text: &'a str, steps: &mut Vec<Step<'a>>) -> Option<()> {
    read_steps(text, identifier, steps)
}

/// Parse a path into the state whose keys and indices a document may have.
///
/// # Errors
///
/// `BAD_PATH`, `FORBIDDEN_KEY` (dangerous to clients in other languages) or `KEY_TOO_LONG` (a snapshot with
/// such a key could not be read).
pub(crate) fn parse_state_path(text: &str) -> Result<Vec<Segment>> {
    let shown: String = text.chars().take(80).collect();
    if text.chars().nth(MAX_PATH_CHARACTERS).is_some() {
        let message = format!("'{shown}…' has more than {MAX_PATH_CHARACTERS} characters");
        return Err(Error::new(Code::BadPath, message));
    }
    let path = parse_path(text)?;
    let is_key = |segment: &Segment, wanted: &str| matches!(segment, Segment::Key(key) if &**key == wanted);
    if !path.first().is_some_and(|root| is_key(root, "state")) {
        return Err(Error::new(Code::BadPath, format!("'{shown}' must start with 'state'")));
    }
    if path.iter().any(|segment| FORBIDDEN_KEYS.iter().any(|key| is_key(segment, key))) {
        let message = format!("'{shown}' uses a key that is dangerous to clients");
        return Err(Error::new(Code::ForbiddenKey, message));
    }
    if path.iter().any(|segment| matches!(segment, Segment::Key(key) if key.len() > MAX_KEY_BYTES)) {
        let message = format!("'{shown}' uses a key that is longer than {MAX_KEY_BYTES} bytes");
        return Err(Error::new(Code::KeyTooLong, message));
    }
    Ok(path)
}

/// Split a JSONLogic variable at dots and brackets. A malformed part is a literal name, split at dots.
#[must_use]
pub fn split_variable(text: &str) -> Vec<Segment> {
    let mut steps = Vec::new();
    variable_steps(text, &mut steps);
    let segment = |step| match step {
        Step::Name(name) => variable_key(name),
        Step::Index(index) => Segment::Index(index),
    };
    steps.into_iter().map(segment).collect()
}

/// Split a JSONLogic variable into steps, as [`split_variable`].
pub(crate) fn variable_steps<'a>(text: &'a str, steps: &mut Vec<Step<'a>>) {
    if text.is_empty() {
        return;
    }
    if text.contains('[') {
        if read_steps(text, loose_name, steps).is_some() {
            return;
        }
        steps.clear();
    }
    steps.extend(text.split('.').map(|name| Step::Name(name.into())));
}

/// Format a path. `parse_path` returns the same segments.
#[must_use]
pub fn format_path(path: &[Segment]) -> String {
    let mut out = String::new();
    for (at, segment) in path.iter().enumerate() {
        match segment {
            Segment::Key(name) | Segment::Digits(name, _) if at == 0 => out += name,
            Segment::Key(name) | Segment::Digits(name, _) => write_key(&mut out, name),
            Segment::Index(index) => {
                let _ = write!(out, "[{index}]");
            }
        }
    }
    out
}

/// Return the value at a path.
///
/// Digits are an index only in the path of a variable; `parse_path` never creates them.
#[must_use]
#[inline]
pub fn lookup<'a>(root: &'a Value, path: &[Segment]) -> Option<&'a Value> {
    path.iter().try_fold(root, child)
}

/// Return the value of a JSONLogic variable: [`lookup`] with [`split_variable`].
pub(crate) fn lookup_variable<'a>(root: &'a Value, text: &str) -> Option<&'a Value> {
    if text.is_empty() || text.contains('[') {
        return lookup(root, &split_variable(text));
    }
    text.split('.').try_fold(root, |value, name| match value {
        Value::Object(members) => members.get(name),
        Value::Array(items) => items.get(usize::try_from(index(name)?).ok()?),
        _ => None,
    })
}

/// As [`lookup`], for mutation. Shared containers on the path are copied.
pub(crate) fn lookup_mut<'a>(root: &'a mut Value, path: &[Segment]) -> Option<&'a mut Value> {
    path.iter().try_fold(root, child_mut)
}

#[inline]
fn child<'a>(value: &'a Value, segment: &Segment) -> Option<&'a Value> {
    match (value, segment) {
        (Value::Object(members), Segment::Key(name) | Segment::Digits(name, _)) => members.get(name.as_ref()),
        (Value::Array(items), Segment::Index(index) | Segment::Digits(_, index)) => {
            items.get(usize::try_from(*index).ok()?)
        }
        _ => None,
    }
}

/// Return the value one step down, for mutation.
pub(crate) fn child_mut<'a>(value: &'a mut Value, segment: &Segment) -> Option<&'a mut Value> {
    match (value, segment) {
        (Value::Object(members), Segment::Key(name) | Segment::Digits(name, _)) => {
            Arc::make_mut(members).get_mut(name)
        }
        (Value::Array(items), Segment::Index(index) | Segment::Digits(_, index)) => {
            Arc::make_mut(items).get_mut(usize::try_from(*index).ok()?)
        }
        _ => None,
    }
}

fn variable_key(name: Cow<'_, str>) -> Segment {
    match index(&name) {
        Some(index) => Segment::Digits(name.into(), index),
        None => Segment::Key(name.into()),
    }
}

/// Return the index that a text spells, with at most ten digits and no leading zeros.
fn index(text: &str) -> Option<u64> {
    let spelled = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if spelled && text.len() <= 10 { text.parse().ok() } else { None }
}

/// Parser of a name: returns the name and the rest of the text.
type Name = fn(&str) -> Option<(&str, &str)>;

/// Parse a name, then `.name`, `[0]` and `["key"]` to the end of the text. Return `None` for anything else.
fn read_steps<'a>(text: &'a str, name: Name, steps: &mut Vec<Step<'a>>) -> Option<()> {
    let (root, mut text) = name(text)?;
    steps.push(Step::Name(root.into()));
    while !text.is_empty() {
        let (step, rest) = if let Some(named) = text.strip_prefix('.') {
            let (name, rest) = name(named)?;
            (Step::Name(name.into()), rest)
        } else {
            bracket(text.strip_prefix('[')?)?
        };
        steps.push(step);
        text = rest;
    }
    Some(())
}

/// Parse the content of brackets. Return it with the rest of the text.
fn bracket(text: &str) -> Option<(Step<'_>, &str)> {
    if text.starts_with('"') {
        let (quoted, rest) = text.split_at_checked(quoted_length(text)?)?;
        let Ok(Value::Text(name)) = strict_json::parse(quoted.as_bytes()) else { return None };
        Some((Step::Name(name.to_string().into()), rest.strip_prefix(']')?))
    } else {
        let (digits, rest) = text.split_once(']')?;
        Some((Step::Index(index(digits)?), rest))
    }
}

/// Return the length of the quoted string at the start of a text, with its quotes.
fn quoted_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })?;
    Some(end + 2)
}

fn identifier(text: &str) -> Option<(&str, &str)> {
    let length = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    if text.starts_with(|c: char| c.is_ascii_digit()) { None } else { split_name(text, length, 1) }
}

fn loose_name(text: &str) -> Option<(&str, &str)> {
    let length = text.find(['.', '[', ']', '"']).unwrap_or(text.len());
    split_name(text, length, 0)
}

fn split_name(text: &str, length: usize, least: usize) -> Option<(&str, &str)> {
    if length < least { None } else { text.split_at_checked(length) }
}

fn write_key(out: &mut String, name: &str) {
    if identifier(name).is_some_and(|(_, rest)| rest.is_empty()) {
        *out += ".";
        *out += name;
    } else {
        *out += "[";
        write_string(out, name);
        *out += "]";
    }
}

fn bad_path(text: &str) -> Error {
    let mut shown: String = text.chars().take(80).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    Error::new(Code::BadPath, format!("'{shown}' is not a path; write state.a.b[2] or state[\"odd key\"]"))
}

/// Escape a key for a JSON Pointer.
pub(crate) fn escape_pointer(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Segment {
        Segment::Key(text.into())
    }

    #[test]
    fn a_path_round_trips() {
        for text in ["state", "state.a_1.b[2][0]", r#"state["odd key"].c["1"]["\"\\\n"]"#] {
            assert_eq!(format_path(&parse_path(text).unwrap()), text);
        }
    }

    #[test]
    fn an_invalid_path_is_rejected() {
        for text in [
            "",
            "1",
            "a.",
            "a..b",
            "a.1",
            "a[01]",
            "a[-1]",
            "a[",
            "a[\"x]",
            "a[\"x\"",
            "a b",
            "a[12345678901]",
        ] {
            assert_eq!(parse_path(text).unwrap_err().code(), Code::BadPath, "{text}");
        }
    }

    #[test]
    fn a_variable_is_split_at_dots_and_brackets() {
        assert_eq!(split_variable("a.2.é"), [name("a"), Segment::Digits("2".into(), 2), name("é")]);
        assert_eq!(split_variable("a[2][\"b.c\"]"), [name("a"), Segment::Index(2), name("b.c")]);
        assert_eq!(split_variable("[0]"), [name(""), Segment::Index(0)]);
        assert_eq!(split_variable("a[.b]"), [name("a["), name("b]")]);
    }

    #[test]
    fn digits_are_an_index_only_in_an_array() {
        let value = strict_json::parse(br#"{"a":{"0":1},"b":[2]}"#).unwrap();
        let found = |path| lookup(&value, &split_variable(path)).and_then(Value::as_number);
        assert_eq!(found("a.0"), Some(1.0));
        assert_eq!(found("a[0]"), None);
        assert_eq!(found("b.0"), Some(2.0));
        assert_eq!(found("b[0]"), Some(2.0));
        assert_eq!(found("b.00"), None);
        for path in ["", "a", "a.0", "a[0]", "b.0", "b[0]", "b.00", "b.1", "a.0.x", ".", "b."] {
            let one_by_one = lookup(&value, &split_variable(path));
            assert_eq!(format!("{:?}", lookup_variable(&value, path)), format!("{one_by_one:?}"), "{path}");
        }
    }
}
