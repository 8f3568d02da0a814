//! Reading the parts of a document that has been validated. What does not fit is an error, not a surprise.

use std::sync::Arc;

use crate::border::MAX_SAFE_INTEGER;
use crate::error::{Code, Error, Result};
use crate::value::{Object, Value};

pub(crate) fn field<'a>(object: &'a Object, key: &str) -> Result<&'a Value> {
    object.get(key).ok_or_else(|| invalid(&format!("'{key}' is missing")))
}

pub(crate) fn object(value: &Value) -> Result<&Object> {
    value.as_object().ok_or_else(|| invalid("an object is expected"))
}

pub(crate) fn list(value: &Value) -> Result<&[Value]> {
    value.as_array().map(|items| items.as_slice()).ok_or_else(|| invalid("an array is expected"))
}

pub(crate) fn text(value: &Value) -> Result<Arc<str>> {
    if let Value::Text(text) = value { Ok(Arc::clone(text)) } else { Err(invalid("a string is expected")) }
}

pub(crate) fn number(value: &Value) -> Result<f64> {
    value.as_number().ok_or_else(|| invalid("a number is expected"))
}

pub(crate) fn boolean(value: &Value) -> Result<bool> {
    if let Value::Bool(value) = value { Ok(*value) } else { Err(invalid("a boolean is expected")) }
}

/// An integer within the safe range.
#[expect(clippy::cast_possible_truncation, reason = "checked to be an integer that fits")]
pub(crate) fn integer(value: f64) -> Result<i64> {
    if value.fract() == 0.0 && value.abs() <= MAX_SAFE_INTEGER {
        Ok(value as i64)
    } else {
        Err(invalid("a safe integer is expected"))
    }
}

/// An integer that is not negative.
pub(crate) fn count(value: &Value) -> Result<u64> {
    u64::try_from(integer(number(value)?)?).map_err(|_| invalid("a negative number is not expected"))
}

/// The members of an object whose key may be absent.
pub(crate) fn list_or_empty<'a>(object: &'a Object, key: &str) -> Result<&'a [Value]> {
    object.get(key).map_or(Ok(&[]), list)
}

pub(crate) fn invalid(reason: &str) -> Error {
    Error::new(Code::SpecInvalid, format!("the document is not a valid scenario: {reason}"))
}
