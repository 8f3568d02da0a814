//! Requests, read once for the tools of a policy.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::kinds::{Kind, Unread};
use super::tools::{Tool, Tools, numbered};
use crate::border;
use crate::error::Result;
use crate::read;
use crate::value::Value;

/// Requests, read for the tools of one policy. Immutable, safe to share between threads.
#[derive(Debug, Default)]
pub struct Requests {
    /// None where the policy is not about the tool.
    all: Vec<Option<Request>>,
    /// The numbers of the requests of each tool that is called.
    called: Vec<(u32, Vec<u32>)>,
    /// The arguments with roles of each request, one behind the other.
    arguments: Vec<Given>,
    /// The numbers of the texts in them.
    values: Vec<u32>,
    texts: Vec<Text>,
    /// Every list of roles that a caller has, once.
    callers: Vec<Value>,
}

/// A request that the policy is about.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) tool: u32,
    /// Where its first argument with a role stands among those of all requests.
    first: u32,
    pub(super) caller: u32,
    pub(super) arguments: Value,
}

/// What stands at an argument with a role.
#[derive(Debug)]
struct Given {
    values: Range<u32>,
    /// Whether something follows that is no text.
    is_broken: bool,
}

/// A text, read as each kind when that is first wanted.
#[derive(Debug)]
pub(super) struct Text {
    text: Arc<str>,
    read: [OnceLock<std::result::Result<Option<Box<str>>, Unread>>; 3],
}

impl Requests {
    /// Requests, each from JSON `{server_name, tool_name, arguments, roles}`.
    pub(super) fn new<'a>(tools: &Tools, requests: impl Iterator<Item = &'a [u8]>) -> Result<Self> {
        let mut reading = Reading::default();
        for request in requests {
            let given = border::parse(request)?;
            let request = read::object(&given)?;
            let name = |key| read::text(read::field(request, key)?);
            let roles = read::field(request, "roles")?;
            let (server, tool) = (name("server_name")?, name("tool_name")?);
            reading.request(tools, [server, tool], read::field(request, "arguments")?, roles);
        }
        Ok(reading.finished())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Each request; none where the policy is not about its tool.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = Option<&Request>> {
        self.all.iter().map(Option::as_ref)
    }

    /// One of them; none, too, where the policy is not about its tool.
    pub(super) fn get(&self, number: usize) -> Option<&Request> {
        self.all.get(number)?.as_ref()
    }

    /// The tools that are called, and by which requests.
    pub(super) fn called(&self) -> &[(u32, Vec<u32>)] {
        &self.called
    }

    pub(super) fn callers(&self) -> &[Value] {
        &self.callers
    }

    pub(super) fn roles(&self, request: &Request) -> Option<&Value> {
        self.callers.get(request.caller as usize)
    }

    pub(super) fn texts(&self) -> &[Text] {
        &self.texts
    }

    /// The numbers of the texts at an argument of a request, up to one that is none.
    pub(super) fn values(
        &self,
        request: &Request,
        argument: u32,
    ) -> impl Iterator<Item = std::result::Result<u32, Unread>> {
        let given = self.arguments.get((request.first + argument) as usize);
        let values =
            given.and_then(|given| self.values.get(given.values.start as usize..given.values.end as usize));
        let broken = given.is_some_and(|given| given.is_broken).then_some(Err(Unread::NO_TEXT));
        values.unwrap_or_default().iter().copied().map(Ok).chain(broken)
    }
}

impl Text {
    fn new(text: &Arc<str>) -> Self {
        Self { text: Arc::clone(text), read: Default::default() }
    }

    /// The text as a value of a kind.
    pub(super) fn read(&self, kind: Kind) -> std::result::Result<&str, Unread> {
        let place = match kind {
            Kind::Path => 0,
            Kind::Domain => 1,
            Kind::Email => 2,
            Kind::Identifier => return Ok(&self.text),
        };
        let Some(read) = self.read.get(place) else { return Ok(&self.text) };
        let read = read.get_or_init(|| {
            let read = kind.read(&self.text)?;
            Ok((*read != *self.text).then(|| read.into()))
        });
        read.as_ref().map(|other| other.as_deref().unwrap_or(&self.text)).map_err(|unread| *unread)
    }
}

/// Requests while they are read.
#[derive(Default)]
struct Reading {
    read: Requests,
    texts: HashMap<Arc<str>, u32>,
    callers: HashMap<Vec<Arc<str>>, u32>,
    called: HashMap<u32, usize>,
}

impl Reading {
    fn request(&mut self, tools: &Tools, [server, name]: [&str; 2], arguments: &Value, roles: &Value) {
        let number = numbered(self.read.all.len());
        let request = tools.number(server, name).and_then(|tool| {
            let first = numbered(self.read.arguments.len());
            self.arguments(tools.get(tool)?, arguments);
            let place = *self.called.entry(tool).or_insert_with(|| {
                self.read.called.push((tool, Vec::new()));
                self.read.called.len() - 1
            });
            if let Some((_, calls)) = self.read.called.get_mut(place) {
                calls.push(number);
            }
            Some(Request { tool, first, caller: self.caller(roles), arguments: arguments.clone() })
        });
        self.read.all.push(request);
    }

    fn arguments(&mut self, tool: &Tool, arguments: &Value) {
        for argument in &tool.paths {
            let start = numbered(self.read.values.len());
            let is_broken = match argument.of(arguments) {
                None | Some(Value::Null) => false,
                Some(Value::Array(items)) => !items.iter().all(|item| self.text(item)),
                Some(value) => !self.text(value),
            };
            let values = start..numbered(self.read.values.len());
            self.read.arguments.push(Given { values, is_broken });
        }
    }

    /// Keep a value, if it is a text.
    fn text(&mut self, value: &Value) -> bool {
        let Value::Text(text) = value else { return false };
        let next = numbered(self.read.texts.len());
        let number = *self.texts.entry(Arc::clone(text)).or_insert_with(|| {
            self.read.texts.push(Text::new(text));
            next
        });
        self.read.values.push(number);
        true
    }

    fn caller(&mut self, roles: &Value) -> u32 {
        let names = roles.as_array().into_iter().flat_map(|roles| roles.iter());
        let names = names.filter_map(|role| if let Value::Text(role) = role { Some(role) } else { None });
        let next = numbered(self.read.callers.len());
        *self.callers.entry(names.cloned().collect()).or_insert_with(|| {
            self.read.callers.push(roles.clone());
            next
        })
    }

    fn finished(self) -> Requests {
        self.read
    }
}
