//! Batches of requests, parsed once for the tools of a policy.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::attributes::{Attributes, is_role_in};
use super::entries::Among;
use super::value_kinds::{Kind, ValueError};
use crate::value::{EMPTY_OBJECT, Value};

/// Requests, parsed for the tools of one policy. Immutable, safe to share between threads.
#[derive(Debug, Default)]
pub struct Requests {
    /// `None` if the policy does not cover the tool.
    pub(super) all: Vec<Option<Request>>,
    /// The arguments with roles of all requests, in order.
    pub(super) arguments: Vec<ArgumentValues>,
    /// The numbers of the texts in the arguments.
    pub(super) values: Vec<u32>,
    pub(super) texts: Vec<Text>,
    /// Every distinct list of roles.
    pub(super) callers: Vec<Value>,
    /// The requests of each tool, computed at the first use.
    called: OnceLock<Vec<(u32, Vec<u32>)>>,
}

/// A request that the policy covers.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) tool: u32,
    /// The position of its first argument with a role.
    pub(super) first: u32,
    pub(super) caller: u32,
    pub(super) arguments: Value,
}

/// The texts at an argument with a role.
#[derive(Debug)]
pub(super) struct ArgumentValues {
    pub(super) values: Range<u32>,
    /// True if a value that is not a text follows.
    pub(super) is_broken: bool,
}

/// A text, parsed as each kind at the first use.
#[derive(Debug)]
pub(super) struct Text {
    text: Arc<str>,
    read: [OnceLock<std::result::Result<Option<Box<str>>, ValueError>>; 3],
}

impl Requests {
    /// Return the number of requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Return True if the batch is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Return a request, or `None` if the policy does not cover its tool.
    pub(super) fn get(&self, number: usize) -> Option<&Request> {
        self.all.get(number)?.as_ref()
    }

    /// Return the called tools with the numbers of their requests.
    pub(super) fn requests_by_tool(&self) -> &[(u32, Vec<u32>)] {
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

    /// Return the attributes of a request.
    pub(super) fn attributes<'r>(
        &'r self,
        request: &'r Request,
        match_cache: &'r mut MatchCache,
    ) -> impl Attributes + 'r {
        BatchRequest { requests: self, request, match_cache }
    }

    /// Create the cache of match results for the matchers of a condition.
    pub(super) fn match_cache(&self, matchers: usize) -> MatchCache {
        MatchCache(vec![vec![None; self.texts.len()]; matchers])
    }
}

/// Cache of match results, by matcher and text. Requests often have the same texts.
#[derive(Default)]
pub(super) struct MatchCache(Vec<Vec<Option<bool>>>);

/// A request of a batch during the evaluation of a condition.
struct BatchRequest<'r> {
    requests: &'r Requests,
    request: &'r Request,
    /// Results so far, if caching is enabled.
    match_cache: &'r mut MatchCache,
}

impl Attributes for BatchRequest<'_> {
    fn arguments(&self) -> &Value {
        &self.request.arguments
    }

    fn roles(&self) -> &Value {
        self.requests.callers.get(self.request.caller as usize).unwrap_or(&EMPTY_OBJECT)
    }

    fn has_role(&self, wanted: &[Box<str>]) -> bool {
        has_role(self.roles(), wanted)
    }

    fn compare(
        &mut self,
        argument: u32,
        matcher: usize,
        among: &Among,
        mut report: impl FnMut(bool),
    ) -> std::result::Result<(), ValueError> {
        let Some(given) = self.requests.arguments.get((self.request.first + argument) as usize) else {
            return Ok(());
        };
        let mut match_cache = self.match_cache.0.get_mut(matcher);
        let values = self.requests.values.get(given.values.start as usize..given.values.end as usize);
        for number in values.unwrap_or_default() {
            let verdict = match_cache.as_mut().and_then(|match_cache| match_cache.get_mut(*number as usize));
            if let Some(Some(known)) = verdict {
                report(*known);
                continue;
            }
            let Some(text) = self.requests.texts.get(*number as usize) else { continue };
            let is_among = among.contains(text.parse(among.kind())?);
            if let Some(verdict) = verdict {
                *verdict = Some(is_among);
            }
            report(is_among);
        }
        if given.is_broken { Err(ValueError::NO_TEXT) } else { Ok(()) }
    }
}

/// Return True if a list contains one of some roles, which are sorted.
pub(super) fn has_role(roles: &Value, wanted: &[Box<str>]) -> bool {
    let mut roles = roles.as_array().into_iter().flat_map(|roles| roles.iter()).filter_map(Value::as_text);
    roles.any(|role| is_role_in(role, wanted))
}

impl Text {
    pub(super) fn new(text: &Arc<str>) -> Self {
        Self { text: Arc::clone(text), read: Default::default() }
    }

    /// Parse the text as a value of a kind.
    pub(super) fn parse(&self, kind: Kind) -> std::result::Result<&str, ValueError> {
        let place = match kind {
            Kind::Path => 0,
            Kind::Domain => 1,
            Kind::Email => 2,
            Kind::Identifier => return Ok(&self.text),
        };
        let Some(read) = self.read.get(place) else { return Ok(&self.text) };
        let read = read.get_or_init(|| {
            let read = kind.parse(&self.text)?;
            Ok((*read != *self.text).then(|| read.into()))
        });
        read.as_ref().map(|other| other.as_deref().unwrap_or(&self.text)).map_err(|unread| *unread)
    }
}
