//! What a scenario comes to when everything about it that never changes is worked out once.
//!
//! A plan says the same as the program that it is made of, for runs in which nothing exceptional happens: no rule
//! fails, no limit is reached. Who plays by it has to notice when something does (see `lanes`) and to leave that run
//! to the interpreter. Scenarios whose states change their shape have no plan.
//!
//! A plan is for runs that begin in one state: what that is, and what is pending in it, is part of the plan.

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

/// A scenario with every path and every type resolved.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) layout: Layout,
    pub(crate) start: InitialState,
    /// The column of the turn; those before it are the slots of the state.
    pub(crate) turn: usize,
    /// How many columns there are: slots, the turn, parameters, derived values.
    pub(crate) columns: usize,
    pub(crate) actions: Vec<Action>,
    pub(crate) events: Vec<Event>,
    pub(crate) losses: Vec<Condition>,
    pub(crate) wins: Vec<Condition>,
    /// What is taken from which slot at the end of each turn.
    pub(crate) decay: Vec<(usize, f64)>,
    pub(crate) sites: Vec<Site>,
    /// How far the conditions that end a run are from holding; `None` where that is for the interpreter to say.
    pub(crate) distances: Option<Distances>,
    /// As long as no array has more elements than this, no budget of fuel, steps or size can run out.
    pub(crate) most_elements: usize,
}

#[derive(Debug)]
pub(crate) struct Action {
    /// In the order in which they are drawn.
    pub(crate) params: Vec<Param>,
    /// Whether it depends on the parameters whether the action is legal.
    pub(crate) depends_on_params: bool,
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

/// What a parameter is drawn from.
#[derive(Debug)]
pub(crate) enum Domain {
    Options(Vec<f64>),
    Only(f64),
    /// So many integers from the lowest on; fewer than 2^32.
    Integers {
        low: f64,
        count: u64,
    },
    Numbers {
        low: f64,
        high: f64,
    },
}

impl Plan {
    /// All that rules do, now or later.
    pub(crate) fn mutations(&self) -> impl Iterator<Item = &Mutation> {
        let actions = self.actions.iter().flat_map(|action| &action.consequence.mutations);
        let events = self.events.iter().flat_map(|event| &event.consequence.mutations);
        actions.chain(events).chain(self.sites.iter().flat_map(|site| &site.mutations))
    }

    /// Whether some number might not be finite within so many turns, so that each has to be looked at.
    pub(crate) fn may_overflow(&self, turns: u64) -> bool {
        bounds::may_overflow(self, turns)
    }
}

#[cfg(test)]
pub(crate) mod examples {
    use crate::ir::Plan;
    use crate::program::Program;

    /// The plan of a program for runs from its initial state.
    pub(crate) fn plan_of(program: &Program) -> Option<Plan> {
        Plan::new(program, &program.new_state(0))
    }

    /// A program whose state is `state`; what follows replaces its other sections, which are empty.
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
