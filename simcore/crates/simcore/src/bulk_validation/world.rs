//! Paths that rules can refer to: the initial ones, and those that effects can create.

use std::cell::{OnceCell, RefCell};
use std::collections::HashSet;

use super::spec::{Effect, Operation, Spec};
use crate::json_node::{Member, Members, Node};
use crate::paths::{FORBIDDEN_KEYS, MAX_PATH_CHARACTERS, Step, path_steps};
use crate::strict_json::MAX_KEY_BYTES;

/// The steps of a path, with its root.
pub(super) type Path<'a> = Vec<Step<'a>>;

/// Approximate number of variables of most scenarios.
const USUAL_VARIABLES: usize = 48;
/// Most paths have no more steps.
pub(super) const USUAL_STEPS: usize = 4;

/// Static model of a scenario's state.
pub(super) struct World<'a> {
    state: Node<'a>,
    spec: &'a Spec<'a>,
    created: OnceCell<HashSet<Path<'a>>>,
    /// Cache of variables that exist. Most are read more than once.
    seen: RefCell<HashSet<&'a str>>,
}

impl<'a> World<'a> {
    pub(super) fn new(spec: &'a Spec<'a>) -> Self {
        Self {
            state: Node::Object(spec.state),
            spec,
            created: OnceCell::new(),
            seen: RefCell::new(HashSet::with_capacity(USUAL_VARIABLES)),
        }
    }

    /// Return True if a variable is in the cache.
    pub(super) fn is_seen(&self, variable: &str) -> bool {
        self.seen.borrow().contains(variable)
    }

    /// Add an existing variable to the cache. Always return True.
    pub(super) fn see(&self, variable: &'a str) -> bool {
        self.seen.borrow_mut().insert(variable);
        true
    }

    /// Return True if a path under `state` exists or effects can create it.
    pub(super) fn has(&self, path: &[Step<'_>]) -> bool {
        self.initial(path).is_some() || self.is_below_created(path) || self.may_grow(path)
    }

    /// Return the value at a path in the initial state.
    pub(super) fn literal(&self, path: &[Step<'_>]) -> Option<Node<'a>> {
        path.iter().skip(1).try_fold(self.state, child)
    }

    /// Return the initial value of a path. The first element of an array represents all elements.
    pub(super) fn initial(&self, path: &[Step<'_>]) -> Option<Node<'a>> {
        path.iter().skip(1).try_fold(self.state, |value, step| match value {
            Node::Array(items) => {
                let index = position(step)?;
                items.get(index.min(items.len().checked_sub(1)?)).copied()
            }
            value => child(value, step),
        })
    }

    /// Return True if the scenario has bounds.
    pub(super) fn has_bounds(&self) -> bool {
        !self.spec.bounds.is_empty()
    }

    /// Return True if a literal can be stored at a path: a number at a bounded one, nothing around one.
    pub(super) fn can_store(&self, path: &[Step<'_>], value: &Node<'_>) -> bool {
        let mut bounded = self.spec.bounds.iter().filter_map(|bound| state_path(bound.path));
        bounded.all(|bounded| match bounded.strip_prefix(path) {
            Some([]) => matches!(value, Node::Number(_)),
            Some(_) => false,
            None => true,
        })
    }

    /// Return True if an effect can replace the value at the path or at one of its parents.
    pub(super) fn is_written(&self, path: &[Step<'_>]) -> bool {
        self.is_below_created(path)
            || self
                .created_paths()
                .iter()
                .any(|created| created.len() > path.len() && created.starts_with(path))
    }

    /// Return True if the path leads through an array element that may not exist initially.
    fn may_grow(&self, path: &[Step<'_>]) -> bool {
        let mut value = Some(self.state);
        path.iter().skip(1).any(|step| {
            let grows = matches!(value, Some(Node::Array(_))) && position(step).is_some();
            value = value.and_then(|value| child(value, step));
            grows
        })
    }

    fn is_below_created(&self, path: &[Step<'_>]) -> bool {
        (1..=path.len()).any(|end| path.get(..end).is_some_and(|start| self.created_paths().contains(start)))
    }

    fn created_paths(&self) -> &HashSet<Path<'a>> {
        self.created.get_or_init(|| {
            let mut created = HashSet::new();
            for rule in self.spec.actions.iter().chain(&self.spec.events) {
                rule.effects.iter().for_each(|effect| record_created(effect, &mut created));
            }
            created.extend(self.spec.deals.iter().filter_map(|deal| state_path(deal.path)));
            created
        })
    }
}

fn record_created<'a>(effect: &Effect<'a>, created: &mut HashSet<Path<'a>>) {
    match effect {
        Effect::Schedule { effects, .. } => effects.iter().for_each(|effect| record_created(effect, created)),
        Effect::Write { operation: operation @ (Operation::Set | Operation::Patch), path, value } => {
            // A malformed path is a finding anyway.
            let mut steps = Vec::new();
            if path_steps(path, &mut steps).is_none() {
                return;
            }
            match (operation, value) {
                (Operation::Patch, Some(Node::Object(members))) => {
                    created.extend(members.iter().map(|(key, _)| {
                        let last = Step::Name((*key).into());
                        steps.iter().cloned().chain([last]).collect()
                    }));
                }
                _ => drop(created.insert(steps)),
            }
        }
        Effect::Write { .. } | Effect::AddLog => {}
    }
}

/// Return the steps of a path into the state if a document can have each key and index.
pub(super) fn state_path(text: &str) -> Option<Path<'_>> {
    let mut path = Vec::with_capacity(USUAL_STEPS);
    path_steps(text, &mut path)?;
    let is_short = text.len() <= MAX_PATH_CHARACTERS || text.chars().nth(MAX_PATH_CHARACTERS).is_none();
    let is_harmless = |step: &Step<'_>| match step {
        Step::Name(name) => name.len() <= MAX_KEY_BYTES && !FORBIDDEN_KEYS.contains(&&**name),
        Step::Index(_) => true,
    };
    let starts = path.first().is_some_and(|root| matches!(root, Step::Name(name) if name == "state"));
    (is_short && starts && path.iter().all(is_harmless)).then_some(path)
}

fn child<'a>(value: Node<'a>, step: &Step<'_>) -> Option<Node<'a>> {
    match (value, step) {
        (Node::Object(members), Step::Name(name)) => Members::<Node<'a>>(members).get(name).copied(),
        (Node::Array(items), Step::Index(index)) => items.get(usize::try_from(*index).ok()?).copied(),
        _ => None,
    }
}

/// Return the index that a step is or spells.
fn position(step: &Step<'_>) -> Option<usize> {
    match step {
        Step::Index(index) => Some(usize::try_from(*index).unwrap_or(usize::MAX)),
        Step::Name(name) => {
            let spelled = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
            spelled.then(|| name.parse().unwrap_or(usize::MAX))
        }
    }
}

/// Return True if an object has a key.
pub(super) fn has_key(members: &[Member<'_>], key: &str) -> bool {
    Members::<Node<'_>>(members).get(key).is_some()
}
