//! Fallback expressions: JSONLogic that is not lowered, and is interpreted for one run at a time.

use std::sync::Arc;

use crate::jsonlogic::{Data, Rule, truthy};
use crate::paths::{Segment, split_variable};
use crate::value::{Value, count};

use super::expressions::{Names, Scope};
use super::layout::{Layout, List, Place};
use super::types::Kind;

/// Maximum steps of a fallback expression. Longer ones make the run exceptional. With this limit, all of them
/// together stay within the budget of a turn.
pub(super) const MOST_STEPS: u64 = 400;

/// Maximum places of the state that a fallback expression reads. Each is materialised for each run.
const MOST_READ: usize = 256;

/// Operators whose second argument is evaluated for each element of the first.
const ITERATORS: [&str; 6] = ["map", "filter", "reduce", "all", "some", "none"];

/// An expression, and the part of a run that it reads.
#[derive(Debug)]
pub(crate) struct Interpreted {
    rule: Rule,
    state: View,
    params: Vec<(Arc<str>, usize, Kind)>,
    derives: Vec<(Arc<str>, usize, Kind)>,
    turn: usize,
    entities: Value,
    /// The expected kind of its value. A condition has none.
    kind: Option<Kind>,
}

/// The part of a state that an expression reads.
#[derive(Clone, Debug)]
enum View {
    Slot(usize),
    List(usize),
    Object(Vec<(Arc<str>, View)>),
}

/// Access to the numbers of a run.
pub(crate) trait Run {
    fn number(&self, column: usize) -> f64;
    fn elements(&self, list: usize) -> impl Iterator<Item = f64>;
}

impl Interpreted {
    /// Create a fallback, unless it reads so much that vectorisation has no benefit.
    pub(super) fn new(logic: &Value, scope: &Scope<'_>, kind: Option<Kind>) -> Option<Self> {
        let mut state = View::Object(Vec::new());
        collect_reads(logic, scope.layout, &mut state);
        (state.size() <= MOST_READ).then_some(())?;
        let names = |names: &Names| {
            names.iter().map(|(name, (column, kind))| (Arc::clone(name), *column, *kind)).collect()
        };
        Some(Self {
            rule: Rule::new(logic),
            state,
            params: names(scope.params),
            derives: names(scope.derives),
            turn: scope.turn,
            entities: scope.entities.clone(),
            kind,
        })
    }

    /// Return True if it holds in a run, or `None` if the run is exceptional.
    pub(crate) fn holds(&self, layout: &Layout, run: &impl Run) -> Option<bool> {
        self.evaluate(layout, run).map(|value| truthy(&value))
    }

    /// Return its value as a number, or `None` if it fails or has another kind.
    pub(crate) fn number(&self, layout: &Layout, run: &impl Run) -> Option<f64> {
        let (kind, number) = layout.scalar(&self.evaluate(layout, run)?)?;
        (Some(kind) == self.kind).then_some(number)
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of turns")]
    fn evaluate(&self, layout: &Layout, run: &impl Run) -> Option<Value> {
        let named = |names: &[(Arc<str>, usize, Kind)]| -> Value {
            names
                .iter()
                .map(|(name, column, kind)| (Arc::clone(name), layout.value(*kind, run.number(*column))))
                .collect()
        };
        let mut steps = 0;
        let value = self.rule.evaluate_metered(
            Data::Members(&[
                ("state", &self.state.value(layout, run)),
                ("params", &named(&self.params)),
                ("derives", &named(&self.derives)),
                ("turn", &count(run.number(self.turn) as u64)),
                ("entities", &self.entities),
            ]),
            &mut steps,
        );
        if steps > MOST_STEPS { None } else { value.ok() }
    }
}

impl View {
    fn value(&self, layout: &Layout, run: &impl Run) -> Value {
        match self {
            Self::Slot(slot) => {
                let kind = layout.slots.get(*slot).map_or(Kind::Number, |slot| slot.kind);
                layout.value(kind, run.number(*slot))
            }
            Self::List(list) => {
                let kind = layout.lists.get(*list).map_or(Kind::Number, List::element);
                run.elements(*list).map(|item| layout.value(kind, item)).collect()
            }
            Self::Object(members) => {
                members.iter().map(|(name, view)| (Arc::clone(name), view.value(layout, run))).collect()
            }
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Slot(_) | Self::List(_) => 1,
            Self::Object(members) => 1 + members.iter().map(|(_, view)| view.size()).sum::<usize>(),
        }
    }

    /// Add the values at a path below a place.
    fn include(&mut self, place: &Place, path: &[Segment]) {
        let (Place::Object(members), [first, rest @ ..]) = (place, path) else {
            *self = Self::from_place(place);
            return;
        };
        let (Self::Object(seen), Segment::Key(name) | Segment::Digits(name, _)) = (self, first) else {
            return;
        };
        let Some(place) = members.get(name) else { return };
        if let Some((_, view)) = seen.iter_mut().find(|(known, _)| known == name) {
            view.include(place, rest);
        } else {
            let mut view = Self::Object(Vec::new());
            view.include(place, rest);
            seen.push((Arc::clone(name), view));
        }
    }

    /// Create a view of all values at a place.
    fn from_place(place: &Place) -> Self {
        match place {
            Place::Slot(slot) => Self::Slot(*slot),
            Place::List(list) => Self::List(*list),
            Place::Object(members) => {
                let members = members.iter().map(|(name, place)| (Arc::clone(name), Self::from_place(place)));
                Self::Object(members.collect())
            }
        }
    }
}

/// Collect the paths that an expression may read. Every text in it may be a path.
fn collect_reads(logic: &Value, layout: &Layout, state: &mut View) {
    match logic {
        Value::Text(text) => {
            if let [Segment::Key(root), below @ ..] = split_variable(text).as_slice()
                && &**root == "state"
            {
                state.include(layout.root(), below);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_reads(item, layout, state)),
        Value::Object(members) => {
            for (name, operand) in members.iter() {
                if reads_anything(name, operand) {
                    *state = View::from_place(layout.root());
                    return;
                }
                outer_arguments(name, operand).for_each(|part| collect_reads(part, layout, state));
            }
        }
        _ => {}
    }
}

/// Return the arguments of an operation without the body of an iterator, which reads elements.
fn outer_arguments<'a>(name: &str, operand: &'a Value) -> impl Iterator<Item = &'a Value> {
    let iterates = ITERATORS.contains(&name);
    let arguments = match operand {
        Value::Array(items) => items.as_slice(),
        single => std::slice::from_ref(single),
    };
    arguments.iter().enumerate().filter(move |(index, _)| !iterates || *index != 1).map(|(_, part)| part)
}

/// Return True if an operation may read any path: a computed path can be any, and an empty one is the whole
/// state.
fn reads_anything(name: &str, operand: &Value) -> bool {
    let path = match operand {
        Value::Array(items) => items.first().unwrap_or(&Value::Null),
        single => single,
    };
    let is_nowhere = matches!(path, Value::Null) || path.as_text() == Some("");
    match name {
        "var" => is_nowhere || has_operation(operand),
        "missing" | "missing_some" => has_operation(operand),
        _ => false,
    }
}

/// Return True if an expression may read below a root, such as `params`.
pub(super) fn may_read(logic: &Value, root: &str) -> bool {
    match logic {
        Value::Text(text) => text.starts_with(root),
        Value::Array(items) => items.iter().any(|item| may_read(item, root)),
        Value::Object(members) => members.iter().any(|(name, operand)| {
            reads_anything(name, operand) || outer_arguments(name, operand).any(|part| may_read(part, root))
        }),
        _ => false,
    }
}

/// Return True if a value contains an operation.
fn has_operation(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_operation),
        Value::Object(_) => true,
        _ => false,
    }
}
