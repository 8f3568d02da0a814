//! What JSON values have in common, however they are kept: shared (`Value`), or borrowed for a while (`Node`).

use std::ops::Deref;

use crate::value::Value;

/// A JSON value.
pub(crate) trait Json: Sized {
    /// The key of a member.
    type Key: Deref<Target = str>;

    /// What the value is.
    fn view(&self) -> View<'_, Self>;

    /// The same value, to keep.
    fn to_value(&self) -> Value;
}

/// What a JSON value is.
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

/// Up to so many members are looked through one by one: their keys mostly differ in length already.
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

    /// The value of a key.
    #[inline]
    pub(crate) fn get(self, key: &str) -> Option<&'v T> {
        let found = if self.0.len() <= FEW {
            self.0.iter().find(|(name, _)| **name == *key)
        } else {
            self.0.binary_search_by(|(name, _)| (**name).cmp(key)).ok().and_then(|at| self.0.get(at))
        };
        found.map(|(_, value)| value)
    }

    /// A key as it stands here, and its value.
    pub(crate) fn entry(self, key: &str) -> Option<(&'v str, &'v T)> {
        let at = self.0.binary_search_by(|(name, _)| (**name).cmp(key)).ok()?;
        self.0.get(at).map(|(key, value)| (&**key, value))
    }

    /// The members in order of their keys.
    pub(crate) fn iter(self) -> impl ExactSizeIterator<Item = (&'v str, &'v T)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// The keys in order.
    pub(crate) fn keys(self) -> impl Iterator<Item = &'v str> {
        self.0.iter().map(|(key, _)| &**key)
    }

    /// The values in order of their keys.
    pub(crate) fn values(self) -> impl Iterator<Item = &'v T> {
        self.0.iter().map(|(_, value)| value)
    }
}
