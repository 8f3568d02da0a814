//! Value builders for Python objects: shared values, or trees in an arena.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyString;
use simcore::strict_json::{MAX_KEY_BYTES, MAX_NODES};
use simcore::{Bump, Code, Error, Node, Result, Value};

/// Builder of values that are read from Python.
pub(crate) trait ValueBuilder: Copy {
    type Key: Deref<Target = str>;
    type Value;

    fn null(self) -> Self::Value;
    fn boolean(self, value: bool) -> Self::Value;
    fn number(self, value: f64) -> Self::Value;
    fn text(self, text: &str) -> Self::Value;
    fn key(self, key: &Bound<'_, PyString>) -> Result<Self::Key>;
    fn array(self, items: impl ExactSizeIterator<Item = Result<Self::Value>>) -> Result<Self::Value>;
    /// The members are not sorted.
    fn object(
        self,
        members: impl ExactSizeIterator<Item = Result<(Self::Key, Self::Value)>>,
    ) -> Result<Self::Value>;
}

/// Builds shared values.
#[derive(Clone, Copy)]
pub(crate) struct Shared;

/// Builds values in an arena.
#[derive(Clone, Copy)]
pub(crate) struct InArena<'a>(pub(crate) &'a Bump);

impl ValueBuilder for Shared {
    type Key = Arc<str>;
    type Value = Value;

    fn null(self) -> Value {
        Value::Null
    }

    fn boolean(self, value: bool) -> Value {
        Value::Bool(value)
    }

    fn number(self, value: f64) -> Value {
        Value::Number(value)
    }

    fn text(self, text: &str) -> Value {
        Value::from(text)
    }

    fn key(self, key: &Bound<'_, PyString>) -> Result<Arc<str>> {
        cached_key(key)
    }

    fn array(self, items: impl ExactSizeIterator<Item = Result<Value>>) -> Result<Value> {
        let mut read = Vec::with_capacity(items.len().min(MAX_NODES));
        for item in items {
            read.push(item?);
        }
        Ok(read.into())
    }

    fn object(self, members: impl ExactSizeIterator<Item = Result<(Arc<str>, Value)>>) -> Result<Value> {
        let mut read = Vec::with_capacity(members.len().min(MAX_NODES));
        for member in members {
            read.push(member?);
        }
        Ok(read.into_iter().collect())
    }
}

impl<'a> ValueBuilder for InArena<'a> {
    type Key = &'a str;
    type Value = Node<'a>;

    fn null(self) -> Node<'a> {
        Node::Null
    }

    fn boolean(self, value: bool) -> Node<'a> {
        Node::Bool(value)
    }

    fn number(self, value: f64) -> Node<'a> {
        Node::Number(value)
    }

    fn text(self, text: &str) -> Node<'a> {
        Node::Text(self.0.alloc_str(text))
    }

    fn key(self, key: &Bound<'_, PyString>) -> Result<&'a str> {
        text(key, MAX_KEY_BYTES, Code::KeyTooLong).map(|key| &*self.0.alloc_str(key))
    }

    fn array(self, items: impl ExactSizeIterator<Item = Result<Node<'a>>>) -> Result<Node<'a>> {
        Ok(Node::Array(self.0.alloc_slice_try_fill_iter(items)?))
    }

    fn object(self, members: impl ExactSizeIterator<Item = Result<(&'a str, Node<'a>)>>) -> Result<Node<'a>> {
        let members = self.0.alloc_slice_try_fill_iter(members)?;
        members.sort_unstable_by_key(|(key, _)| *key);
        Ok(Node::Object(members))
    }
}

/// Cache of recent keys by the addresses of their Python objects. Objects of one kind share their keys.
struct KeyCache(Vec<Option<(Py<PyString>, Arc<str>)>>);

const CACHED_KEYS: usize = 256;

thread_local! {
    static KEYS: RefCell<KeyCache> = RefCell::new(KeyCache((0..CACHED_KEYS).map(|_| None).collect()));
}

fn cached_key(object: &Bound<'_, PyString>) -> Result<Arc<str>> {
    let read = || text(object, MAX_KEY_BYTES, Code::KeyTooLong).map(Arc::from);
    // A subclass may run its own code when it is freed.
    if !object.is_exact_instance_of::<PyString>() {
        return read();
    }
    let place = (object.as_ptr().addr() >> 4) % CACHED_KEYS;
    let known = KEYS.with_borrow(|keys| match keys.0.get(place) {
        Some(Some((cached, key))) if cached.is(object) => Some(Arc::clone(key)),
        _ => None,
    });
    if let Some(key) = known {
        return Ok(key);
    }
    // The cache must not be borrowed here: an invalid text can start a garbage collection, which runs any
    // code.
    let key: Arc<str> = read()?;
    KEYS.with_borrow_mut(|keys| {
        if let Some(cached) = keys.0.get_mut(place) {
            *cached = Some((object.clone().unbind(), Arc::clone(&key)));
        }
    });
    Ok(key)
}

/// Return the characters of a text.
pub(crate) fn text<'a>(object: &'a Bound<'_, PyString>, limit: usize, code: Code) -> Result<&'a str> {
    let text = object
        .to_str()
        .map_err(|_| Error::new(Code::LoneSurrogate, "a lone surrogate is not a character"))?;
    if text.len() > limit {
        return Err(Error::new(code, format!("longer than {limit} bytes")));
    }
    Ok(text)
}
