//! A plan together with the code for its rules: all that blocks of runs of one scenario share.

use crate::ir::Plan;
use crate::ir::types::Consequence;
use crate::personas::Persona;
use crate::program::Program;
use crate::state::State;

use super::checkpoint::WriteSets;
use super::code::{Code, Compiler};

/// With more actions (or events) than this, what each run has chosen is carried out run by run: most would be
/// masked out of most runs.
const MOST_MASKED: usize = 24;

/// A scenario made ready for lockstep.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) plan: Plan,
    /// For each action, when it is legal.
    pub(super) legal: Vec<Code>,
    /// For each event, when it may happen.
    pub(super) when: Vec<Code>,
    /// For each loss condition and then each win condition, whether it holds.
    pub(super) ends: Vec<Code>,
    /// For each action what it does, and for each event.
    pub(super) actions: Vec<Code>,
    pub(super) events: Vec<Code>,
    /// For each site, what it does when it is due.
    pub(super) sites: Vec<Code>,
    /// The events that can go on for more than a turn.
    pub(super) lasting: Vec<usize>,
    /// For each of them, the last turn in which it goes on from before the runs begin, and when it began, as far as that
    /// tells their order.
    pub(super) ongoing: Vec<(f64, f64)>,
    /// For the personas that look ahead: the value of a run, if that can be told here, and the column for it.
    pub(super) value: Option<Code>,
    pub(super) value_column: usize,
    pub(super) write_sets: WriteSets,
    pub(super) columns: usize,
    pub(super) masks: usize,
    pub(super) actions_masked: bool,
    pub(super) events_masked: bool,
}

impl Machine {
    /// The machine of a program for runs from a state of it, if both are of the kind that can be played so.
    pub(crate) fn new(program: &Program, state: &State) -> Option<Self> {
        let plan = Plan::new(program, state)?;
        let value_column = plan.columns;
        let mut compiler = Compiler::new(value_column + 1);
        let legal = plan.actions.iter().map(|action| compiler.condition_code(&action.legal)).collect();
        let when = plan.events.iter().map(|event| compiler.condition_code(&event.when)).collect();
        let ends = plan.losses.iter().chain(&plan.wins).map(|end| compiler.condition_code(end)).collect();
        let mut run_rule = |consequence: &Consequence| compiler.consequence_code(consequence);
        let actions = plan.actions.iter().map(|action| run_rule(&action.consequence)).collect();
        let events = plan.events.iter().map(|event| run_rule(&event.consequence)).collect();
        let sites = plan.sites.iter().map(|site| run_rule(&site.consequence())).collect();
        let lasting = plan.events.iter().enumerate().filter(|(_, event)| event.turns > 1);
        let lasting: Vec<usize> = lasting.map(|(index, _)| index).collect();
        let value = plan.distances.as_ref().map(|distances| compiler.value_code(distances, value_column));
        Some(Self {
            legal,
            when,
            ends,
            actions,
            events,
            sites,
            value,
            value_column,
            write_sets: WriteSets::new(&plan),
            ongoing: lasting.iter().map(|event| ongoing(&plan, *event)).collect(),
            lasting,
            columns: compiler.columns,
            masks: compiler.masks,
            actions_masked: plan.actions.len() <= MOST_MASKED,
            events_masked: plan.events.len() <= MOST_MASKED,
            plan,
        })
    }

    /// Whether a persona can be played.
    pub(crate) fn supports(&self, persona: Persona) -> bool {
        self.value.is_some() || matches!(persona, Persona::Idle | Persona::Random)
    }
}

/// The last turn in which an event goes on from before the runs begin, and when it began; turn 0 where it does not.
#[expect(clippy::cast_precision_loss, reason = "a place among few")]
fn ongoing(plan: &Plan, event: usize) -> (f64, f64) {
    let lasting = &plan.start.lasting;
    let found = lasting.iter().enumerate().find(|(_, (other, _))| *other == event);
    // Before everything that begins in the runs, and in their order.
    found.map_or((0.0, 0.0), |(place, (_, until))| (*until, place as f64 - lasting.len() as f64))
}
