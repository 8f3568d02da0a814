//! Static checks beyond the schema: ids, sizes, times and rules.

use std::collections::HashSet;

use memchr::memmem;

use super::effects::{self, is_target};
use super::logic::{Scope, is_operation, is_sound};
use super::spec::{Bound, Deal, Kind, Move, Operation, Param, Rule, Spec};
use super::world::{World, state_path};
use crate::durations;
use crate::json_node::{Members, Node};
use crate::limits::{forbidden_key, looks_like_code};
use crate::paths::{FORBIDDEN_KEYS, Step, variable_steps};
use crate::program::derive_order;
use crate::state::{MAX_STATE_NODES, MAX_STATE_TEXT, Size};
use crate::strict_json::{MAX_DEPTH, MAX_SAFE_INTEGER};

const MAX_EFFECTS: usize = 4096;

/// Return True if a document has a key that is dangerous to clients.
///
/// Canonical form escapes no letter. A key is absent if its bytes are absent, which is nearly always the
/// case.
pub(super) fn has_forbidden_key(root: &Node<'_>, canonical: &[u8]) -> bool {
    let is_held = |key: &&str| memmem::find(canonical, key.as_bytes()).is_some();
    FORBIDDEN_KEYS.iter().any(is_held) && forbidden_key(root).is_some()
}

/// Return True if parameters may stand in the paths of a document.
pub(super) fn may_have_variants(spec: &Spec<'_>, canonical: &[u8]) -> bool {
    spec.is_later && memmem::find(canonical, b"[params.").is_some()
}

/// Return True if a scenario that fits the schema has no other finding.
pub(super) fn are_sound<'a>(spec: &'a Spec<'a>) -> bool {
    let world = World::new(spec);
    let mut effects = 0;
    fits(&Node::Object(spec.state))
        && ids_are_distinct(spec)
        && spec.turn.is_none_or(|turn| durations::minutes(turn).is_ok_and(|minutes| minutes > 0))
        && spec.rates.1.is_none_or(|most| most >= spec.rates.0)
        && spec.actions.iter().chain(&spec.events).all(|rule| is_rule(rule, &world, &mut effects))
        && effects <= MAX_EFFECTS
        && spec
            .losses
            .iter()
            .chain(&spec.wins)
            .all(|end| is_operation(end.when, Scope::for_condition(&world), 1))
        && spec.decay.iter().all(|(path, _)| is_target(Operation::Calculate, path, &world))
        && is_visible(spec, &world)
        && spec.granted.iter().all(|path| is_path(path, &world))
        && is_story(spec, &world)
}

/// Return True if the keys of version 1.1 have no finding.
fn is_story<'a>(spec: &Spec<'a>, world: &World<'a>) -> bool {
    spec.bounds.iter().all(|bound| is_bound(bound, world))
        && spec.deals.iter().all(|deal| is_deal(deal, world))
        && deals_fit(spec)
        && spec.epilogues.iter().all(|(id, _)| spec.losses.iter().chain(&spec.wins).any(|end| end.id == *id))
        && spec.labels.iter().all(|(path, _)| is_path(path, world))
        && spec.solutions.iter().all(|solution| {
            let is_condition = |when| is_operation(when, Scope::for_condition(world), 1);
            is_condition(solution.when)
                && solution
                    .steps
                    .iter()
                    .all(|step| is_condition(step.when) && step.moves.iter().all(|one| is_move(one, spec)))
        })
        && reads_visible(spec)
}

/// Return True if no precondition and no step of a solution reads what may be hidden.
///
/// It is strict: a value counts as hidden if any entity does not see a part of it.
fn reads_visible(spec: &Spec<'_>) -> bool {
    if !spec.is_later {
        return true;
    }
    let mut hidden: Vec<Vec<String>> =
        ["hidden", "private"].iter().map(|name| vec!["state".to_owned(), (*name).to_owned()]).collect();
    let labels = spec.visibility.iter().filter(|label| !label.is_public);
    hidden.extend(labels.filter_map(|label| state_path(label.path)).map(|path| spell(&path)));
    let steps = spec.solutions.iter().flat_map(|solution| &solution.steps);
    let conditions = spec.actions.iter().map(|action| action.when).chain(steps.map(|step| step.when));
    conditions.into_iter().all(|condition| !mentions(&Node::Object(condition), &hidden))
}

/// Return True if a text of an expression is a variable that overlaps a path.
fn mentions(logic: &Node<'_>, paths: &[Vec<String>]) -> bool {
    match logic {
        Node::Array(items) => items.iter().any(|item| mentions(item, paths)),
        Node::Object(members) => members.iter().any(|(_, member)| mentions(member, paths)),
        Node::Text(text) if text.starts_with("state") => {
            let mut steps = Vec::new();
            variable_steps(text, &mut steps);
            let read = spell(&steps);
            paths.iter().any(|path| path.iter().zip(&read).all(|(one, other)| one == other))
        }
        _ => false,
    }
}

/// Return the steps of a path as texts, in which an index equals a key of its digits.
fn spell(path: &[Step<'_>]) -> Vec<String> {
    path.iter()
        .map(|step| match step {
            Step::Name(name) => name.to_string(),
            Step::Index(index) => index.to_string(),
        })
        .collect()
}

/// Return True if the action of a move exists and its parameters are legal.
fn is_move(step: &Move<'_>, spec: &Spec<'_>) -> bool {
    let Some(action) = spec.actions.iter().find(|action| action.id == step.action) else { return false };
    action.params.len() == step.params.len()
        && action.params.iter().all(|(name, param)| {
            Members::<Node<'_>>(step.params).get(name).is_some_and(|value| is_legal(param, value))
        })
}

#[expect(clippy::cast_precision_loss, reason = "texts are short")]
fn is_legal(param: &Param<'_>, value: &Node<'_>) -> bool {
    let is_option = |option: &Node<'_>| match (option, value) {
        (Node::Number(one), Node::Number(other)) => one == other,
        (Node::Text(one), Node::Text(other)) => one == other,
        (Node::Bool(one), Node::Bool(other)) => one == other,
        _ => false,
    };
    is_of(param.kind, value)
        && param.options.is_none_or(|options| options.iter().any(is_option))
        && match value {
            Node::Number(number) => {
                param.minimum.is_none_or(|minimum| *number >= minimum)
                    && param.maximum.is_none_or(|maximum| *number <= maximum)
            }
            Node::Text(text) => param.max_length.is_none_or(|most| text.chars().count() as f64 <= most),
            _ => true,
        }
}

fn is_bound(bound: &Bound<'_>, world: &World<'_>) -> bool {
    let Some(path) = state_path(bound.path) else { return false };
    let is_key = |step: &Step<'_>| matches!(step, Step::Name(_));
    // An array has no keys, so a path of keys is not below one.
    path.iter().all(is_key)
        && bound.least <= bound.most
        && matches!(world.literal(&path), Some(Node::Number(number)) if (bound.least..=bound.most).contains(&number))
}

fn is_deal(deal: &Deal<'_>, world: &World<'_>) -> bool {
    let Some(path) = state_path(deal.path) else { return false };
    path.len() > 1
        && world.literal(&path).is_some()
        && deal.values.iter().all(|value| {
            !looks_like_code(value)
                && path.len() - 1 + Size::measure(value).deepest <= MAX_DEPTH
                && world.can_store(&path, value)
        })
}

/// Return True if no two deals write overlapping paths, and the state stays within its limits.
fn deals_fit(spec: &Spec<'_>) -> bool {
    if spec.deals.is_empty() {
        return true;
    }
    let paths: Vec<_> = spec.deals.iter().filter_map(|deal| state_path(deal.path)).collect();
    let are_apart = paths.iter().enumerate().all(|(index, one)| {
        paths.iter().skip(index + 1).all(|other| !one.starts_with(other) && !other.starts_with(one))
    });
    let mut size = Size::measure(&Node::Object(spec.state));
    for deal in &spec.deals {
        let sizes = deal.values.iter().map(Size::measure);
        let (nodes, text) =
            sizes.fold((0, 0), |(nodes, text), size| (size.nodes.max(nodes), size.text.max(text)));
        size.nodes += nodes;
        size.text += text;
    }
    are_apart && size.nodes <= MAX_STATE_NODES && size.text <= MAX_STATE_TEXT
}

fn fits(state: &Node<'_>) -> bool {
    let size = Size::measure(state);
    size.nodes <= MAX_STATE_NODES && size.text <= MAX_STATE_TEXT
}

fn ids_are_distinct(spec: &Spec<'_>) -> bool {
    let ends = spec.losses.iter().chain(&spec.wins).map(|end| end.id);
    are_distinct(spec.entities.iter().copied())
        && are_distinct(spec.actions.iter().map(|action| action.id))
        && are_distinct(spec.events.iter().map(|event| event.id))
        && are_distinct(ends)
        && are_distinct(spec.deals.iter().map(|deal| deal.id))
        && are_distinct(spec.solutions.iter().map(|solution| solution.id))
}

fn are_distinct<'a>(ids: impl Iterator<Item = &'a str>) -> bool {
    let mut ids: Vec<&str> = ids.collect();
    ids.sort_unstable();
    ids.windows(2).all(|pair| matches!(pair, [a, b] if a != b))
}

fn is_rule<'a>(rule: &Rule<'a>, world: &World<'a>, count: &mut usize) -> bool {
    let scope = Scope::for_rule(world, rule, rule.derives);
    rule.params.iter().all(|(_, param)| can_be_drawn(param))
        && is_operation(rule.when, Scope::for_rule(world, rule, &[]), 1)
        && rule.duration.is_none_or(|duration| durations::minutes(duration).is_ok())
        && rule.derives.iter().all(|(_, expression)| is_sound(expression, scope, 1))
        && derive_order(Members::<Node<'_>>(rule.derives)).is_ok()
        && effects::are_sound(&rule.effects, world, rule.derives, 1, count)
}

fn can_be_drawn(param: &Param<'_>) -> bool {
    let is_numeric = matches!(param.kind, Kind::Integer | Kind::Number);
    let has_bounds = param.minimum.is_some() || param.maximum.is_some();
    if (has_bounds && !is_numeric) || (param.max_length.is_some() && param.kind != Kind::Text) {
        return false;
    }
    match (param.options, param.kind) {
        (Some(options), kind) => {
            !has_bounds && param.max_length.is_none() && options.iter().all(|option| is_of(kind, option))
        }
        (None, Kind::Text) => param.max_length.is_some(),
        (None, Kind::Boolean) => true,
        (None, Kind::Integer | Kind::Number) => {
            let is_bound = |bound: f64| {
                bound.abs() <= MAX_SAFE_INTEGER && (param.kind == Kind::Number || bound.fract() == 0.0)
            };
            param
                .minimum
                .zip(param.maximum)
                .is_some_and(|(low, high)| low <= high && is_bound(low) && is_bound(high))
        }
    }
}

fn is_of(kind: Kind, value: &Node<'_>) -> bool {
    match (kind, value) {
        (Kind::Boolean, Node::Bool(_)) | (Kind::Text, Node::Text(_)) | (Kind::Number, Node::Number(_)) => {
            true
        }
        (Kind::Integer, Node::Number(number)) => number.fract() == 0.0,
        _ => false,
    }
}

fn is_visible(spec: &Spec<'_>, world: &World<'_>) -> bool {
    let entities: HashSet<&str> = spec.entities.iter().copied().collect();
    let viewers_exist = spec
        .visibility
        .iter()
        .all(|rule| is_path(rule.path, world) && rule.to.iter().all(|id| entities.contains(id)));
    // `state.private.<entity>` is visible to that entity only, so its keys must be entities.
    viewers_exist
        && match Members::<Node<'_>>(spec.state).get("private") {
            Some(Node::Object(owners)) => owners.iter().all(|(owner, _)| entities.contains(owner)),
            _ => true,
        }
}

/// Return True if a path exists or effects can create it.
fn is_path(path: &str, world: &World<'_>) -> bool {
    state_path(path).is_some_and(|path| world.has(&path))
}
