//! Policies: rules that decide about the tool calls of an agent.
//!
//! docs/policies.md says what they mean. What a rule says of a tool alone is worked out once, so that a request meets
//! only the rules that may hold for its tool, and texts are read once for all rules.

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

/// Who decides when no rule takes hold.
const NO_RULE: i32 = -1;
/// Who decides about a tool that the policy is not about.
const UNKNOWN_TOOL: i32 = -2;

/// A compiled policy. It never changes.
#[derive(Debug)]
pub struct Policy {
    tools: Tools,
    lists: Lists,
    rules: Vec<Rule>,
    /// For each tool the rules that may take hold of its calls, in order; worked out when it is first called.
    candidates: Vec<OnceLock<Candidates>>,
}

/// Rules by their places, and what they ask of the arguments of one tool.
type Candidates = Box<[(u32, MatcherArguments)]>;

#[derive(Debug)]
struct Rule {
    when: Condition,
    allows: bool,
}

/// Numbers of requests, as bits: bit `n % 8` of byte `n / 8` for request `n`. No zeros at the end.
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

    /// The bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Who decides requests, one after the other.
#[derive(Debug, Default)]
pub struct Decisions {
    deciding: Vec<i32>,
    troubled: Bits,
}

impl Decisions {
    /// Add what [`Policy::decided`] says.
    pub fn push(&mut self, (deciding, is_troubled): (i32, bool)) {
        if is_troubled {
            self.troubled.insert(to_number(self.deciding.len()));
        }
        self.deciding.push(deciding);
    }

    /// As [`Policy::deciding`] says it.
    #[must_use]
    pub fn finish(self) -> (Vec<i32>, Bits) {
        (self.deciding, self.troubled)
    }
}

/// The requests that a condition holds for, and those for which it cannot be evaluated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// It holds.
    pub holds: Bits,
    /// It cannot be evaluated.
    pub unevaluated: Bits,
}

impl Policy {
    /// Compile a document that has been validated.
    ///
    /// # Errors
    ///
    /// `SPEC_INVALID`, or what the JSON border or the reading of an entry found, for one that has not.
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

    /// Begin to read requests, for this policy and every other one with the same tools.
    #[must_use]
    pub fn request_parser(&self) -> RequestParser<'_> {
        RequestParser::new(&self.tools)
    }

    /// A call of a tool, to be decided about once; its arguments and roles are within the limits of the border.
    #[must_use]
    pub fn call<'a>(&self, server: &str, tool: &str, arguments: Node<'a>, roles: &'a [&'a str]) -> Call<'a> {
        Call { tool: self.tools.number(server, tool), arguments, roles }
    }

    /// Who decides a call, as [`Policy::deciding`] says it, and whether conditions could not be evaluated before that.
    #[must_use]
    pub fn decide(&self, call: &Call<'_>) -> (i32, bool) {
        let known = call.tool.and_then(|number| Some((number, self.tools.get(number)?)));
        let Some((number, tool)) = known else { return (UNKNOWN_TOOL, false) };
        let mut is_troubled = false;
        let found = self.first_rule(number, &mut call.attributes(tool), |_, _| is_troubled = true);
        (found, is_troubled)
    }

    /// Who decides each request, and for which ones conditions could not be evaluated before that.
    ///
    /// A rule is its place among the invariants and rules; −1 is none, −2 an unknown tool. The requests were read for
    /// the same tools.
    #[must_use]
    pub fn decide_many(&self, requests: &Requests) -> (Vec<i32>, Bits) {
        let mut deciding = Decisions::default();
        for number in 0..requests.len() {
            deciding.push(self.decide_in_batch(requests, number));
        }
        deciding.finish()
    }

    /// The same of one of them, as [`Policy::decided`] says it.
    #[must_use]
    pub fn decide_in_batch(&self, requests: &Requests, number: usize) -> (i32, bool) {
        let mut is_troubled = false;
        let found = self.decide_request(requests, requests.get(number), |_, _| is_troubled = true);
        (found, is_troubled)
    }

    /// The conditions up to the deciding one that could not be evaluated for a request: a JSON list of
    /// `{rule, code, message, path}`.
    ///
    /// # Errors
    ///
    /// None in practice: what is written is flat.
    pub fn unevaluated(&self, requests: &Requests, number: usize) -> Result<String> {
        let mut troubles = Vec::new();
        let request = requests.get(number);
        self.decide_request(requests, request, |rule, trouble| troubles.push((rule, trouble.into_error())));
        let mut out = String::from("[");
        for (place, (rule, error)) in troubles.iter().enumerate() {
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

    /// What the condition of each rule holds for, wherever it stands.
    #[must_use]
    pub fn matches(&self, requests: &Requests) -> Vec<Matches> {
        self.rules.iter().map(|rule| self.matches_of_condition(&rule.when, requests)).collect()
    }

    /// As [`Policy::matches`], of other rules, which use the same tools and lists: a JSON list of them.
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

    /// Who decides one of many requests, if the policy is about its tool.
    fn decide_request(
        &self,
        requests: &Requests,
        request: Option<&Request>,
        troubled: impl FnMut(u32, ConditionError),
    ) -> i32 {
        let Some(request) = request else { return UNKNOWN_TOOL };
        // Each text is asked about once or twice: to keep what was found costs more than to find it.
        self.first_rule(request.tool, &mut requests.attributes(request, &mut MatchCache::default()), troubled)
    }

    /// Who decides a call of a tool, and what could not be evaluated before that.
    fn first_rule(
        &self,
        tool: u32,
        attributes: &mut impl Attributes,
        mut troubled: impl FnMut(u32, ConditionError),
    ) -> i32 {
        let Some((tool, candidates)) = self.tools.get(tool).zip(self.candidates(tool)) else {
            return UNKNOWN_TOOL;
        };
        for (number, arguments) in candidates {
            let Some(rule) = self.rules.get(*number as usize) else { continue };
            if rule.when.roles().is_some_and(|wanted| !attributes.has_role(wanted)) {
                continue;
            }
            let takes_hold = rule.when.holds(tool, arguments, attributes).unwrap_or_else(|trouble| {
                troubled(*number, trouble);
                !rule.allows
            });
            if takes_hold {
                return i32::try_from(*number).unwrap_or(NO_RULE);
            }
        }
        NO_RULE
    }

    /// The rules that may take hold of calls of a tool, in order.
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
