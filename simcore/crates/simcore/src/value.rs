//! JSON values that are cheap to copy: text, arrays and objects are shared until somebody changes them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock};

use crate::canonical;

/// A JSON value. Every number is finite and never −0.
#[derive(Clone)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A binary64 number.
    Number(f64),
    /// A string.
    Text(Arc<str>),
    /// An array.
    Array(Arc<Array>),
    /// An object.
    Object(Arc<Object>),
}

/// The items of an array.
#[derive(Clone, Default)]
pub struct Array(Vec<Value>);

/// The members of an object, ordered by the code points of their keys.
#[derive(Clone, Default)]
pub struct Object(BTreeMap<Arc<str>, Value>);

impl Value {
    /// A value with nothing inside it: neither array nor object.
    #[must_use]
    pub fn is_scalar(&self) -> bool {
        !matches!(self, Self::Array(_) | Self::Object(_))
    }

    /// The number, if this is one.
    #[must_use]
    pub fn as_number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    /// The text, if this is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The items, if this is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&Array> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// The members, if this is an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }
}

/// An empty object: the parameters of what takes none.
pub(crate) static NOTHING: LazyLock<Value> = LazyLock::new(|| Object::default().into());

/// An object of some members.
pub(crate) fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    members.into_iter().map(|(key, value)| (Arc::from(key), value)).collect()
}

/// A count as a number.
#[expect(clippy::cast_precision_loss, reason = "nothing here is counted beyond 2^53")]
pub(crate) fn count(number: u64) -> Value {
    Value::Number(number as f64)
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<&Arc<str>> for Value {
    fn from(value: &Arc<str>) -> Self {
        Self::Text(Arc::clone(value))
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value.into())
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::Array(Arc::new(Array(items)))
    }
}

impl FromIterator<Value> for Value {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        items.into_iter().collect::<Vec<_>>().into()
    }
}

impl FromIterator<(Arc<str>, Value)> for Value {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Value)>>(members: I) -> Self {
        Self::Object(Arc::new(Object(members.into_iter().collect())))
    }
}

impl From<Object> for Value {
    fn from(members: Object) -> Self {
        Self::Object(Arc::new(members))
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&canonical::text(self).unwrap_or_else(|error| error.to_string()))
    }
}

impl Deref for Array {
    type Target = Vec<Value>;

    fn deref(&self) -> &Vec<Value> {
        &self.0
    }
}

impl DerefMut for Array {
    fn deref_mut(&mut self) -> &mut Vec<Value> {
        &mut self.0
    }
}

impl Deref for Object {
    type Target = BTreeMap<Arc<str>, Value>;

    fn deref(&self) -> &BTreeMap<Arc<str>, Value> {
        &self.0
    }
}

impl DerefMut for Object {
    fn deref_mut(&mut self) -> &mut BTreeMap<Arc<str>, Value> {
        &mut self.0
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        if !self.0.iter().all(Value::is_scalar) {
            dismantle(std::mem::take(&mut self.0));
        }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if !self.0.values().all(Value::is_scalar) {
            dismantle(std::mem::take(&mut self.0).into_values().collect());
        }
    }
}

/// Free values level by level: a rule can nest them deeper than the stack allows recursion to follow.
fn dismantle(mut pending: Vec<Value>) {
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => {
                if let Some(mut items) = Arc::into_inner(items) {
                    pending.append(&mut items.0);
                }
            }
            Value::Object(members) => {
                if let Some(mut members) = Arc::into_inner(members) {
                    pending.extend(std::mem::take(&mut members.0).into_values());
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_very_deep_value_is_dropped_without_recursion() {
        let mut value = Value::Null;
        for level in 0..100_000 {
            value = if level % 2 == 0 {
                Value::from(vec![value, Value::from(1.0)])
            } else {
                Value::from_iter([(Arc::from("a"), value)])
            };
        }
        let shared = value.clone();
        drop(value);
        assert!(!shared.is_scalar());
    }
}
