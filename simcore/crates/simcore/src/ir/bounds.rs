//! Bounds of numbers: one bound for all numbers of a state, propagated from turn to turn.
//!
//! If the bound stays finite, the vectorised executor skips its checks for infinite numbers.

#![expect(
    clippy::cast_precision_loss,
    reason = "a bound need not be exact, and none of these counts is large"
)]

use super::types::{Condition, Consequence, Fold, Mutation, Operation, Scalar, Source, Stage, Write};
use super::{Action, Plan};

/// Low enough that rounding cannot produce infinity.
const SAFE: f64 = 1e300;

/// With more events in any order, or more turns, the analysis costs more than it saves.
const MOST_IN_ANY_ORDER: usize = 16;
const MOST_TURNS: u64 = 10_000;

/// Return True if a number may become infinite within `turns` turns.
pub(super) fn may_overflow(plan: &Plan, turns: u64) -> bool {
    let lasting = plan.events.iter().filter(|event| event.turns > 1).count();
    if turns > MOST_TURNS || plan.sites.len().max(lasting) > MOST_IN_ANY_ORDER {
        return true;
    }
    let bounds = Bounds { elements: plan.most_elements as f64 };
    let last_turn = plan.start.turn + turns;
    let mut most = initial(plan).max(last_turn as f64 + 1.0);
    for _ in 0..turns {
        let next = bounds.turn(plan, most);
        if next.is_nan() || next >= SAFE {
            return true;
        }
        if next <= most {
            break;
        }
        most = next;
    }
    !bounds.conditions(plan, most)
}

fn initial(plan: &Plan) -> f64 {
    let slots = plan.layout.slots.iter().map(|slot| slot.initial);
    let lists = plan.layout.lists.iter().flat_map(|list| list.initial.iter().copied());
    let params = plan.actions.iter().flat_map(|action| &action.params).map(|param| param.domain.bound());
    let deals = plan.start.deals.iter().flat_map(|deal| deal.values.iter().copied());
    slots.chain(lists).chain(params).chain(deals).fold(1.0, |most: f64, number| most.max(number.abs()))
}

impl super::Domain {
    fn bound(&self) -> f64 {
        match self {
            Self::Options(options) => options.iter().fold(0.0, |most: f64, option| most.max(option.abs())),
            Self::Only(value) => value.abs(),
            Self::Integers { low, count } => low.abs() + *count as f64,
            Self::Numbers { low, high } => low.abs().max(high.abs()) * 2.0,
        }
    }
}

struct Bounds {
    /// Maximum elements of an array.
    elements: f64,
}

impl Bounds {
    /// Return the bound after a turn. All mutations that can occur together are assumed to occur.
    fn turn(&self, plan: &Plan, most: f64) -> f64 {
        let mut now = in_any_order(&plan.sites, most, |site, now| {
            let frozen =
                site.frozen.iter().fold(now, |now, (_, value)| now.max(self.scalar(value, now, now)));
            self.mutations(&site.mutations, frozen)
        });
        let rules = plan.actions.iter().flat_map(Action::consequences);
        let acted = rules.map(|consequence| self.consequence(consequence, now));
        now = acted.fold(now, f64::max);
        let happened = plan.events.iter().map(|event| self.consequence(&event.consequence, now));
        now = happened.fold(now, f64::max);
        let lasting: Vec<_> = plan.events.iter().filter(|event| event.turns > 1).collect();
        now = in_any_order(&lasting, now, |event, now| self.consequence(&event.consequence, now));
        if let Some(decay) = &plan.masked_decay {
            now = self.consequence(decay, now);
        }
        now + plan.decay.iter().fold(0.0, |most: f64, (_, amount)| most.max(amount.abs()))
    }

    fn consequence(&self, consequence: &Consequence, most: f64) -> f64 {
        let derived = consequence.derives.iter();
        let most = derived.fold(most, |most, (_, value)| most.max(self.scalar(value, most, most)));
        self.mutations(&consequence.mutations, most)
    }

    fn mutations(&self, mutations: &[Mutation], most: f64) -> f64 {
        mutations.iter().fold(most, |most, mutation| match mutation {
            Mutation::Write { write, value, .. } | Mutation::WriteItem { write, value, .. } => {
                let value = self.scalar(value, most, most);
                match write {
                    Write::Set => most.max(value),
                    Write::Add | Write::Subtract => most + value,
                    Write::Multiply => most.max(most * value),
                }
            }
            Mutation::Push { value, .. } => most.max(self.scalar(value, most, most)),
            Mutation::Assign { items, .. } => items.iter().fold(most, |most, item| most.max(item.abs())),
            Mutation::Pop { .. } | Mutation::Schedule { .. } => most,
        })
    }

    /// Return a bound of a value, given a bound of the state and a bound of the current element.
    fn scalar(&self, scalar: &Scalar, most: f64, element: f64) -> f64 {
        let bound = |scalar: &Scalar| self.scalar(scalar, most, element);
        match scalar {
            Scalar::Constant(number) => number.abs(),
            Scalar::Column(_) => most,
            Scalar::Element => element,
            Scalar::Truth(condition) => {
                if self.condition(condition, most, element) {
                    1.0
                } else {
                    f64::INFINITY
                }
            }
            Scalar::Negative(value) => bound(value),
            Scalar::Choice { condition, then, otherwise } => {
                if self.condition(condition, most, element) {
                    bound(then).max(bound(otherwise))
                } else {
                    f64::INFINITY
                }
            }
            Scalar::Calculation { operation, first, rest } => {
                let first = bound(first);
                match operation {
                    Operation::Add | Operation::Subtract => {
                        rest.iter().fold(first, |sum, value| sum + bound(value))
                    }
                    Operation::Multiply => {
                        rest.iter().fold(first, |product, value| product * bound(value).max(1.0))
                    }
                    Operation::Divide => rest.iter().fold(first, |quotient, value| match value {
                        Scalar::Constant(number) if *number != 0.0 => quotient / number.abs().min(1.0),
                        _ => f64::INFINITY,
                    }),
                    // The result of a remainder is not larger than its dividend, but the operands need bounds
                    // too.
                    Operation::Remainder | Operation::Least | Operation::Greatest => {
                        rest.iter().fold(first, |most, value| most.max(bound(value)))
                    }
                }
            }
            Scalar::Accumulator | Scalar::Interpreted(_) => f64::INFINITY,
            Scalar::Fold(fold) => self.fold(fold, most),
        }
    }

    /// Only sums have a bound here.
    fn fold(&self, fold: &Fold, most: f64) -> f64 {
        let element = self.source(&fold.source, most);
        let Scalar::Calculation { operation: Operation::Add, first, rest } = &fold.body else {
            return f64::INFINITY;
        };
        let added = std::iter::once(&**first).chain(rest);
        let (accumulators, others): (Vec<_>, Vec<_>) =
            added.partition(|value| matches!(value, Scalar::Accumulator));
        if accumulators.len() != 1 {
            return f64::INFINITY;
        }
        let each: f64 = others.iter().map(|value| self.scalar(value, most, element)).sum();
        self.scalar(&fold.start, most, most) + self.elements * each
    }

    /// Return a bound of the elements of an iteration.
    fn source(&self, source: &Source, most: f64) -> f64 {
        source.stages.iter().fold(most, |element, stage| match stage {
            Stage::Filter(condition) if self.condition(condition, most, element) => element,
            Stage::Filter(_) => f64::INFINITY,
            Stage::Map(value) => self.scalar(value, most, element),
        })
    }

    fn conditions(&self, plan: &Plan, most: f64) -> bool {
        let legal = plan.actions.iter().map(|action| &action.legal);
        let when = plan.events.iter().map(|event| &event.when);
        let mut all = legal.chain(when).chain(&plan.losses).chain(&plan.wins);
        let is_safe = |condition: &Condition| self.condition(condition, most, most);
        let mut distances = plan.distances.iter();
        all.all(is_safe) && distances.all(|distances| distances.all(&is_safe))
    }

    /// Return True if all numbers in a condition are safe.
    fn condition(&self, condition: &Condition, most: f64, element: f64) -> bool {
        let safe = |scalar: &Scalar| self.scalar(scalar, most, element) < SAFE;
        match condition {
            Condition::Constant(_) | Condition::NotEmpty(_) | Condition::Interpreted(_) => true,
            Condition::True(value) | Condition::Contains { needle: value, .. } => safe(value),
            Condition::Compare(_, a, b) => safe(a) && safe(b),
            Condition::All(items) | Condition::Any(items) => {
                items.iter().all(|item| self.condition(item, most, element))
            }
            Condition::Not(item) => self.condition(item, most, element),
            Condition::Some { source, condition } | Condition::Every { source, condition } => {
                let element = self.source(source, most);
                element < SAFE && self.condition(condition, most, element)
            }
        }
    }
}

/// Return a bound after each thing has occurred once, in any order.
///
/// A list of n repetitions contains each order of n things, and no step lowers the bound.
fn in_any_order<T>(things: &[T], most: f64, after: impl Fn(&T, f64) -> f64) -> f64 {
    things.iter().fold(most, |now, _| things.iter().fold(now, |now, thing| after(thing, now)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::examples::{plan_of, program};
    use crate::state::State;

    fn may_overflow(derives: &str, effects: &str, turns: u64) -> bool {
        let actions = format!(
            r#"[{{"id": "x", "params": {{}}, "preconditions": {{}}, "derives": {derives}, "effects": {effects}}}]"#
        );
        let plan = plan_of(&program(r#"{"n": 1}"#, &[("actions", &actions)])).unwrap();
        super::may_overflow(&plan, turns)
    }

    #[test]
    fn sums_stay_finite() {
        let add = r#"[{"op": "inc", "path": "state.n", "value": 1e100}]"#;
        assert!(!may_overflow("{}", add, 1_000));
    }

    #[test]
    fn products_overflow_soon() {
        let double = r#"[{"op": "mul", "path": "state.n", "value": 2}]"#;
        assert!(!may_overflow("{}", double, 900));
        assert!(may_overflow("{}", double, 1_100));
    }

    #[test]
    fn an_unused_derived_value_counts() {
        let square = r#"{"d": {"*": [1e160, {"var": "state.n"}, 1e160]}}"#;
        assert!(may_overflow(square, "[]", 1));
        assert!(!may_overflow(r#"{"d": {"*": [1e160, {"var": "state.n"}]}}"#, "[]", 1));
    }

    #[test]
    fn the_bound_of_the_turn_starts_at_the_initial_turn() {
        let turns = [r#"{"var": "turn"}"#; 33].join(",");
        let losses = format!(r#"[{{"id": "x", "when": {{">": [{{"*": [{turns}]}}, 0]}}}}]"#);
        let program = program(r#"{"n": 1}"#, &[("loss_conditions", &losses)]);
        for (turn, may) in [(0, false), (1 << 31, true)] {
            let plan = Plan::new(&program, &State { turn, ..program.new_state(0) }).unwrap();
            assert_eq!(super::may_overflow(&plan, 1), may, "{turn}");
        }
    }

    #[test]
    fn a_quotient_has_no_bound() {
        assert!(may_overflow(r#"{"d": {"/": [1, {"var": "state.n"}]}}"#, "[]", 1));
        assert!(!may_overflow(r#"{"d": {"/": [1, 4]}}"#, "[]", 1));
    }

    #[test]
    fn the_bound_covers_every_order_of_mutations() {
        let things = [(100.0, 1.0), (1.0, 100.0)]; // multiplied first, added later
        let bound = in_any_order(&things, 1.0, |(factor, amount), now| now * factor + (amount - 1.0));
        assert!(bound >= (1.0 + 99.0) * 100.0);
    }
}
