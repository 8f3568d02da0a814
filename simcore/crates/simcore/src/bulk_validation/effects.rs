//! Static checks of effects: paths, values and due times.

use super::spec::{Due, Effect, Operation};
use super::world::{World, has_key, state_path};
use crate::durations;
use crate::json_node::{Member, Node};
use crate::limits::looks_like_code;
use crate::paths::Step;

const MAX_SCHEDULE_DEPTH: usize = 4;

/// Return True if a list of effects has no finding. The effects are counted.
pub(super) fn are_sound(
    effects: &[Effect<'_>],
    world: &World<'_>,
    derives: &[Member<'_>],
    depth: usize,
    count: &mut usize,
) -> bool {
    *count += effects.len();
    effects.iter().all(|effect| match effect {
        Effect::AddLog => true,
        Effect::Write { operation, path, value } => {
            is_target(*operation, path, world)
                && value.is_none_or(|value| {
                    is_value(*operation, value, derives) && is_within(*operation, path, value, world, derives)
                })
        }
        Effect::Schedule { at, after, effects } => {
            let is_due = |due: &Option<Due<'_>>| match due {
                Some(Due::Duration(text)) => durations::minutes(text).is_ok(),
                Some(Due::Turns) | None => true,
            };
            at.is_some() != after.is_some()
                && is_due(at)
                && is_due(after)
                && depth <= MAX_SCHEDULE_DEPTH
                && are_sound(effects, world, derives, depth + 1, count)
        }
    })
}

/// Return True if an operation can write a path.
pub(super) fn is_target(operation: Operation, path: &str, world: &World<'_>) -> bool {
    let Some(path) = state_path(path) else { return false };
    if operation == Operation::Set {
        let holder = path.get(..path.len() - 1).unwrap_or_default();
        return path.len() > 1 && world.has(holder);
    }
    if !world.has(&path) {
        return false;
    }
    match (operation, world.initial(&path)) {
        (_, None)
        | (Operation::Calculate, Some(Node::Number(_)))
        | (Operation::Patch, Some(Node::Object(_)))
        | (Operation::Append, Some(Node::Array(_))) => true,
        _ => world.is_written(&path),
    }
}

/// Return True if bounds permit the storage of a value.
fn is_within(
    operation: Operation,
    path: &str,
    value: &Node<'_>,
    world: &World<'_>,
    derives: &[Member<'_>],
) -> bool {
    if !world.has_bounds() || !matches!(operation, Operation::Set | Operation::Patch) {
        return true;
    }
    let Some(path) = state_path(path) else { return false };
    match (operation, value) {
        (Operation::Patch, Node::Object(members)) => members.iter().all(|(key, value)| {
            let member: Vec<_> = path.iter().cloned().chain([Step::Name((*key).into())]).collect();
            world.can_store(&member, value)
        }),
        (Operation::Patch, _) => true,
        // A derived value may be a number, but nothing may replace what holds a bounded one.
        (_, Node::Text(name)) if has_key(derives, name) => world.can_store(&path, &Node::Number(0.0)),
        (_, value) => world.can_store(&path, value),
    }
}

/// Return True if a value is a literal or an existing derived value.
fn is_value(operation: Operation, value: &Node<'_>, derives: &[Member<'_>]) -> bool {
    match (operation, value) {
        (_, Node::Text(name)) if has_key(derives, name) => true,
        (Operation::Calculate | Operation::Patch, Node::Text(_)) => false,
        (_, value) => !looks_like_code(value),
    }
}
