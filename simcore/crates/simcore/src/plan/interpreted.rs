//! Expressions that are left to the interpreter, one run at a time: whatever of JSONLogic is not lowered.

use std::sync::Arc;

use crate::logic::{Data, Rule, truthy};
use crate::paths::{Segment, split_variable};
use crate::value::{Value, count};

use super::expressions::{Names, Scope};
use super::ir::Kind;
use super::layout::{Layout, Place};

/// An interpreted expression may not take more steps than this; one that does is not for this executor. So many of
/// them can add up to that the budget of a turn is kept.
pub(super) const MOST_STEPS: u64 = 400;

/// An expression, and what of a run it reads.
#[derive(Debug)]
pub(crate) struct Interpreted {
    rule: Rule,
    state: View,
    params: Vec<(Arc<str>, usize, Kind)>,
    derives: Vec<(Arc<str>, usize, Kind)>,
    turn: usize,
    entities: Value,
    /// What its value is expected to be; as a condition it may be anything.
    kind: Option<Kind>,
}

/// The part of a state that an expression reads.
#[derive(Clone, Debug)]
enum View {
    Slot(usize),
    List(usize),
    Object(Vec<(Arc<str>, View)>),
}

/// The numbers of a run.
pub(crate) trait Run {
    fn number(&self, column: usize) -> f64;
    fn elements(&self, list: usize) -> impl Iterator<Item = f64>;
}

impl Interpreted {
    pub(super) fn new(logic: &Value, scope: &Scope<'_>, kind: Option<Kind>) -> Self {
        let mut state = View::Object(Vec::new());
        read_by(logic, scope.layout, &mut state);
        let names = |names: &Names| {
            names.iter().map(|(name, (column, kind))| (Arc::clone(name), *column, *kind)).collect()
        };
        Self {
            rule: Rule::new(logic),
            state,
            params: names(scope.params),
            derives: names(scope.derives),
            turn: scope.turn,
            entities: scope.entities.clone(),
            kind,
        }
    }

    /// Whether it holds in a run; `None` when that is not for this executor to say.
    pub(crate) fn holds(&self, layout: &Layout, run: &impl Run) -> Option<bool> {
        self.evaluate(layout, run).map(|value| truthy(&value))
    }

    /// Its value as a number; `None` when there is none, or it is not of the expected kind.
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
                let kind = layout.lists.get(*list).and_then(|list| list.kind).unwrap_or(Kind::Number);
                run.elements(*list).map(|item| layout.value(kind, item)).collect()
            }
            Self::Object(members) => {
                members.iter().map(|(name, view)| (Arc::clone(name), view.value(layout, run))).collect()
            }
        }
    }

    /// Add what is at a path below a place.
    fn include(&mut self, place: &Place, path: &[Segment]) {
        let (Place::Object(members), [first, rest @ ..]) = (place, path) else {
            *self = Self::of(place);
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

    /// All that is at a place.
    fn of(place: &Place) -> Self {
        match place {
            Place::Slot(slot) => Self::Slot(*slot),
            Place::List(list) => Self::List(*list),
            Place::Object(members) => {
                let members = members.iter().map(|(name, place)| (Arc::clone(name), Self::of(place)));
                Self::Object(members.collect())
            }
        }
    }
}

/// Find what an expression may read: every text in it may be a path.
fn read_by(logic: &Value, layout: &Layout, state: &mut View) {
    match logic {
        Value::Text(text) => {
            if let [Segment::Key(root), below @ ..] = split_variable(text).as_slice()
                && &**root == "state"
            {
                state.include(layout.root(), below);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| read_by(item, layout, state)),
        Value::Object(members) => {
            for (name, operand) in members.iter() {
                if matches!(&**name, "var" | "missing" | "missing_some") && computes(operand) {
                    // A path that is put together may be any.
                    *state = View::of(layout.root());
                    return;
                }
                read_by(operand, layout, state);
            }
        }
        _ => {}
    }
}

/// Whether there is an operation in a value.
fn computes(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(computes),
        Value::Object(_) => true,
        _ => false,
    }
}
