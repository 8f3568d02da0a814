//! Values that the schema accepts, by type. `None` means that the value is not accepted.

use crate::json_node::{Member, Node};
use crate::strict_json::MAX_SAFE_INTEGER;

pub(super) fn object<'a>(value: &Node<'a>) -> Option<&'a [Member<'a>]> {
    if let Node::Object(members) = value { Some(members) } else { None }
}

/// Return the members of an object with at most `most` members.
pub(super) fn object_of<'a>(value: &Node<'a>, most: usize) -> Option<&'a [Member<'a>]> {
    object(value).filter(|members| members.len() <= most)
}

/// Map the items of a list whose length is within bounds.
pub(super) fn list<'a, T>(
    value: &Node<'a>,
    least: usize,
    most: usize,
    item: impl Fn(&'a Node<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let Node::Array(items) = value else { return None };
    if !(least..=most).contains(&items.len()) {
        return None;
    }
    let mut read = Vec::with_capacity(items.len());
    for value in *items {
        read.push(item(value)?);
    }
    Some(read)
}

/// Return a text whose number of characters is within bounds.
pub(super) fn text<'a>(value: &Node<'a>, least: usize, most: usize) -> Option<&'a str> {
    let Node::Text(text) = value else { return None };
    let length = if text.len() < least || text.len() > most { text.chars().count() } else { least };
    // A character has one to four bytes.
    let long_enough = least <= 1 || text.chars().nth(least - 1).is_some();
    (long_enough && (least..=most).contains(&length)).then_some(*text)
}

/// Return an id.
pub(super) fn id<'a>(value: &Node<'a>) -> Option<&'a str> {
    let text = text(value, 1, 64)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut bytes = text.bytes();
    let begins = bytes.next().is_some_and(plain);
    (begins && bytes.all(|byte| plain(byte) || matches!(byte, b'.' | b':' | b'-'))).then_some(text)
}

pub(super) fn name<'a>(value: &Node<'a>) -> Option<&'a str> {
    text(value, 1, 200)
}

/// Return a long text, such as a description.
pub(super) fn prose<'a>(value: &Node<'a>) -> Option<&'a str> {
    text(value, 0, 10_000)
}

pub(super) fn path<'a>(value: &Node<'a>) -> Option<&'a str> {
    text(value, 1, 512)
}

/// Return a text that can be a duration by its length.
pub(super) fn duration<'a>(value: &Node<'a>) -> Option<&'a str> {
    text(value, 2, 32)
}

pub(super) fn boolean(value: &Node<'_>) -> Option<bool> {
    if let Node::Bool(value) = value { Some(*value) } else { None }
}

pub(super) fn number(value: &Node<'_>) -> Option<f64> {
    if let Node::Number(number) = value { Some(*number) } else { None }
}

pub(super) fn number_within(value: &Node<'_>, least: f64, most: f64) -> Option<f64> {
    number(value).filter(|number| (least..=most).contains(number))
}

pub(super) fn integer_within(value: &Node<'_>, least: f64, most: f64) -> Option<f64> {
    number_within(value, least, most).filter(|number| number.fract() == 0.0)
}

/// Return a rate: greater than 0, at most 1.
pub(super) fn rate(value: &Node<'_>) -> Option<f64> {
    number_within(value, 0.0, 1.0).filter(|rate| *rate > 0.0)
}

pub(super) fn seed(value: &Node<'_>) -> Option<f64> {
    integer_within(value, 0.0, MAX_SAFE_INTEGER)
}
