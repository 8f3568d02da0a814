//! The typed, slot-resolved form of a scenario: every path is a number, every type is known.
//!
//! Values are binary64 throughout: a boolean is 0 or 1, a text its place among all texts of the scenario in the order
//! of their code points, so that equality, order and truth ("" is 0) are those of numbers.

use std::sync::Arc;

use crate::effects::Due;

use super::fallback::Interpreted;

/// What a value is known to be.
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
    /// Something that every run has its own of: a slot of the state, a parameter, a derived value, the turn.
    Column(usize),
    /// From left to right.
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
    /// The element that an iteration has come to.
    Element,
    /// What a fold has come to.
    Accumulator,
    Fold(Box<Fold>),
    /// What the interpreter makes of it.
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

/// A value made of the elements of an array, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub(crate) source: Source,
    pub(crate) start: Scalar,
    pub(crate) body: Scalar,
}

/// What an iteration goes through: an array of the state, perhaps with elements left out or replaced.
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

/// Something that holds or not.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Constant(bool),
    /// A value that is not 0.
    True(Scalar),
    Compare(Relation, Scalar, Scalar),
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    /// An array has elements.
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
    /// There are elements, and the condition holds for each.
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

/// Something that an effect does.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    Write { slot: usize, write: Write, value: Scalar },
    WriteItem { list: usize, index: usize, write: Write, value: Scalar },
    Push { list: usize, value: Scalar },
    Pop { list: usize },
    Assign { list: usize, items: Vec<f64> },
    Schedule { site: usize },
}

/// How a write makes the new value of the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Set,
    Add,
    Subtract,
    Multiply,
}

/// What a rule does: derived values first, each into its column, then deeds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consequence {
    pub(crate) derives: Vec<(usize, Scalar)>,
    pub(crate) mutations: Vec<Mutation>,
}

/// Deeds for later: an effect that schedules, and what is pending of it.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Which sites it replaces what is pending of: those of the same name.
    pub(crate) name: usize,
    pub(crate) when: Due,
    /// The column of the turn in which it is due; infinity when nothing is pending.
    pub(crate) due: usize,
    /// The column of its place in the order of scheduling.
    pub(crate) order: usize,
    pub(crate) mutations: Vec<Mutation>,
    /// The derived values that the deeds need, as they are when they are scheduled, and the columns to keep them in.
    pub(crate) frozen: Vec<(usize, Scalar)>,
}

impl Site {
    /// What it does when it is due.
    pub(crate) fn consequence(&self) -> Consequence {
        Consequence { derives: Vec::new(), mutations: self.mutations.clone() }
    }
}

impl Scalar {
    /// Whether the value is the same throughout a block of code, or has to be worked out.
    pub(crate) fn is_simple(&self) -> bool {
        matches!(self, Self::Constant(_) | Self::Column(_))
    }
}

impl Condition {
    /// Whether something is true of any value in this condition, however deep.
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
    /// How many conditions and values it consists of.
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
    /// How many values and conditions it consists of.
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
