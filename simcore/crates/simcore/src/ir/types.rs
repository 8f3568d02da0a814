//! Types of the intermediate representation: every path is a number, and every type is known.
//!
//! All values are binary64. A boolean is 0 or 1. A text is its position among all texts of the scenario, in
//! the order of code points. So equality, order and truth ("" is 0) of texts are those of numbers.

use std::sync::Arc;

use crate::effects::Due;

use super::fallback::Interpreted;

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Number,
    Bool,
    Text,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Scalar {
    Constant(f64),
    /// A number that each run has: a slot of the state, a parameter, a derived value, the turn.
    Column(usize),
    /// A calculation from left to right.
    Calculation {
        operation: Operation,
        first: Box<Scalar>,
        rest: Vec<Scalar>,
    },
    Negative(Box<Scalar>),
    Choice {
        condition: Box<Condition>,
        then: Box<Scalar>,
        otherwise: Box<Scalar>,
    },
    Truth(Box<Condition>),
    /// The current element of an iteration.
    Element,
    /// The current result of a fold.
    Accumulator,
    Fold(Box<Fold>),
    /// A value that the interpreter computes.
    Interpreted(Arc<Interpreted>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Least,
    Greatest,
}

/// A value that is reduced from the elements of an array.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub(crate) source: Source,
    pub(crate) start: Scalar,
    pub(crate) body: Scalar,
}

/// The source of an iteration: an array of the state, optionally filtered or mapped.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) list: usize,
    pub(crate) stages: Vec<Stage>,
}

#[derive(Clone, Debug)]
pub(crate) enum Stage {
    Filter(Condition),
    Map(Scalar),
}

/// A condition.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Constant(bool),
    /// A value other than 0.
    True(Scalar),
    Compare(Relation, Scalar, Scalar),
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    /// An array is not empty.
    NotEmpty(usize),
    Contains {
        list: usize,
        needle: Scalar,
    },
    /// The condition holds for some element.
    Some {
        source: Source,
        condition: Box<Condition>,
    },
    /// The array is not empty, and the condition holds for each element.
    Every {
        source: Source,
        condition: Box<Condition>,
    },
    Interpreted(Arc<Interpreted>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    Unequal,
    Less,
    AtMost,
}

/// A state mutation: one primitive write of an effect.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    Write { slot: usize, write: Write, value: Scalar },
    WriteItem { list: usize, index: usize, write: Write, value: Scalar },
    Push { list: usize, value: Scalar },
    Pop { list: usize },
    Assign { list: usize, items: Vec<f64> },
    Schedule { site: usize },
}

/// The way a write combines the old and the new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Set,
    Add,
    Subtract,
    Multiply,
}

/// The consequence of a rule: derived values, each in its column, then mutations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consequence {
    pub(crate) derives: Vec<(usize, Scalar)>,
    pub(crate) mutations: Vec<Mutation>,
}

/// A schedule site: an effect that schedules mutations, and its pending entry.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// The group of sites that replace each other: those with the same name.
    pub(crate) name: usize,
    pub(crate) when: Due,
    /// The column of the due turn; infinity if not pending.
    pub(crate) due: usize,
    /// The column of the position in the order of scheduling.
    pub(crate) order: usize,
    pub(crate) mutations: Vec<Mutation>,
    /// Derived values that the mutations need, computed at the time of scheduling, and their columns.
    pub(crate) frozen: Vec<(usize, Scalar)>,
}

impl Site {
    /// Return the consequence of the site when it is due.
    pub(crate) fn consequence(&self) -> Consequence {
        Consequence { derives: Vec::new(), mutations: self.mutations.clone() }
    }
}

impl Scalar {
    /// Return True if the value is constant within a block of code and needs no calculation.
    pub(crate) fn is_simple(&self) -> bool {
        matches!(self, Self::Constant(_) | Self::Column(_))
    }
}

impl Condition {
    /// Return True if a test is true for any value in this condition, at any depth.
    pub(crate) fn any(&self, test: &mut impl FnMut(&Scalar) -> bool) -> bool {
        match self {
            Self::Constant(_) | Self::NotEmpty(_) => false,
            Self::Interpreted(interpreted) => test(&Scalar::Interpreted(Arc::clone(interpreted))),
            Self::True(value) | Self::Contains { needle: value, .. } => value.any(test),
            Self::Compare(_, a, b) => a.any(test) || b.any(test),
            Self::All(items) | Self::Any(items) => items.iter().any(|item| item.any(test)),
            Self::Not(item) => item.any(test),
            Self::Some { source, condition } | Self::Every { source, condition } => {
                source.any(test) || condition.any(test)
            }
        }
    }
}

impl Source {
    fn any(&self, test: &mut impl FnMut(&Scalar) -> bool) -> bool {
        self.stages.iter().any(|stage| match stage {
            Stage::Filter(condition) => condition.any(test),
            Stage::Map(value) => value.any(test),
        })
    }
}

impl Scalar {
    fn any(&self, test: &mut impl FnMut(&Self) -> bool) -> bool {
        test(self)
            || match self {
                Self::Constant(_)
                | Self::Column(_)
                | Self::Element
                | Self::Accumulator
                | Self::Interpreted(_) => false,
                Self::Calculation { first, rest, .. } => {
                    first.any(test) || rest.iter().any(|value| value.any(test))
                }
                Self::Negative(value) => value.any(test),
                Self::Choice { condition, then, otherwise } => {
                    condition.any(test) || then.any(test) || otherwise.any(test)
                }
                Self::Truth(condition) => condition.any(test),
                Self::Fold(fold) => fold.source.any(test) || fold.start.any(test) || fold.body.any(test),
            }
    }
}

impl Condition {
    /// Return the number of conditions and values in it.
    pub(super) fn size(&self) -> usize {
        1 + match self {
            Self::Constant(_) | Self::NotEmpty(_) | Self::Interpreted(_) => 0,
            Self::True(value) | Self::Contains { needle: value, .. } => value.size(),
            Self::Compare(_, a, b) => a.size() + b.size(),
            Self::All(items) | Self::Any(items) => items.iter().map(Self::size).sum(),
            Self::Not(item) => item.size(),
            Self::Some { source, condition } | Self::Every { source, condition } => {
                source.size() + condition.size()
            }
        }
    }
}

impl Source {
    fn size(&self) -> usize {
        let stages = self.stages.iter().map(|stage| match stage {
            Stage::Filter(condition) => condition.size(),
            Stage::Map(value) => value.size(),
        });
        stages.sum()
    }
}

impl Scalar {
    /// Return the number of values and conditions in it.
    pub(super) fn size(&self) -> usize {
        1 + match self {
            Self::Constant(_)
            | Self::Column(_)
            | Self::Element
            | Self::Accumulator
            | Self::Interpreted(_) => 0,
            Self::Calculation { first, rest, .. } => {
                first.size() + rest.iter().map(Self::size).sum::<usize>()
            }
            Self::Negative(value) => value.size(),
            Self::Choice { condition, then, otherwise } => condition.size() + then.size() + otherwise.size(),
            Self::Truth(condition) => condition.size(),
            Self::Fold(fold) => fold.source.size() + fold.start.size() + fold.body.size(),
        }
    }
}
