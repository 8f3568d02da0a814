//! JSONLogic expressions: that every operator is one, has arguments as it should, and reads what there is.

use super::spec::{Param, Rule};
use super::world::{Path, USUAL_STEPS, World, has_key};
use crate::json_node::{Member, Node};
use crate::paths::{Step, variable_steps};

const MAX_DEPTH: usize = 64;

/// What a variable may name.
#[derive(Clone, Copy)]
pub(super) struct Scope<'s, 'a> {
    pub(super) world: &'s World<'a>,
    pub(super) params: &'s [(&'a str, Param<'a>)],
    pub(super) derives: &'a [Member<'a>],
    /// Whether the expression runs over the elements of an array, which are not known here.
    pub(super) inside: bool,
}

impl<'s, 'a> Scope<'s, 'a> {
    /// What a rule may name, its derived values among it or not.
    pub(super) fn of(world: &'s World<'a>, rule: &'s Rule<'a>, derives: &'a [Member<'a>]) -> Self {
        Self { world, params: &rule.params, derives, inside: false }
    }

    /// What a condition may name.
    pub(super) fn bare(world: &'s World<'a>) -> Self {
        Self { world, params: &[], derives: &[], inside: false }
    }
}

/// Whether nothing is wrong with an expression.
pub(super) fn is_sound<'a>(logic: &Node<'a>, scope: Scope<'_, 'a>, depth: usize) -> bool {
    depth <= MAX_DEPTH
        && match logic {
            Node::Array(items) => items.iter().all(|item| is_sound(item, scope, depth + 1)),
            Node::Object(members) => is_operation(members, scope, depth),
            _ => true,
        }
}

/// Whether an object is empty, or nothing is wrong with it as an operation.
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

/// Whether there is such an operator, and it takes so many arguments.
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

/// Whether a variable names something that there is, or can come to be.
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

/// The name below the root of a path; an index is none that anybody would take.
fn name_below_root<'p>(path: &'p [Step<'_>]) -> Option<&'p str> {
    if let Some(Step::Name(name)) = path.get(1) { Some(name) } else { None }
}
