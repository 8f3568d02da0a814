//! Requests, read once for the tools of a policy.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::kinds::{Kind, Unread};
use crate::value::Value;

/// Requests, read for the tools of one policy. Immutable, safe to share between threads.
#[derive(Debug, Default)]
pub struct Requests {
    /// None where the policy is not about the tool.
    pub(super) all: Vec<Option<Request>>,
    /// The arguments with roles of each request, one behind the other.
    pub(super) arguments: Vec<Given>,
    /// The numbers of the texts in them.
    pub(super) values: Vec<u32>,
    pub(super) texts: Vec<Text>,
    /// Every list of roles that a caller has, once.
    pub(super) callers: Vec<Value>,
    /// The numbers of the requests of each tool that is called; sorted out when that is first wanted.
    called: OnceLock<Vec<(u32, Vec<u32>)>>,
}

/// A request that the policy is about.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) tool: u32,
    /// Where its first argument with a role stands among those of all requests.
    pub(super) first: u32,
    pub(super) caller: u32,
    pub(super) arguments: Value,
}

/// What stands at an argument with a role.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) values: Range<u32>,
    /// Whether something follows that is no text.
    pub(super) is_broken: bool,
}

/// A text, read as each kind when that is first wanted.
#[derive(Debug)]
pub(super) struct Text {
    text: Arc<str>,
    read: [OnceLock<std::result::Result<Option<Box<str>>, Unread>>; 3],
}

impl Requests {
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

    /// One of them; none where the policy is not about its tool.
    pub(super) fn get(&self, number: usize) -> Option<&Request> {
        self.all.get(number)?.as_ref()
    }

    /// The tools that are called, and by which requests.
    pub(super) fn called(&self) -> &[(u32, Vec<u32>)] {
        self.called.get_or_init(|| {
            let mut called: HashMap<u32, Vec<u32>> = HashMap::new();
            for (number, request) in (0..).zip(&self.all) {
                if let Some(request) = request {
                    called.entry(request.tool).or_default().push(number);
                }
            }
            called.into_iter().collect()
        })
    }

    pub(super) fn roles(&self, request: &Request) -> Option<&Value> {
        self.callers.get(request.caller as usize)
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
    pub(super) fn new(text: &Arc<str>) -> Self {
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
