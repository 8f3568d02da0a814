//! Static checks of JSONLogic expressions: known operators, number of arguments, existing variables.

use super::spec::{Param, Rule};
use super::world::{Path, USUAL_STEPS, World, has_key};
use crate::json_node::{Member, Node};
use crate::paths::{Step, variable_steps};

const MAX_DEPTH: usize = 64;

/// Names that an expression may use.
#[derive(Clone, Copy)]
pub(super) struct Scope<'s, 'a> {
    pub(super) world: &'s World<'a>,
    pub(super) params: &'s [(&'a str, Param<'a>)],
    pub(super) derives: &'a [Member<'a>],
    /// True inside an iteration, where the elements are unknown.
    pub(super) inside: bool,
}

impl<'s, 'a> Scope<'s, 'a> {
    /// Return the scope of a rule, with or without its derived values.
    pub(super) fn for_rule(world: &'s World<'a>, rule: &'s Rule<'a>, derives: &'a [Member<'a>]) -> Self {
        Self { world, params: &rule.params, derives, inside: false }
    }

    /// Return the scope of a condition.
    pub(super) fn for_condition(world: &'s World<'a>) -> Self {
        Self { world, params: &[], derives: &[], inside: false }
    }
}

/// Return True if an expression has no finding.
pub(super) fn is_sound<'a>(logic: &Node<'a>, scope: Scope<'_, 'a>, depth: usize) -> bool {
    depth <= MAX_DEPTH
        && match logic {
            Node::Array(items) => items.iter().all(|item| is_sound(item, scope, depth + 1)),
            Node::Object(members) => is_operation(members, scope, depth),
            _ => true,
        }
}

/// Return True if an object is empty, or an operation without findings.
pub(super) fn is_operation<'a>(members: &[Member<'a>], scope: Scope<'_, 'a>, depth: usize) -> bool {
    let (name, operand) = match members {
        [] => return true,
        [(name, operand)] => (*name, operand),
        _ => return false,
    };
    let arguments = if let Node::Array(items) = operand { items } else { std::slice::from_ref(operand) };
    if !takes(name, arguments.len()) {
        return false;
    }
    let first = usize::from(name == "var");
    let reads = match name {
        _ if scope.inside => true,
        "var" => matches!(arguments.first(), Some(Node::Text(path)) if is_known(path, scope)),
        "missing" => are_known(arguments, scope),
        "missing_some" => match arguments.get(1) {
            Some(Node::Array(paths)) => are_known(paths, scope),
            _ => true,
        },
        _ => true,
    };
    let iterates = matches!(name, "map" | "filter" | "reduce" | "all" | "some" | "none");
    reads
        && arguments.iter().skip(first).enumerate().all(|(index, argument)| {
            let inside = scope.inside || (iterates && index == 1);
            is_sound(argument, Scope { inside, ..scope }, depth + 1)
        })
}

/// Return True if an operator exists and accepts this number of arguments.
fn takes(name: &str, arguments: usize) -> bool {
    match name {
        "!" | "!!" => arguments == 1,
        "var" => (1..=2).contains(&arguments),
        "missing" | "and" | "or" | "+" | "-" | "*" | "min" | "max" | "merge" | "cat" => arguments >= 1,
        "==" | "===" | "<" | "<=" | ">" | ">=" | "/" | "%" | "if" => arguments >= 2,
        "missing_some" | "!=" | "!==" | "map" | "filter" | "all" | "some" | "none" | "in" => arguments == 2,
        "?:" | "reduce" => arguments == 3,
        "substr" => (2..=3).contains(&arguments),
        _ => false,
    }
}

fn are_known<'a>(paths: &[Node<'a>], scope: Scope<'_, 'a>) -> bool {
    paths.iter().all(|path| if let Node::Text(path) = path { is_known(path, scope) } else { true })
}

/// Return True if a variable exists or effects can create it.
fn is_known<'a>(text: &'a str, scope: Scope<'_, 'a>) -> bool {
    if scope.world.is_seen(text) {
        return true;
    }
    let mut path: Path<'_> = Vec::with_capacity(USUAL_STEPS);
    variable_steps(text, &mut path);
    let Some(Step::Name(root)) = path.first() else { return false };
    match &**root {
        "state" => scope.world.has(&path) && scope.world.see(text),
        "turn" | "entities" => true,
        "params" => {
            name_below_root(&path).is_some_and(|name| scope.params.iter().any(|(param, _)| *param == name))
        }
        "derives" => name_below_root(&path).is_some_and(|name| has_key(scope.derives, name)),
        _ => false,
    }
}

/// Return the name below the root of a path. An index is not a name.
fn name_below_root<'p>(path: &'p [Step<'_>]) -> Option<&'p str> {
    if let Some(Step::Name(name)) = path.get(1) { Some(name) } else { None }
}
