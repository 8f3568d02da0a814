//! Typed parts of a scenario that fits the schema.

use crate::json_node::{Member, Node};

/// A scenario.
#[derive(Default)]
pub(super) struct Spec<'a> {
    pub(super) state: &'a [Member<'a>],
    pub(super) entities: Vec<&'a str>,
    pub(super) actions: Vec<Rule<'a>>,
    pub(super) events: Vec<Rule<'a>>,
    pub(super) losses: Vec<Condition<'a>>,
    pub(super) wins: Vec<Condition<'a>>,
    pub(super) decay: &'a [Member<'a>],
    /// The minimum and maximum failure rate.
    pub(super) rates: (f64, Option<f64>),
    pub(super) turn: Option<&'a str>,
    pub(super) visibility: Vec<Viewers<'a>>,
    /// Paths that the narrator may write.
    pub(super) granted: Vec<&'a str>,
    /// True for version 1.1.
    pub(super) is_later: bool,
    /// True if the document has a key of version 1.1.
    pub(super) has_later_keys: bool,
    pub(super) bounds: Vec<Bound<'a>>,
    pub(super) deals: Vec<Deal<'a>>,
    pub(super) epilogues: &'a [Member<'a>],
    pub(super) labels: &'a [Member<'a>],
    pub(super) solutions: Vec<Solution<'a>>,
}

/// Steps that win.
pub(super) struct Solution<'a> {
    pub(super) id: &'a str,
    pub(super) when: &'a [Member<'a>],
    pub(super) steps: Vec<Step<'a>>,
}

/// A step of a solution.
pub(super) struct Step<'a> {
    pub(super) when: &'a [Member<'a>],
    /// The move, and the one that replaces it.
    pub(super) moves: Vec<Move<'a>>,
}

/// An action with parameters.
pub(super) struct Move<'a> {
    pub(super) action: &'a str,
    pub(super) params: &'a [Member<'a>],
}

/// The least and the greatest number at a path.
pub(super) struct Bound<'a> {
    pub(super) path: &'a str,
    pub(super) least: f64,
    pub(super) most: f64,
}

/// A hidden truth, drawn once for each run.
pub(super) struct Deal<'a> {
    pub(super) id: &'a str,
    pub(super) path: &'a str,
    pub(super) values: &'a [Node<'a>],
}

/// An action or an event.
pub(super) struct Rule<'a> {
    pub(super) id: &'a str,
    pub(super) params: Vec<(&'a str, Param<'a>)>,
    pub(super) when: &'a [Member<'a>],
    pub(super) derives: &'a [Member<'a>],
    pub(super) effects: Vec<Effect<'a>>,
    pub(super) duration: Option<&'a str>,
}

/// A loss or win condition.
pub(super) struct Condition<'a> {
    pub(super) id: &'a str,
    pub(super) when: &'a [Member<'a>],
}

/// A parameter of an action.
pub(super) struct Param<'a> {
    pub(super) kind: Kind,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) options: Option<&'a [Node<'a>]>,
    pub(super) max_length: Option<f64>,
}

/// The type of a parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Number,
    Text,
    Boolean,
}

/// An effect.
pub(super) enum Effect<'a> {
    Write { operation: Operation, path: &'a str, value: Option<&'a Node<'a>> },
    AddLog,
    Schedule { at: Option<Due<'a>>, after: Option<Due<'a>>, effects: Vec<Effect<'a>> },
}

/// The kind of operation of an effect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Set,
    /// `inc`, `dec` or `mul`.
    Calculate,
    Patch,
    /// `push` or `pop`.
    Append,
}

/// The due time of a schedule.
pub(super) enum Due<'a> {
    Turns,
    Duration(&'a str),
}

/// The viewers of a path.
pub(super) struct Viewers<'a> {
    pub(super) path: &'a str,
    /// Entities. Empty for all of them and for none.
    pub(super) to: Vec<&'a str>,
    pub(super) is_public: bool,
}
