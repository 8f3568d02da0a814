//! Annotated tools of a policy.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::document;
use crate::error::Result;
use crate::json_node::{Json, Members, View};
use crate::value::Value;

/// The tools of a policy. Names are numbers: policies with the same tools have the same numbers.
#[derive(Debug, Default)]
pub(super) struct Tools {
    all: Vec<Tool>,
    /// Indexed by server, then by name. For a few short names a comparison is faster than a hash.
    numbers: BTreeMap<Arc<str>, BTreeMap<Arc<str>, u32>>,
    pub(super) servers: Names,
    pub(super) names: Names,
    pub(super) roles: Names,
}

/// The annotations of a tool.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) server: u32,
    pub(super) name: u32,
    /// The roles of its arguments as sorted numbers.
    pub(super) roles: Vec<u32>,
    pub(super) paths: Vec<Argument>,
    pub(super) read_only: bool,
    pub(super) destructive: bool,
    /// Its names as values, for expressions.
    pub(super) shown: [Value; 2],
}

/// An argument with roles.
#[derive(Debug)]
pub(super) struct Argument {
    segments: Vec<Segment>,
    pub(super) roles: Vec<u32>,
}

/// A token of a JSON Pointer: a key of an object, or an index of an array.
#[derive(Debug)]
struct Segment {
    key: Box<str>,
    index: Option<usize>,
}

/// Maximum digits of an array index.
const LONGEST_INDEX: usize = 6;

/// Names and their numbers.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<Arc<str>, u32>);

impl Names {
    fn number(&mut self, name: &Arc<str>) -> u32 {
        let next = to_number(self.0.len());
        *self.0.entry(Arc::clone(name)).or_insert(next)
    }

    /// Return the sorted numbers of the known names.
    pub(super) fn known_numbers<T: Json>(&self, names: &[T]) -> Result<Vec<u32>> {
        let mut known = Vec::new();
        for name in names {
            known.extend(self.0.get(document::text(name)?));
        }
        known.sort_unstable();
        Ok(known)
    }
}

/// Convert a position to a number. Documents are small enough.
pub(super) fn to_number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// Return True if two lists have a number in common; the first is sorted.
pub(super) fn intersects(ordered: &[u32], others: &[u32]) -> bool {
    others.iter().any(|other| ordered.binary_search(other).is_ok())
}

impl Tools {
    pub(super) fn new<T: Json>(tools: &[T]) -> Result<Self> {
        let mut read = Self::default();
        for (number, tool) in tools.iter().enumerate() {
            let tool = document::object(tool)?;
            let name = |key| document::text(document::field(tool, key)?).map(Arc::<str>::from);
            let (server, name) = (name("server_name")?, name("tool_name")?);
            let (paths, roles) = read.arguments(tool)?;
            let is = |key| tool.get(key).map_or(Ok(false), document::boolean);
            read.all.push(Tool {
                server: read.servers.number(&server),
                name: read.names.number(&name),
                roles,
                paths,
                read_only: is("read_only")?,
                destructive: is("destructive")?,
                shown: [Value::from(&server), Value::from(&name)],
            });
            read.numbers.entry(server).or_default().insert(name, to_number(number));
        }
        Ok(read)
    }

    /// Parse the arguments with roles of a tool in the order of the annotations. Return them with all their
    /// roles.
    fn arguments<T: Json>(&mut self, tool: Members<'_, T>) -> Result<(Vec<Argument>, Vec<u32>)> {
        let mut arguments: Vec<(&str, Argument)> = Vec::new();
        let mut all = Vec::new();
        for annotation in document::list_or_empty(tool, "argument_roles")? {
            let annotation = document::object(annotation)?;
            let path = document::text(document::field(annotation, "path")?)?;
            let role = self.roles.number(&document::text(document::field(annotation, "role")?)?.into());
            all.push(role);
            match arguments.iter_mut().find(|(known, _)| *known == path) {
                Some((_, argument)) => argument.roles.push(role),
                None => arguments.push((path, Argument::new(path, role))),
            }
        }
        all.sort_unstable();
        Ok((arguments.into_iter().map(|(_, argument)| argument).collect(), all))
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, number: u32) -> Option<&Tool> {
        self.all.get(number as usize)
    }

    /// Return the number of a tool, or `None` if the policy does not cover it.
    pub(super) fn number(&self, server: &str, name: &str) -> Option<u32> {
        self.numbers.get(server)?.get(name).copied()
    }
}

impl Argument {
    fn new(path: &str, role: u32) -> Self {
        let segment = |spelled: &str| Segment::new(spelled.replace("~1", "/").replace("~0", "~").into());
        Self { segments: path.split('/').skip(1).map(segment).collect(), roles: vec![role] }
    }

    /// Return the value at the argument's path.
    pub(super) fn of<'v, T: Json>(&self, arguments: &'v T) -> Option<&'v T> {
        self.segments.iter().try_fold(arguments, |value, segment| match value.view() {
            View::Object(members) => members.get(&segment.key),
            View::Array(items) => items.get(segment.index?),
            _ => None,
        })
    }
}

impl Segment {
    fn new(key: Box<str>) -> Self {
        let is_index = key.len() <= LONGEST_INDEX
            && key.bytes().all(|byte| byte.is_ascii_digit())
            && (*key == *"0" || !key.starts_with('0'));
        Self { index: if is_index { key.parse().ok() } else { None }, key }
    }
}
