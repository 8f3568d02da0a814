//! Entries of matchers, and the lists that they name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::value_kinds::{Brackets, Kind, host};
use crate::document;
use crate::error::{Code, Result};
use crate::json_node::{Json, Members};

/// Entries of one kind, in sets with constant lookup cost.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// Texts for equality.
    whole: Texts,
    /// Prefixes for paths and suffixes for hosts. Hosts of e-mail addresses start with `@`.
    above: Texts,
    /// True if every value matches.
    everything: bool,
}

/// A set of texts.
#[derive(Debug)]
enum Texts {
    Few(Vec<Box<str>>),
    Many(HashSet<Box<str>>),
}

/// Up to this size the search is linear.
const FEW: usize = 8;

impl Default for Texts {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Texts {
    fn insert(&mut self, text: &str) {
        match self {
            Self::Few(few) if few.iter().any(|known| **known == *text) => {}
            Self::Few(few) if few.len() < FEW => few.push(text.into()),
            Self::Few(few) => *self = Self::Many(few.drain(..).chain([text.into()]).collect()),
            Self::Many(many) => drop(many.insert(text.into())),
        }
    }

    fn contains(&self, text: &str) -> bool {
        match self {
            Self::Few(few) => few.iter().any(|known| **known == *text),
            Self::Many(many) => many.contains(text),
        }
    }
}

impl Entries {
    /// Add an entry.
    fn insert(&mut self, kind: Kind, entry: &str) -> Result<()> {
        match kind {
            Kind::Path => match &*kind.parse(entry)? {
                "" => self.everything = true,
                path => self.above.insert(path),
            },
            Kind::Domain => self.insert_host("", entry)?,
            Kind::Email => match entry.strip_prefix("*@") {
                Some(among) => self.insert_host("@", among)?,
                None => self.whole.insert(&kind.parse(entry)?),
            },
            Kind::Identifier => self.whole.insert(entry),
        }
        Ok(())
    }

    /// Add a host pattern. A host of addresses is stored with its `@`.
    fn insert_host(&mut self, at: &str, pattern: &str) -> Result<()> {
        let is_address = !at.is_empty();
        let code = if is_address { Code::BadEmail } else { Code::BadDomain };
        if pattern == "*" {
            self.everything = true;
        } else if let Some(ending) = pattern.strip_prefix("*.") {
            self.above.insert(&host(ending, code, Brackets::Refused)?);
        } else {
            let brackets = if is_address { Brackets::Refused } else { Brackets::Accepted };
            self.whole.insert(&format!("{at}{}", host(pattern, code, brackets)?));
        }
        Ok(())
    }

    /// Return True if a parsed value matches an entry.
    fn matches_value(&self, kind: Kind, value: &str) -> bool {
        self.everything
            || self.whole.contains(value)
            || match kind {
                Kind::Identifier => false,
                Kind::Path => self.contains_ancestor_of(value),
                Kind::Domain => self.contains_suffix_of(value),
                Kind::Email => {
                    let host = value.find('@').and_then(|at| value.get(at..)).unwrap_or_default();
                    self.whole.contains(host) || self.contains_suffix_of(host)
                }
            }
    }

    /// Return True if an entry is the path or one of its parents.
    fn contains_ancestor_of(&self, path: &str) -> bool {
        let many = match &self.above {
            Texts::Few(few) => return few.iter().any(|above| is_same_or_below(path, above)),
            Texts::Many(many) => many,
        };
        let mut rest = path;
        while !rest.is_empty() {
            if many.contains(rest) {
                return true;
            }
            rest = rest.rsplit_once('/').map_or("", |(above, _)| above);
        }
        false
    }

    /// Return True if a host is a subdomain of an entry.
    fn contains_suffix_of(&self, host: &str) -> bool {
        let many = match &self.above {
            Texts::Few(few) => return few.iter().any(|ending| is_subdomain_of(host, ending)),
            Texts::Many(many) => many,
        };
        let mut rest = host;
        while let Some((_, ending)) = rest.split_once('.') {
            if many.contains(ending) {
                return true;
            }
            rest = ending;
        }
        false
    }
}

fn is_same_or_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

fn is_subdomain_of(host: &str, ending: &str) -> bool {
    host.strip_suffix(ending).is_some_and(|before| before.ends_with('.'))
}

/// The lists of a policy.
#[derive(Debug)]
pub(super) struct Lists(HashMap<Box<str>, List>);

#[derive(Debug)]
struct List {
    kind: Kind,
    entries: Arc<Entries>,
    /// Other lists whose values belong to this list.
    named: Vec<Box<str>>,
}

impl Lists {
    pub(super) fn new<T: Json>(lists: Option<&T>) -> Result<Self> {
        let Some(lists) = lists else { return Ok(Self(HashMap::new())) };
        let read = document::object(lists)?
            .iter()
            .map(|(name, list)| Ok((name.into(), List::new(document::object(list)?)?)));
        read.collect::<Result<_>>().map(Self)
    }

    /// Collect the values of lists and of the lists that they name.
    fn collect_entries<'a>(&'a self, kind: Kind, named: Vec<&'a str>) -> Result<Vec<Arc<Entries>>> {
        let mut known: HashSet<&str> = named.iter().copied().collect();
        let mut pending = named;
        let mut reached = Vec::new();
        while let Some(name) = pending.pop() {
            let list = self.0.get(name).filter(|list| list.kind == kind);
            let list = list.ok_or_else(|| document::invalid("there is no such list of this kind"))?;
            reached.push(Arc::clone(&list.entries));
            pending.extend(list.named.iter().map(|name| &**name).filter(|name| known.insert(*name)));
        }
        Ok(reached)
    }
}

impl List {
    fn new<T: Json>(list: Members<'_, T>) -> Result<Self> {
        let kind = Kind::from_name(document::text(document::field(list, "kind")?)?)?;
        let mut entries = Entries::default();
        let mut named = Vec::new();
        for entry in document::list(document::field(list, "values")?)? {
            let entry = document::text(entry)?;
            match entry.strip_prefix('@') {
                Some(name) => named.push(name.into()),
                None => entries.insert(kind, entry)?,
            }
        }
        Ok(Self { kind, entries: Arc::new(entries), named })
    }
}

/// The entries of a matcher.
#[derive(Debug)]
pub(super) struct Among {
    kind: Kind,
    own: Entries,
    lists: Vec<Arc<Entries>>,
}

impl Among {
    pub(super) fn new<T: Json>(kind: Kind, among: &[T], lists: &Lists) -> Result<Self> {
        let mut own = Entries::default();
        let mut named = Vec::new();
        for entry in among {
            let entry = document::text(entry)?;
            match entry.strip_prefix('@') {
                Some(name) => named.push(name),
                None => own.insert(kind, entry)?,
            }
        }
        Ok(Self { kind, own, lists: lists.collect_entries(kind, named)? })
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// Return True if a parsed value matches an entry.
    pub(super) fn contains(&self, value: &str) -> bool {
        self.own.matches_value(self.kind, value)
            || self.lists.iter().any(|list| list.matches_value(self.kind, value))
    }
}
