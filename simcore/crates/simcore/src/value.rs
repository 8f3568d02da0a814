//! Shared JSON values with copy on write. A clone of a text, an array or an object is cheap.

use std::cell::Cell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock};

use crate::canonical_json;
use crate::json_node::{Json, Members, View};
use crate::strict_json::{Builder, MAX_DEPTH};

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
///
/// They are one contiguous block: objects are small, and reads are far more frequent than insertions and
/// removals.
#[derive(Clone, Default)]
pub struct Object(Vec<(Arc<str>, Value)>);

impl Value {
    /// Return True if the value is neither an array nor an object.
    #[must_use]
    pub fn is_scalar(&self) -> bool {
        !matches!(self, Self::Array(_) | Self::Object(_))
    }

    /// Return the number, if it is one.
    #[must_use]
    pub fn as_number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    /// Return the text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Return the items, if it is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&Array> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// Return the members, if it is an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }
}

/// An empty object: the parameters of an action without parameters.
pub(crate) static EMPTY_OBJECT: LazyLock<Value> = LazyLock::new(|| Object::default().into());

/// Create an object from members.
pub(crate) fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    members.into_iter().map(|(key, value)| (Arc::from(key), value)).collect()
}

/// Convert a count to a number.
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
        Self::Object(Arc::new(members.into_iter().collect()))
    }
}

impl From<Object> for Value {
    fn from(members: Object) -> Self {
        Self::Object(Arc::new(members))
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&canonical_json::text(self).unwrap_or_else(|error| error.to_string()))
    }
}

impl Json for Value {
    type Key = Arc<str>;

    #[inline]
    fn view(&self) -> View<'_, Self> {
        match self {
            Self::Null => View::Null,
            Self::Bool(value) => View::Bool(*value),
            Self::Number(number) => View::Number(*number),
            Self::Text(text) => View::Text(text),
            Self::Array(items) => View::Array(items),
            Self::Object(members) => View::Object(Members(&members.0)),
        }
    }

    fn to_value(&self) -> Value {
        self.clone()
    }
}

/// Builder of shared values.
pub(crate) struct Values;

impl<'a> Builder<'a> for Values {
    type Text = Arc<str>;
    type Value = Value;

    fn null(&self) -> Value {
        Value::Null
    }

    fn boolean(&self, value: bool) -> Value {
        Value::Bool(value)
    }

    fn number(&self, value: f64) -> Value {
        Value::Number(value)
    }

    fn plain(&self, text: &'a str) -> Arc<str> {
        text.into()
    }

    fn decoded(&self, text: String) -> Arc<str> {
        text.into()
    }

    fn text(&self, text: Arc<str>) -> Value {
        Value::Text(text)
    }

    fn array(&self, items: &mut Vec<Value>, start: usize) -> Value {
        items.drain(start..).collect()
    }

    fn object(&self, members: &mut Vec<(Arc<str>, Value)>, start: usize) -> Value {
        Object(members.drain(start..).collect()).into()
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

impl Object {
    /// Return the number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Return True if the object is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Return the value of a key.
    #[must_use]
    #[inline]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.members().get(key)
    }

    /// Return a view of the members.
    pub(crate) fn members(&self) -> Members<'_, Value> {
        Members(&self.0)
    }

    /// Return the value of a key for mutation.
    #[must_use]
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        let at = self.position(key).ok()?;
        self.0.get_mut(at).map(|(_, value)| value)
    }

    /// Return True if the key exists.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Set the value of a key. Return the old value.
    pub fn insert(&mut self, key: Arc<str>, value: Value) -> Option<Value> {
        match self.position(&key) {
            Ok(at) => self.0.get_mut(at).map(|(_, old)| std::mem::replace(old, value)),
            Err(at) => {
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    /// Remove a member. Return its value.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.position(key).ok().map(|at| self.0.remove(at).1)
    }

    /// Iterate over the members in the order of their keys.
    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Arc<str>, &Value)> + ExactSizeIterator {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// Iterate over the keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().map(|(key, _)| key)
    }

    /// Iterate over the values in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Return the position of a key, or the position for its insertion.
    fn position(&self, key: &str) -> Result<usize, usize> {
        // Members mostly arrive sorted, because canonical JSON sorts them.
        if self.0.last().is_none_or(|(last, _)| **last < *key) {
            return Err(self.0.len());
        }
        self.0.binary_search_by(|(name, _)| (**name).cmp(key))
    }
}

impl FromIterator<(Arc<str>, Value)> for Object {
    /// Of members with the same key the last one wins.
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Value)>>(members: I) -> Self {
        let mut members: Vec<_> = members.into_iter().collect();
        if members.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Self(members);
        }
        members.sort_by(|(a, _), (b, _)| a.cmp(b));
        members.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                std::mem::swap(later, earlier);
            }
            same
        });
        Self(members)
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        if !self.0.iter().all(Value::is_scalar) {
            free(std::mem::take(&mut self.0), |items| items);
        }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if !self.values().all(Value::is_scalar) {
            free(std::mem::take(&mut self.0), |members| {
                members.into_iter().map(|(_, value)| value).collect()
            });
        }
    }
}

/// Free the content of a container: recursively up to the depth of documents, iteratively below.
fn free<T>(held: T, values: impl FnOnce(T) -> Vec<Value>) {
    thread_local! {
        static DEPTH: Cell<usize> = const { Cell::new(0) };
    }
    let depth = DEPTH.get();
    if depth < MAX_DEPTH {
        DEPTH.set(depth + 1);
        drop(held);
        DEPTH.set(depth);
    } else {
        free_deep(values(held));
    }
}

/// Free values level by level. A rule can nest them deeper than the stack permits.
fn free_deep(mut pending: Vec<Value>) {
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => {
                if let Some(mut items) = Arc::into_inner(items) {
                    pending.append(&mut items.0);
                }
            }
            Value::Object(members) => {
                if let Some(mut members) = Arc::into_inner(members) {
                    pending.extend(std::mem::take(&mut members.0).into_iter().map(|(_, value)| value));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(object: &Object) -> Vec<&str> {
        object.keys().map(|key| &**key).collect()
    }

    #[test]
    fn members_are_sorted_and_found_at_every_size() {
        for size in [0, 1, 5, 8, 9, 300_u32] {
            let mut object = Object::default();
            for n in 0..size {
                assert!(object.insert(format!("{}", n * 7 % size).into(), f64::from(n).into()).is_none());
            }
            assert!(keys(&object).is_sorted());
            for n in 0..size {
                let value = object.get(&format!("{}", n * 7 % size)).and_then(Value::as_number);
                assert_eq!(value, Some(f64::from(n)));
            }
            assert!(object.get("x").is_none() && object.get("").is_none());
        }
    }

    #[test]
    fn a_key_has_one_value() {
        let number = |value: f64| Value::from(value);
        let mut object: Object = [("b", 1.0), ("a", 2.0), ("b", 3.0)]
            .map(|(key, value)| (Arc::from(key), number(value)))
            .into_iter()
            .collect();
        assert_eq!(keys(&object), ["a", "b"]);
        assert_eq!(object.insert("b".into(), number(4.0)).and_then(|old| old.as_number()), Some(3.0));
        assert_eq!(object.get("b").and_then(Value::as_number), Some(4.0));
        assert_eq!(object.remove("a").and_then(|old| old.as_number()), Some(2.0));
        assert!(object.remove("a").is_none());
        assert_eq!(keys(&object), ["b"]);
    }

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
