//! Abstract evaluation of expressions over a set of states: possible values, and the states for which a
//! condition holds.

use crate::ir::types::{Condition, Fold, Operation, Scalar, Source, Stage};

use super::interval::{Interval, Order};
use super::states::{List, States};
use super::texts::Texts;
use super::{Known, Unknown};

/// Elements that are processed one by one, as in the reference.
const FEW: usize = 64;

/// Evaluates expressions over sets of states.
#[derive(Debug)]
pub(super) struct AbstractEvaluator {
    pub(super) texts: Texts,
}

impl AbstractEvaluator {
    /// Return the possible values of an expression.
    pub(super) fn value(&self, scalar: &Scalar, states: &States) -> Known<Interval> {
        match scalar {
            Scalar::Constant(number) => Ok(Interval::exact(*number)),
            Scalar::Column(column) => Ok(states.column(*column)),
            Scalar::Calculation { operation, first, rest } => {
                let first = self.value(first, states)?;
                rest.iter()
                    .try_fold(first, |first, next| calculate(*operation, first, self.value(next, states)?))
            }
            Scalar::Negative(operand) => Interval::exact(0.0).difference(self.value(operand, states)?),
            Scalar::Choice { condition, then, otherwise } => self.choice(condition, then, otherwise, states),
            Scalar::Truth(condition) => {
                let may_hold = self.assume(condition, true, &mut states.clone())?;
                Ok(Interval::truth(may_hold, self.assume(condition, false, &mut states.clone())?))
            }
            Scalar::Element => Ok(states.element),
            Scalar::Accumulator => Ok(states.accumulator),
            Scalar::Fold(fold) => self.fold(fold, states),
            Scalar::Interpreted(_) => Err(Unknown),
        }
    }

    fn choice(
        &self,
        condition: &Condition,
        then: &Scalar,
        otherwise: &Scalar,
        states: &States,
    ) -> Known<Interval> {
        if let Condition::True(tested) = condition
            && !matches!(tested, Scalar::Column(_) | Scalar::Truth(_))
        {
            return Err(Unknown); // the reference knows more of such a value than that it is not 0
        }
        let mut holding = states.clone();
        let then = if self.assume(condition, true, &mut holding)? {
            Some(self.value(then, &holding)?)
        } else {
            None
        };
        let mut rest = states.clone();
        let otherwise = if self.assume(condition, false, &mut rest)? {
            Some(self.value(otherwise, &rest)?)
        } else {
            None
        };
        self.texts.join_options(then, otherwise)?.ok_or(Unknown)
    }

    fn fold(&self, fold: &Fold, states: &States) -> Known<Interval> {
        if let Some(list) = counted_list(fold) {
            return Ok(states.list(list).length());
        }
        let source = self.elements(&fold.source, states)?;
        let mut total = self.value(&fold.start, states)?;
        let mut result = (source.least == 0).then_some(total);
        let Some(element) = source.element else { return result.ok_or(Unknown) };
        let mut inside = states.clone();
        for done in 1..=source.most {
            (inside.element, inside.accumulator) = (element, total);
            let next = self.value(&fold.body, &inside)?;
            if done >= source.least || next == total {
                result = self.texts.join_options(result, Some(next))?;
            }
            if next == total {
                break;
            }
            if done > FEW {
                return Err(Unknown);
            }
            total = next;
        }
        result.ok_or(Unknown)
    }

    /// Return the elements of an iteration.
    fn elements(&self, source: &Source, states: &States) -> Known<List> {
        let mut list = states.list(source.list);
        let mut inside = states.clone();
        for stage in &source.stages {
            let Some(element) = list.element.filter(|_| list.most > 0) else {
                return Ok(List { least: 0, most: 0, element: None });
            };
            inside.element = element;
            match stage {
                Stage::Map(body) => list.element = Some(self.value(body, &inside)?),
                Stage::Filter(condition) => {
                    if !self.assume(condition, true, &mut inside.clone())? {
                        return Ok(List { least: 0, most: 0, element: None });
                    }
                    if self.assume(condition, false, &mut inside.clone())? {
                        list.least = 0;
                    }
                }
            }
        }
        if list.most == 0 {
            list.element = None;
        }
        Ok(list)
    }

    /// Refine the states to those in which a condition may have the wanted truth. Return False if none
    /// exist.
    ///
    /// In that case the remaining content of the states is undefined.
    pub(super) fn assume(&self, condition: &Condition, wanted: bool, states: &mut States) -> Known<bool> {
        match condition {
            Condition::Constant(holds) => Ok(*holds == wanted),
            Condition::True(Scalar::Truth(condition)) => self.assume(condition, wanted, states),
            Condition::True(tested) => {
                let found = self.value(tested, states)?;
                let narrowed = if wanted { found.only_true() } else { found.only_false() };
                Ok(narrowed.is_some_and(|narrowed| narrow(tested, narrowed, states)))
            }
            Condition::Compare(relation, one, other) => {
                let order = Order::from_relation(*relation, wanted);
                let (own, others_value) = (self.value(one, states)?, self.value(other, states)?);
                Ok(self.texts.may_hold(order, own, others_value)?
                    && self.refine(one, order, others_value, states)?
                    && self.refine(other, order.flip(), own, states)?)
            }
            Condition::Not(condition) => self.assume(condition, !wanted, states),
            Condition::All(items) if wanted => self.each(items, true, states),
            Condition::Any(items) if !wanted => self.each(items, false, states),
            Condition::All(items) | Condition::Any(items) => self.some(items, wanted, states),
            Condition::NotEmpty(list) => {
                let mut found = states.list(*list);
                if wanted {
                    found.least = found.least.max(1);
                } else {
                    found.most = 0;
                    found.element = None;
                }
                states.put_list(*list, found);
                Ok(found.least <= found.most)
            }
            Condition::Contains { list, needle } => {
                let (found, needle) = (states.list(*list), self.value(needle, states)?);
                let Some(element) = found.element.filter(|_| found.most > 0) else { return Ok(!wanted) };
                if wanted {
                    return self.texts.may_hold(Order::Same, needle, element);
                }
                Ok(found.least == 0 || self.texts.may_hold(Order::Other, needle, element)?)
            }
            Condition::Some { source, condition } | Condition::Every { source, condition } => {
                let found = self.elements(source, states)?;
                let Some(element) = found.element else { return Ok(!wanted) };
                let mut inside = states.clone();
                inside.element = element;
                Ok((!wanted && found.least == 0) || self.assume(condition, wanted, &mut inside)?)
            }
            Condition::Interpreted(_) => Err(Unknown),
        }
    }

    /// Assume all of several conditions, or none of them.
    fn each(&self, items: &[Condition], wanted: bool, states: &mut States) -> Known<bool> {
        for item in items {
            if !self.assume(item, wanted, states)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Assume at least one of several conditions. The states are refined if only one is possible.
    fn some(&self, items: &[Condition], wanted: bool, states: &mut States) -> Known<bool> {
        if let [Condition::All(first), Condition::All(second)] = items
            && matches!((first.as_slice(), second.as_slice()), ([_, _], [Condition::Not(_), _]))
        {
            return Err(Unknown); // a choice, of which the reference knows that its branches exclude each other
        }
        let mut left = states.clone();
        let mut found = 0;
        let mut only = None;
        for item in items {
            let mut part = left.clone();
            if self.assume(item, wanted, &mut part)? {
                found += 1;
                only = Some(part);
            }
            if !self.assume(item, !wanted, &mut left)? {
                break;
            }
        }
        if let (1, Some(part)) = (found, only) {
            *states = part;
        }
        Ok(found > 0)
    }

    /// Refine the operand of a comparison. Return False if no value remains.
    fn refine(&self, scalar: &Scalar, order: Order, other: Interval, states: &mut States) -> Known<bool> {
        if let Scalar::Fold(fold) = scalar
            && let Some(list) = counted_list(fold)
        {
            let found = states.list(list);
            let Some(narrowed) = order.narrow(found.length(), other) else { return Ok(false) };
            states.put_list(list, found.of_length(narrowed));
            return Ok(true);
        }
        let place = match scalar {
            Scalar::Column(column) => states.columns.get_mut(*column),
            Scalar::Element => Some(&mut states.element),
            Scalar::Accumulator => Some(&mut states.accumulator),
            _ => None,
        };
        let Some(place) = place else { return Ok(true) };
        let narrowed = self.texts.narrow(order, *place, other)?;
        *place = narrowed.unwrap_or(*place);
        Ok(narrowed.is_some())
    }
}

/// Return the array whose elements a fold counts by adding ones.
fn counted_list(fold: &Fold) -> Option<usize> {
    let Scalar::Calculation { operation: Operation::Add, first, rest } = &fold.body else { return None };
    let adds_one = match (&**first, rest.as_slice()) {
        (Scalar::Accumulator, [Scalar::Constant(one)]) | (Scalar::Constant(one), [Scalar::Accumulator]) => {
            *one == 1.0
        }
        _ => false,
    };
    let from_nothing = matches!(fold.start, Scalar::Constant(start) if start == 0.0);
    (adds_one && from_nothing && fold.source.stages.is_empty()).then_some(fold.source.list)
}

fn calculate(operation: Operation, one: Interval, other: Interval) -> Known<Interval> {
    match operation {
        Operation::Add => one.sum(other),
        Operation::Subtract => one.difference(other),
        Operation::Multiply => one.product(other),
        Operation::Divide => one.quotient(other),
        Operation::Remainder => one.remainder(other),
        Operation::Least => Ok(one.least(other)),
        Operation::Greatest => Ok(one.greatest(other)),
    }
}

fn narrow(scalar: &Scalar, narrowed: Interval, states: &mut States) -> bool {
    match scalar {
        Scalar::Column(column) => states.put(*column, narrowed),
        Scalar::Element => states.element = narrowed,
        Scalar::Accumulator => states.accumulator = narrowed,
        _ => {}
    }
    true
}
