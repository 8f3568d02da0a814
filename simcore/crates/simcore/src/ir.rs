//! Intermediate representation: an execution plan of a scenario with all static work done once.
//!
//! # Design
//!
//! A [`Plan`] is the typed form of a program. Each scalar of the state is a column of binary64 numbers, and
//! each path is a column number. Texts and booleans are numbers too. Expressions are lowered to typed trees
//! (`expressions`), or left to the interpreter (`fallback`). The vectorised executor (`simd`) and the
//! abstract interpreter (`static_analysis`) both use the plan.
//!
//! A plan is made for runs from one state. That state and its pending entries are part of the plan.
//!
//! # Invariants
//!
//! - For ordinary runs the plan has exactly the semantics of the program. A run is exceptional if a rule
//!   fails or a limit is reached.
//! - The user of a plan must detect an exceptional run and leave it to the interpreter.
//! - While no array is longer than `most_elements`, no budget of fuel, steps or size can be exceeded.
//!
//! # Rejected alternatives
//!
//! - Dynamic shapes: a scenario whose effects create or delete members has no plan. The interpreter plays it.
//! - Errors in the plan: their order and their rollback are the difficult part of the semantics. They are
//!   rare, so only the interpreter implements them.
//! - One plan with other initial numbers for runs from a later state: the shape may differ there, and pending
//!   entries contain values instead of names.

mod bounds;
mod distances;
mod expressions;
pub(crate) mod fallback;
mod initial_state;
mod layout;
mod rules;
pub(crate) mod types;

pub(crate) use distances::{Distance, Distances, Graded};
pub(crate) use initial_state::InitialState;
pub(crate) use layout::{Layout, Spot};
use types::{Condition, Consequence, Kind, Mutation, Site};

/// An execution plan: a scenario with all paths and types resolved.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) layout: Layout,
    pub(crate) start: InitialState,
    /// The column of the turn. The columns before it are the slots of the state.
    pub(crate) turn: usize,
    /// Number of columns: slots, the turn, parameters, derived values.
    pub(crate) columns: usize,
    pub(crate) actions: Vec<Action>,
    pub(crate) events: Vec<Event>,
    pub(crate) losses: Vec<Condition>,
    pub(crate) wins: Vec<Condition>,
    /// Amount that is subtracted from a slot at the end of each turn.
    pub(crate) decay: Vec<(usize, f64)>,
    /// Decay that needs masks or bounds: all of it if runs may end before the random event.
    pub(crate) masked_decay: Option<Consequence>,
    /// True if end conditions are also tested before the random event.
    pub(crate) ends_early: bool,
    pub(crate) sites: Vec<Site>,
    /// Distances of the loss and win conditions. `None` if they need the interpreter.
    pub(crate) distances: Option<Distances>,
    /// While no array has more elements, no budget of fuel, steps or size can be exceeded.
    pub(crate) most_elements: usize,
}

#[derive(Debug)]
pub(crate) struct Action {
    /// Parameters in the order of their draws.
    pub(crate) params: Vec<Param>,
    /// True if the preconditions depend on the parameters.
    pub(crate) depends_on_params: bool,
    /// True where one of the variants is legal, if there are any.
    pub(crate) legal: Condition,
    /// Empty if there are variants.
    pub(crate) consequence: Consequence,
    pub(crate) variants: Vec<Variant>,
}

/// An action for some values of its parameters.
#[derive(Debug)]
pub(crate) struct Variant {
    /// Columns of parameters with their values.
    pub(crate) values: Vec<(usize, f64)>,
    pub(crate) legal: Condition,
    pub(crate) consequence: Consequence,
}

#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) weight: f64,
    pub(crate) turns: u64,
    pub(crate) when: Condition,
    pub(crate) consequence: Consequence,
}

#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) column: usize,
    pub(crate) kind: Kind,
    pub(crate) domain: Domain,
}

/// The domain that a parameter is drawn from.
#[derive(Debug)]
pub(crate) enum Domain {
    Options(Vec<f64>),
    Only(f64),
    /// `count` integers from `low` on; fewer than 2^32.
    Integers {
        low: f64,
        count: u64,
    },
    Numbers {
        low: f64,
        high: f64,
    },
}

impl Action {
    /// Return the consequences of the action, of which one is executed.
    pub(crate) fn consequences(&self) -> impl Iterator<Item = &Consequence> {
        std::iter::once(&self.consequence).chain(self.variants.iter().map(|variant| &variant.consequence))
    }
}

impl Plan {
    /// Return all mutations of rules, immediate or scheduled.
    pub(crate) fn mutations(&self) -> impl Iterator<Item = &Mutation> {
        let actions = self.actions.iter().flat_map(Action::consequences).flat_map(|rule| &rule.mutations);
        let events = self.events.iter().flat_map(|event| &event.consequence.mutations);
        actions.chain(events).chain(self.sites.iter().flat_map(|site| &site.mutations))
    }

    /// Return True if a number may become infinite within `turns` turns, so each result must be checked.
    pub(crate) fn may_overflow(&self, turns: u64) -> bool {
        bounds::may_overflow(self, turns)
    }
}

#[cfg(test)]
pub(crate) mod examples {
    use crate::ir::Plan;
    use crate::program::Program;

    /// Build the plan of a program for runs from its initial state.
    pub(crate) fn plan_of(program: &Program) -> Option<Plan> {
        Plan::new(program, &program.new_state(0))
    }

    /// Compile a program with a state. `sections` replace the other sections, which are empty.
    pub(crate) fn program(state: &str, sections: &[(&str, &str)]) -> Program {
        let section = |name: &str, default: &str| {
            let given = sections.iter().find(|(other, _)| *other == name);
            format!(r#""{name}": {}"#, given.map_or(default, |(_, text)| *text))
        };
        let sections = [
            section("actions", "[]"),
            section("random_events", "[]"),
            section("loss_conditions", "[]"),
            section("win_conditions", "[]"),
            section("negativity_budget", "{}"),
        ];
        let document = format!(r#"{{"state": {state}, {}}}"#, sections.join(", "));
        Program::new(document.as_bytes()).unwrap()
    }
}
