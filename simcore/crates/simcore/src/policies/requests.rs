//! Requests, read once for the tools of a policy.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::attributes::{Attributes, is_role_in};
use super::entries::Among;
use super::value_kinds::{Kind, ValueError};
use crate::value::{EMPTY_OBJECT, Value};

/// Requests, read for the tools of one policy. Immutable, safe to share between threads.
#[derive(Debug, Default)]
pub struct Requests {
    /// None where the policy is not about the tool.
    pub(super) all: Vec<Option<Request>>,
    /// The arguments with roles of each request, one behind the other.
    pub(super) arguments: Vec<ArgumentValues>,
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
pub(super) struct ArgumentValues {
    pub(super) values: Range<u32>,
    /// Whether something follows that is no text.
    pub(super) is_broken: bool,
}

/// A text, read as each kind when that is first wanted.
#[derive(Debug)]
pub(super) struct Text {
    text: Arc<str>,
    read: [OnceLock<std::result::Result<Option<Box<str>>, ValueError>>; 3],
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

    /// What conditions read of one of them.
    pub(super) fn attributes<'r>(
        &'r self,
        request: &'r Request,
        match_cache: &'r mut MatchCache,
    ) -> impl Attributes + 'r {
        BatchRequest { requests: self, request, match_cache }
    }

    /// Room for what the matchers of a condition find out about their texts.
    pub(super) fn match_cache(&self, matchers: usize) -> MatchCache {
        MatchCache(vec![vec![None; self.texts.len()]; matchers])
    }
}

/// Whether the values of texts are among those that each matcher of a condition names. Requests have the same texts again
/// and again.
#[derive(Default)]
pub(super) struct MatchCache(Vec<Vec<Option<bool>>>);

/// One of many requests while a condition is held against it.
struct BatchRequest<'r> {
    requests: &'r Requests,
    request: &'r Request,
    /// What was found out so far, if it is kept.
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
        mut tell: impl FnMut(bool),
    ) -> std::result::Result<(), ValueError> {
        let Some(given) = self.requests.arguments.get((self.request.first + argument) as usize) else {
            return Ok(());
        };
        let mut match_cache = self.match_cache.0.get_mut(matcher);
        let values = self.requests.values.get(given.values.start as usize..given.values.end as usize);
        for number in values.unwrap_or_default() {
            let verdict = match_cache.as_mut().and_then(|match_cache| match_cache.get_mut(*number as usize));
            if let Some(Some(known)) = verdict {
                tell(*known);
                continue;
            }
            let Some(text) = self.requests.texts.get(*number as usize) else { continue };
            let is_among = among.contains(text.read(among.kind())?);
            if let Some(verdict) = verdict {
                *verdict = Some(is_among);
            }
            tell(is_among);
        }
        if given.is_broken { Err(ValueError::NO_TEXT) } else { Ok(()) }
    }
}

/// Whether one of the roles in a list is one of some, which are in order.
pub(super) fn has_role(roles: &Value, wanted: &[Box<str>]) -> bool {
    let mut roles = roles.as_array().into_iter().flat_map(|roles| roles.iter()).filter_map(Value::as_text);
    roles.any(|role| is_role_in(role, wanted))
}

impl Text {
    pub(super) fn new(text: &Arc<str>) -> Self {
        Self { text: Arc::clone(text), read: Default::default() }
    }

    /// The text as a value of a kind.
    pub(super) fn read(&self, kind: Kind) -> std::result::Result<&str, ValueError> {
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
