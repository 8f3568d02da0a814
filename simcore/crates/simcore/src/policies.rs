//! Policies: rules that decide about the tool calls of an agent.
//!
//! docs/reference/policies-semantics.md specifies the semantics. The static part of each rule is evaluated once for each tool. So
//! a request is compared only with the rules that can match its tool. Texts are parsed once for all rules.

mod attributes;
mod conditions;
mod decision_cache;
mod entries;
mod requests;
mod tools;
mod value_kinds;
mod value_parsing;

use std::sync::OnceLock;

use bumpalo::Bump;

use crate::canonical_json::Members as Written;
use crate::document;
use crate::error::Result;
use crate::json_node::{Json, Members, Node};
use crate::strict_json;
use attributes::Attributes;
use conditions::{Condition, ConditionError, MatcherArguments};
pub use decision_cache::Call;
use entries::Lists;
pub use requests::Requests;
use requests::{MatchCache, Request, has_role};
use tools::{Tools, to_number};
pub use value_parsing::RequestParser;

/// The decision if no rule matches.
const NO_RULE: i32 = -1;
/// The decision about a tool that the policy does not cover.
const UNKNOWN_TOOL: i32 = -2;

/// A compiled policy. It is immutable.
#[derive(Debug)]
pub struct Policy {
    tools: Tools,
    lists: Lists,
    rules: Vec<Rule>,
    /// For each tool the rules that can match its calls, in order. Computed at the first call.
    candidates: Vec<OnceLock<Candidates>>,
}

/// Numbers of rules with the arguments that their matchers read.
type Candidates = Box<[(u32, MatcherArguments)]>;

#[derive(Debug)]
struct Rule {
    when: Condition,
    allows: bool,
}

/// A set of request numbers as bits: bit `n % 8` of byte `n / 8` for request `n`. It has no trailing zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits(Vec<u8>);

impl Bits {
    fn insert(&mut self, number: u32) {
        let byte = number as usize / 8;
        if byte >= self.0.len() {
            self.0.resize(byte + 1, 0);
        }
        if let Some(byte) = self.0.get_mut(byte) {
            *byte |= 1 << (number % 8);
        }
    }

    /// Return the bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Decisions about requests, in order.
#[derive(Debug, Default)]
pub struct Decisions {
    decisions: Vec<i32>,
    failed: Bits,
}

impl Decisions {
    /// Add a result of [`Policy::decide`].
    pub fn push(&mut self, (decision, has_failed): (i32, bool)) {
        if has_failed {
            self.failed.insert(to_number(self.decisions.len()));
        }
        self.decisions.push(decision);
    }

    /// Return the result in the format of [`Policy::decide_many`].
    #[must_use]
    pub fn finish(self) -> (Vec<i32>, Bits) {
        (self.decisions, self.failed)
    }
}

/// The requests for which a condition holds, and those for which it cannot be evaluated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// Requests for which it holds.
    pub holds: Bits,
    /// Requests for which it cannot be evaluated.
    pub unevaluated: Bits,
}

impl Policy {
    /// Compile a validated document.
    ///
    /// # Errors
    ///
    /// For an invalid document: `SPEC_INVALID`, or an error of the JSON parser or of an entry.
    pub fn new(document: &[u8]) -> Result<Self> {
        let arena = Bump::new();
        let root = strict_json::borrow_canonical(document, &arena)?;
        let spec = document::object(&root)?;
        let tools = Tools::new(document::list(document::field(spec, "tools")?)?)?;
        let lists = Lists::new(spec.get("lists"))?;
        let invariants = document::list_or_empty(spec, "invariants")?;
        let rules = invariants.iter().chain(document::list(document::field(spec, "rules")?)?);
        let rules =
            rules.map(|rule| Rule::new(document::object(rule)?, &tools, &lists)).collect::<Result<_>>()?;
        let candidates = (0..tools.len()).map(|_| OnceLock::new()).collect();
        Ok(Self { tools, lists, rules, candidates })
    }

    /// Create a parser of requests, for this policy and every other one with the same tools.
    #[must_use]
    pub fn request_parser(&self) -> RequestParser<'_> {
        RequestParser::new(&self.tools)
    }

    /// Create a tool call for a single decision. Arguments and roles are within the limits of the JSON
    /// parser.
    #[must_use]
    pub fn call<'a>(&self, server: &str, tool: &str, arguments: Node<'a>, roles: &'a [&'a str]) -> Call<'a> {
        Call { tool: self.tools.number(server, tool), arguments, roles }
    }

    /// Decide a call, as [`Policy::decide_many`]. The second value is True if an earlier condition could not
    /// be evaluated.
    #[must_use]
    pub fn decide(&self, call: &Call<'_>) -> (i32, bool) {
        let known = call.tool.and_then(|number| Some((number, self.tools.get(number)?)));
        let Some((number, tool)) = known else { return (UNKNOWN_TOOL, false) };
        let mut has_failed = false;
        let found = self.first_rule(number, &mut call.attributes(tool), |_, _| has_failed = true);
        (found, has_failed)
    }

    /// Decide each request. Return the deciding rules, and the requests for which an earlier condition could
    /// not be evaluated.
    ///
    /// A rule is its position among the invariants and rules. −1 means that no rule matched, −2 an unknown
    /// tool. The requests must be parsed for the same tools.
    #[must_use]
    pub fn decide_many(&self, requests: &Requests) -> (Vec<i32>, Bits) {
        let mut decisions = Decisions::default();
        for number in 0..requests.len() {
            decisions.push(self.decide_in_batch(requests, number));
        }
        decisions.finish()
    }

    /// Decide one request of a batch, as [`Policy::decide`].
    #[must_use]
    pub fn decide_in_batch(&self, requests: &Requests, number: usize) -> (i32, bool) {
        let mut has_failed = false;
        let found = self.decide_request(requests, requests.get(number), |_, _| has_failed = true);
        (found, has_failed)
    }

    /// Return the conditions up to the deciding one that could not be evaluated, as a JSON list of `{rule,
    /// code, message, path}`.
    ///
    /// # Errors
    ///
    /// None in practice: the output is flat.
    pub fn unevaluated(&self, requests: &Requests, number: usize) -> Result<String> {
        let mut failures = Vec::new();
        let request = requests.get(number);
        self.decide_request(requests, request, |rule, failure| failures.push((rule, failure.into_error())));
        let mut out = String::from("[");
        for (place, (rule, error)) in failures.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            let mut members = Written::new(&mut out, 2);
            members.text("code", error.code().as_str());
            members.text("message", error.message());
            members.text("path", error.path());
            members.begin("rule").push_str(&rule.to_string());
            members.end();
        }
        out.push(']');
        Ok(out)
    }

    /// Return the matching requests of each rule, regardless of its position.
    #[must_use]
    pub fn matches(&self, requests: &Requests) -> Vec<Matches> {
        self.rules.iter().map(|rule| self.matches_of_condition(&rule.when, requests)).collect()
    }

    /// As [`Policy::matches`], for a JSON list of other rules with the same tools and lists.
    ///
    /// # Errors
    ///
    /// As [`Policy::new`].
    pub fn matches_of_rules(&self, requests: &Requests, rules: &[u8]) -> Result<Vec<Matches>> {
        let arena = Bump::new();
        let rules: Node<'_> = strict_json::borrow_canonical(rules, &arena)?;
        document::map_items(document::list(&rules)?, |_, rule| {
            let rule = Rule::new(document::object(rule)?, &self.tools, &self.lists)?;
            Ok(self.matches_of_condition(&rule.when, requests))
        })
    }

    fn matches_of_condition(&self, when: &Condition, requests: &Requests) -> Matches {
        let mut matches = Matches::default();
        let is_about = |roles| when.roles().is_none_or(|wanted| has_role(roles, wanted));
        let callers: Vec<bool> = requests.callers.iter().map(is_about).collect();
        let mut match_cache = when.match_cache(requests);
        for (tool, calls) in requests.requests_by_tool() {
            let Some(tool) = self.tools.get(*tool) else { continue };
            let Some(arguments) = when.bind(tool) else { continue };
            for number in calls {
                let Some(request) = requests.get(*number as usize) else { continue };
                if callers.get(request.caller as usize) != Some(&true) {
                    continue;
                }
                match when.holds(tool, &arguments, &mut requests.attributes(request, &mut match_cache)) {
                    Ok(true) => matches.holds.insert(*number),
                    Ok(false) => {}
                    Err(_) => matches.unevaluated.insert(*number),
                }
            }
        }
        matches
    }

    /// Decide one request of a batch, if the policy covers its tool.
    fn decide_request(
        &self,
        requests: &Requests,
        request: Option<&Request>,
        on_failure: impl FnMut(u32, ConditionError),
    ) -> i32 {
        let Some(request) = request else { return UNKNOWN_TOOL };
        // Each text is compared once or twice, so a cache would cost more than it saves.
        self.first_rule(
            request.tool,
            &mut requests.attributes(request, &mut MatchCache::default()),
            on_failure,
        )
    }

    /// Decide a call of a tool, and report the conditions that could not be evaluated.
    fn first_rule(
        &self,
        tool: u32,
        attributes: &mut impl Attributes,
        mut on_failure: impl FnMut(u32, ConditionError),
    ) -> i32 {
        let Some((tool, candidates)) = self.tools.get(tool).zip(self.candidates(tool)) else {
            return UNKNOWN_TOOL;
        };
        for (number, arguments) in candidates {
            let Some(rule) = self.rules.get(*number as usize) else { continue };
            if rule.when.roles().is_some_and(|wanted| !attributes.has_role(wanted)) {
                continue;
            }
            let matches = rule.when.holds(tool, arguments, attributes).unwrap_or_else(|failure| {
                on_failure(*number, failure);
                !rule.allows
            });
            if matches {
                return i32::try_from(*number).unwrap_or(NO_RULE);
            }
        }
        NO_RULE
    }

    /// Return the rules that can match calls of a tool, in order.
    fn candidates(&self, tool: u32) -> Option<&[(u32, MatcherArguments)]> {
        let known = self.candidates.get(tool as usize)?;
        let tool = self.tools.get(tool)?;
        Some(known.get_or_init(|| {
            let rules = self.rules.iter().enumerate();
            rules.filter_map(|(number, rule)| Some((to_number(number), rule.when.bind(tool)?))).collect()
        }))
    }
}

impl Rule {
    fn new<T: Json>(rule: Members<'_, T>, tools: &Tools, lists: &Lists) -> Result<Self> {
        let when = Condition::new(document::object(document::field(rule, "when")?)?, tools, lists)?;
        Ok(Self { when, allows: document::text(document::field(rule, "then")?)? == "allow" })
    }
}
