//! Evaluation in a single lane, for expressions over arrays, whose length differs between lanes.

use crate::ir::Plan;
use crate::ir::fallback::Run;
use crate::ir::types::{Condition, Fold, Operation, Relation, Scalar, Source, Stage};

use super::registers::Registers;

/// The context of an evaluation in one lane.
#[derive(Clone, Copy)]
pub(super) struct SingleRun<'a> {
    pub(super) plan: &'a Plan,
    pub(super) registers: &'a Registers,
    pub(super) lane: usize,
    pub(super) element: f64,
    pub(super) accumulator: f64,
}

impl Run for SingleRun<'_> {
    fn number(&self, column: usize) -> f64 {
        self.registers.number(column, self.lane)
    }

    fn elements(&self, list: usize) -> impl Iterator<Item = f64> {
        self.registers.list(list).elements(self.lane)
    }
}

/// The end of an iteration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    Early,
    AtTheEnd,
}

impl<'a> SingleRun<'a> {
    pub(super) fn new(plan: &'a Plan, registers: &'a Registers, lane: usize) -> Self {
        Self { plan, registers, lane, element: 0.0, accumulator: 0.0 }
    }

    /// Return a value, or `None` if the run is exceptional.
    pub(super) fn value(&self, scalar: &Scalar) -> Option<f64> {
        match scalar {
            Scalar::Constant(number) => Some(*number),
            Scalar::Column(column) => Some(self.registers.number(*column, self.lane)),
            Scalar::Element => Some(self.element),
            Scalar::Accumulator => Some(self.accumulator),
            Scalar::Calculation { operation, first, rest } => self.calculation(*operation, first, rest),
            Scalar::Negative(value) => Some(0.0 - self.value(value)?),
            Scalar::Choice { condition, then, otherwise } => {
                self.value(if self.holds(condition)? { then } else { otherwise })
            }
            Scalar::Truth(condition) => Some(f64::from(u8::from(self.holds(condition)?))),
            Scalar::Fold(fold) => self.fold(fold),
            Scalar::Interpreted(interpreted) => interpreted.number(&self.plan.layout, self),
        }
    }

    fn calculation(&self, operation: Operation, first: &Scalar, rest: &[Scalar]) -> Option<f64> {
        let mut total = self.value(first)?;
        for value in rest {
            let value = self.value(value)?;
            total = match operation {
                Operation::Add => total + value,
                Operation::Subtract => total - value,
                Operation::Multiply => total * value,
                Operation::Divide => quotient(total, value, |a, b| a / b)?,
                Operation::Remainder => quotient(total, value, |a, b| a % b)?,
                Operation::Least => {
                    if value < total {
                        value
                    } else {
                        total
                    }
                }
                Operation::Greatest => {
                    if value > total {
                        value
                    } else {
                        total
                    }
                }
            };
        }
        finite(total)
    }

    /// Return the truth of a condition, or `None` if the run is exceptional.
    pub(super) fn holds(&self, condition: &Condition) -> Option<bool> {
        Some(match condition {
            Condition::Constant(holds) => *holds,
            Condition::True(value) => self.value(value)? != 0.0,
            Condition::Compare(relation, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                match relation {
                    Relation::Equal => a == b,
                    Relation::Unequal => a != b,
                    Relation::Less => a < b,
                    Relation::AtMost => a <= b,
                }
            }
            Condition::All(items) => {
                for item in items {
                    if !self.holds(item)? {
                        return Some(false);
                    }
                }
                true
            }
            Condition::Any(items) => {
                for item in items {
                    if self.holds(item)? {
                        return Some(true);
                    }
                }
                false
            }
            Condition::Not(item) => !self.holds(item)?,
            Condition::Interpreted(interpreted) => interpreted.holds(&self.plan.layout, self)?,
            Condition::NotEmpty(list) => self.registers.list(*list).len(self.lane) > 0,
            Condition::Contains { list, needle } => {
                let needle = self.value(needle)?;
                self.registers.list(*list).elements(self.lane).any(|element| element == needle)
            }
            Condition::Some { source, condition } => {
                self.each(source, |run| run.holds(condition).map(|holds| !holds))? == Stopped::Early
            }
            Condition::Every { source, condition } => {
                let mut seen = false;
                let stopped = self.each(source, |run| {
                    seen = true;
                    run.holds(condition)
                })?;
                seen && stopped == Stopped::AtTheEnd
            }
        })
    }

    fn fold(&self, fold: &Fold) -> Option<f64> {
        let mut total = self.value(&fold.start)?;
        self.each(&fold.source, |run| {
            total = Self { accumulator: total, ..*run }.value(&fold.body)?;
            Some(true)
        })?;
        Some(total)
    }

    /// Visit each element until the visitor returns False.
    ///
    /// The interpreter completes one stage for all elements before the next. Here each element passes through
    /// all stages. The results are equal, except that an early stop would skip failures in later elements.
    /// Therefore all stages run to the end.
    fn each(&self, source: &Source, mut visit: impl FnMut(&Self) -> Option<bool>) -> Option<Stopped> {
        let mut stopped = Stopped::AtTheEnd;
        for element in self.registers.list(source.list).elements(self.lane) {
            let mut run = Self { element, ..*self };
            if run.pass(&source.stages)? && stopped == Stopped::AtTheEnd && !visit(&run)? {
                stopped = Stopped::Early;
            }
            if stopped == Stopped::Early && source.stages.is_empty() {
                break;
            }
        }
        Some(stopped)
    }

    /// Pass an element through the stages. Return True if it remains.
    fn pass(&mut self, stages: &[Stage]) -> Option<bool> {
        for stage in stages {
            match stage {
                Stage::Filter(condition) => {
                    if !self.holds(condition)? {
                        return Some(false);
                    }
                }
                Stage::Map(value) => self.element = self.value(value)?,
            }
        }
        Some(true)
    }
}

fn quotient(a: f64, b: f64, divide: impl Fn(f64, f64) -> f64) -> Option<f64> {
    if b == 0.0 { None } else { finite(divide(a, b)) }
}

/// Return a number that may enter a state: finite, and 0 for −0.
pub(super) fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number + 0.0)
}
