//! JSON trees: the trait that every representation of JSON implements, and `Node`, a tree that borrows from
//! its text.

use std::ops::Deref;
use std::sync::Arc;

use bumpalo::Bump;

use crate::strict_json::Builder;
use crate::value::Value;

/// A JSON value.
pub(crate) trait Json: Sized {
    /// The key of a member.
    type Key: Deref<Target = str>;

    /// Return a view of the value.
    fn view(&self) -> View<'_, Self>;

    /// Convert to a shared value.
    fn to_value(&self) -> Value;
}

/// A view of a JSON value.
pub(crate) enum View<'v, T: Json> {
    Null,
    Bool(bool),
    Number(f64),
    Text(&'v str),
    Array(&'v [T]),
    Object(Members<'v, T>),
}

/// The members of an object, ordered by the code points of their keys.
pub(crate) struct Members<'v, T: Json>(pub(crate) &'v [(T::Key, T)]);

/// Up to this size a linear search is faster, because most keys differ in length.
const FEW: usize = 8;

impl<T: Json> Clone for Members<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Json> Copy for Members<'_, T> {}

impl<'v, T: Json> Members<'v, T> {
    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    /// Return the value of a key.
    #[inline]
    pub(crate) fn get(self, key: &str) -> Option<&'v T> {
        let found = if self.0.len() <= FEW {
            self.0.iter().find(|(name, _)| **name == *key)
        } else {
            self.0.binary_search_by(|(name, _)| (**name).cmp(key)).ok().and_then(|at| self.0.get(at))
        };
        found.map(|(_, value)| value)
    }

    /// Return the stored key and its value.
    pub(crate) fn entry(self, key: &str) -> Option<(&'v str, &'v T)> {
        let at = self.0.binary_search_by(|(name, _)| (**name).cmp(key)).ok()?;
        self.0.get(at).map(|(key, value)| (&**key, value))
    }

    /// Iterate over the members in the order of their keys.
    pub(crate) fn iter(self) -> impl ExactSizeIterator<Item = (&'v str, &'v T)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// Iterate over the keys in order.
    pub(crate) fn keys(self) -> impl Iterator<Item = &'v str> {
        self.0.iter().map(|(key, _)| &**key)
    }

    /// Iterate over the values in the order of their keys.
    pub(crate) fn values(self) -> impl Iterator<Item = &'v T> {
        self.0.iter().map(|(_, value)| value)
    }
}

/// A JSON tree that borrows its texts from the document and its containers from an arena. Every number is
/// finite and never −0.
///
/// The tag has the size of a word. A smaller tag would be copied in parts, and a later read of the word would
/// stall.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub enum Node<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A binary64 number.
    Number(f64),
    /// A string.
    Text(&'a str),
    /// An array.
    Array(&'a [Node<'a>]),
    /// An object: its members are ordered by the code points of their keys, no two of which are equal.
    Object(&'a [(&'a str, Node<'a>)]),
}

/// A key and its value.
pub(crate) type Member<'a> = (&'a str, Node<'a>);

/// Builds nodes in an arena.
pub(crate) struct Nodes<'a>(pub(crate) &'a Bump);

impl<'a> Builder<'a> for Nodes<'a> {
    type Text = &'a str;
    type Value = Node<'a>;

    fn null(&self) -> Node<'a> {
        Node::Null
    }

    fn boolean(&self, value: bool) -> Node<'a> {
        Node::Bool(value)
    }

    fn number(&self, value: f64) -> Node<'a> {
        Node::Number(value)
    }

    fn plain(&self, text: &'a str) -> &'a str {
        text
    }

    fn decoded(&self, text: String) -> &'a str {
        self.0.alloc_str(&text)
    }

    fn text(&self, text: &'a str) -> Node<'a> {
        Node::Text(text)
    }

    fn array(&self, items: &mut Vec<Node<'a>>, start: usize) -> Node<'a> {
        let own = self.0.alloc_slice_copy(items.get(start..).unwrap_or_default());
        items.truncate(start);
        Node::Array(own)
    }

    fn object(&self, members: &mut Vec<Member<'a>>, start: usize) -> Node<'a> {
        let own = self.0.alloc_slice_copy(members.get(start..).unwrap_or_default());
        members.truncate(start);
        Node::Object(own)
    }
}

impl<'a> Json for Node<'a> {
    type Key = &'a str;

    fn view(&self) -> View<'_, Self> {
        match self {
            Self::Null => View::Null,
            Self::Bool(value) => View::Bool(*value),
            Self::Number(number) => View::Number(*number),
            Self::Text(text) => View::Text(text),
            Self::Array(items) => View::Array(items),
            Self::Object(members) => View::Object(Members(members)),
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(number) => Value::Number(*number),
            Self::Text(text) => Value::from(*text),
            Self::Array(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(members) => {
                members.iter().map(|(key, value)| (Arc::from(*key), value.to_value())).collect()
            }
        }
    }
}
