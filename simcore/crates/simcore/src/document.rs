//! Typed access to the members of a validated document. A wrong type is a `SPEC_INVALID` error.

use crate::error::{Code, Error, Result};
use crate::json_node::{Json, Members, View};
use crate::strict_json::MAX_SAFE_INTEGER;

pub(crate) fn field<'v, T: Json>(object: Members<'v, T>, key: &str) -> Result<&'v T> {
    object.get(key).ok_or_else(|| invalid(&format!("'{key}' is missing")))
}

pub(crate) fn object<T: Json>(value: &T) -> Result<Members<'_, T>> {
    if let View::Object(members) = value.view() { Ok(members) } else { Err(invalid("an object is expected")) }
}

pub(crate) fn list<T: Json>(value: &T) -> Result<&[T]> {
    if let View::Array(items) = value.view() { Ok(items) } else { Err(invalid("an array is expected")) }
}

/// Map the items of a slice, with their index, into a vector of the same length.
pub(crate) fn map_items<'v, T, C>(
    items: &'v [T],
    mut compile: impl FnMut(usize, &'v T) -> Result<C>,
) -> Result<Vec<C>> {
    let mut compiled = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        compiled.push(compile(index, item)?);
    }
    Ok(compiled)
}

pub(crate) fn text(value: &impl Json) -> Result<&str> {
    if let View::Text(text) = value.view() { Ok(text) } else { Err(invalid("a string is expected")) }
}

pub(crate) fn number(value: &impl Json) -> Result<f64> {
    if let View::Number(number) = value.view() { Ok(number) } else { Err(invalid("a number is expected")) }
}

pub(crate) fn boolean(value: &impl Json) -> Result<bool> {
    if let View::Bool(value) = value.view() { Ok(value) } else { Err(invalid("a boolean is expected")) }
}

/// Return an integer within the safe range.
#[expect(clippy::cast_possible_truncation, reason = "checked to be an integer that fits")]
pub(crate) fn integer(value: f64) -> Result<i64> {
    if value.fract() == 0.0 && value.abs() <= MAX_SAFE_INTEGER {
        Ok(value as i64)
    } else {
        Err(invalid("a safe integer is expected"))
    }
}

/// Return a non-negative integer.
pub(crate) fn count(value: &impl Json) -> Result<u64> {
    u64::try_from(integer(number(value)?)?).map_err(|_| invalid("a negative number is not expected"))
}

/// Return the list of a key, or an empty list if the key is absent.
pub(crate) fn list_or_empty<'v, T: Json>(object: Members<'v, T>, key: &str) -> Result<&'v [T]> {
    object.get(key).map_or(Ok(&[]), list)
}

pub(crate) fn invalid(reason: &str) -> Error {
    Error::new(Code::SpecInvalid, format!("the document is not valid: {reason}"))
}
