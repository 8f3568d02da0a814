//! Conditions of rules.

use super::attributes::Attributes;
use super::entries::{Among, Lists};
use super::requests::{MatchCache, Requests};
use super::tools::{Names, Tool, Tools, intersects};
use super::value_kinds::{Kind, ValueError};
use crate::document;
use crate::error::{Error, Result};
use crate::json_node::{Json, Members};
use crate::jsonlogic::{self, Data};

/// The condition of a rule. All present members must hold.
#[derive(Debug)]
pub(super) struct Condition {
    servers: Option<Vec<u32>>,
    tools: Option<Vec<u32>>,
    argument_roles: Option<Vec<u32>>,
    read_only: Option<bool>,
    destructive: Option<bool>,
    /// Sorted names. Callers may have roles that the policy does not define.
    roles: Option<Vec<Box<str>>>,
    matchers: Vec<Matcher>,
    logic: Option<jsonlogic::Rule>,
}

#[derive(Debug)]
struct Matcher {
    roles: Vec<u32>,
    quantifier: Quantifier,
    among: Among,
}

#[derive(Debug)]
enum Quantifier {
    All,
    Any,
    None,
    NotAll,
}

/// For each matcher of a condition, the numbers of the arguments of one tool that it reads.
#[derive(Debug)]
pub(super) struct MatcherArguments(Box<[Box<[u32]>]>);

/// The reason why a condition cannot be evaluated.
pub(super) enum ConditionError {
    /// A value of a matcher cannot be parsed.
    Argument(usize, ValueError),
    Logic(Error),
}

impl ConditionError {
    /// Convert to an error with its place in the rule.
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Argument(matcher, unread) => Error::from(unread).at(format!("/when/arguments/{matcher}")),
            Self::Logic(error) => error.at("/when/logic"),
        }
    }
}

impl Condition {
    pub(super) fn new<T: Json>(when: Members<'_, T>, tools: &Tools, lists: &Lists) -> Result<Self> {
        let names = |key| when.get(key).map(document::list).transpose();
        let is = |key| when.get(key).map(document::boolean).transpose();
        let known =
            |names: Option<&[T]>, among: &Names| names.map(|names| among.known_numbers(names)).transpose();
        Ok(Self {
            servers: known(names("servers")?, &tools.servers)?,
            tools: known(names("tools")?, &tools.names)?,
            argument_roles: known(names("argument_roles")?, &tools.roles)?,
            read_only: is("read_only")?,
            destructive: is("destructive")?,
            roles: names("roles")?.map(sort_names).transpose()?,
            matchers: document::map_items(document::list_or_empty(when, "arguments")?, |_, matcher| {
                Matcher::new(document::object(matcher)?, tools, lists)
            })?,
            logic: when.get("logic").map(|logic| jsonlogic::Rule::new(&logic.to_value())),
        })
    }

    /// Bind the condition to a tool. Return `None` if it holds for no call of the tool and never fails.
    pub(super) fn bind(&self, tool: &Tool) -> Option<MatcherArguments> {
        let among = |names: &Option<Vec<u32>>, found: &[u32]| {
            names.as_deref().is_none_or(|names| intersects(names, found))
        };
        let is_about = among(&self.servers, &[tool.server])
            && among(&self.tools, &[tool.name])
            && among(&self.argument_roles, &tool.roles)
            && self.read_only.is_none_or(|wanted| wanted == tool.read_only)
            && self.destructive.is_none_or(|wanted| wanted == tool.destructive);
        if !is_about {
            return None;
        }
        let arguments: Box<[_]> =
            self.matchers.iter().map(|matcher| matcher.argument_numbers(tool)).collect();
        // A matcher without values does not hold. It is the first, so no matcher before it can fail.
        if arguments.first().is_some_and(|arguments| arguments.is_empty()) {
            None
        } else {
            Some(MatcherArguments(arguments))
        }
    }

    /// Return the roles of which a caller needs one, or `None` for any caller.
    pub(super) fn roles(&self) -> Option<&[Box<str>]> {
        self.roles.as_deref()
    }

    /// Return True if the condition holds for a call of a bound tool. The caller has one of the roles.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be evaluated.
    pub(super) fn holds(
        &self,
        tool: &Tool,
        arguments: &MatcherArguments,
        attributes: &mut impl Attributes,
    ) -> std::result::Result<bool, ConditionError> {
        for (number, (matcher, arguments)) in self.matchers.iter().zip(&arguments.0).enumerate() {
            let holds = matcher.holds(number, arguments, attributes);
            if !holds.map_err(|unread| ConditionError::Argument(number, unread))? {
                return Ok(false);
            }
        }
        let Some(logic) = &self.logic else { return Ok(true) };
        let [server, name] = &tool.shown;
        let (arguments, roles) = (attributes.arguments(), attributes.roles());
        let root = [("server", server), ("tool", name), ("arguments", arguments), ("roles", roles)];
        logic.holds(Data::Members(&root)).map_err(ConditionError::Logic)
    }

    /// Create the cache of match results of a request batch.
    pub(super) fn match_cache(&self, requests: &Requests) -> MatchCache {
        requests.match_cache(self.matchers.len())
    }
}

fn sort_names<T: Json>(names: &[T]) -> Result<Vec<Box<str>>> {
    let mut names = document::map_items(names, |_, name| document::text(name).map(Box::from))?;
    names.sort_unstable();
    Ok(names)
}

impl Matcher {
    fn new<T: Json>(matcher: Members<'_, T>, tools: &Tools, lists: &Lists) -> Result<Self> {
        let kind = Kind::from_name(document::text(document::field(matcher, "kind")?)?)?;
        let quantifier = match matcher.get("quantifier").map_or(Ok("all"), document::text)? {
            "all" => Quantifier::All,
            "any" => Quantifier::Any,
            "none" => Quantifier::None,
            "not_all" => Quantifier::NotAll,
            _ => return Err(document::invalid("there is no such quantifier")),
        };
        Ok(Self {
            roles: tools.roles.known_numbers(document::list(document::field(matcher, "argument_roles")?)?)?,
            quantifier,
            among: Among::new(kind, document::list(document::field(matcher, "among")?)?, lists)?,
        })
    }

    /// Return the numbers of a tool's arguments that the matcher reads.
    fn argument_numbers(&self, tool: &Tool) -> Box<[u32]> {
        let arguments = (0..).zip(&tool.paths);
        arguments
            .filter(|(_, argument)| intersects(&self.roles, &argument.roles))
            .map(|(number, _)| number)
            .collect()
    }

    fn holds(
        &self,
        number: usize,
        arguments: &[u32],
        attributes: &mut impl Attributes,
    ) -> std::result::Result<bool, ValueError> {
        let (mut all, mut any, mut is_empty) = (true, false, true);
        for argument in arguments {
            attributes.compare(*argument, number, &self.among, |matches| {
                all &= matches;
                any |= matches;
                is_empty = false;
            })?;
        }
        Ok(!is_empty
            && match self.quantifier {
                Quantifier::All => all,
                Quantifier::Any => any,
                Quantifier::None => !any,
                Quantifier::NotAll => !all,
            })
    }
}
