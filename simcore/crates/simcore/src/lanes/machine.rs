//! A plan together with the code for its rules: all that blocks of runs of one scenario share.

use crate::personas::Persona;
use crate::plan::Plan;
use crate::plan::ir::Consequence;
use crate::program::Program;

use super::code::{Code, Compiler};
use super::saved::Footprints;

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
    /// For the personas that look ahead: the value of a run, if that can be told here, and the column for it.
    pub(super) value: Option<Code>,
    pub(super) value_column: usize,
    pub(super) footprints: Footprints,
    pub(super) columns: usize,
    pub(super) masks: usize,
    pub(super) actions_masked: bool,
    pub(super) events_masked: bool,
}

impl Machine {
    /// The machine of a program, if the program is of the kind that can be played so.
    pub(crate) fn new(program: &Program) -> Option<Self> {
        let plan = Plan::new(program)?;
        let value_column = plan.columns;
        let mut compiler = Compiler::new(value_column + 1);
        let legal = plan.actions.iter().map(|action| compiler.condition_code(&action.legal)).collect();
        let when = plan.events.iter().map(|event| compiler.condition_code(&event.when)).collect();
        let ends = plan.losses.iter().chain(&plan.wins).map(|end| compiler.condition_code(end)).collect();
        let mut carry_out = |consequence: &Consequence| compiler.consequence_code(consequence);
        let actions = plan.actions.iter().map(|action| carry_out(&action.consequence)).collect();
        let events = plan.events.iter().map(|event| carry_out(&event.consequence)).collect();
        let sites = plan.sites.iter().map(|site| carry_out(&site.consequence())).collect();
        let lasting = plan.events.iter().enumerate().filter(|(_, event)| event.turns > 1);
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
            footprints: Footprints::new(&plan),
            lasting: lasting.map(|(index, _)| index).collect(),
            columns: compiler.columns,
            masks: compiler.masks,
            actions_masked: plan.actions.len() <= MOST_MASKED,
            events_masked: plan.events.len() <= MOST_MASKED,
            plan,
        })
    }

    /// Whether a persona can be played.
    pub(crate) fn plays(&self, persona: Persona) -> bool {
        self.value.is_some() || matches!(persona, Persona::Idle | Persona::Random)
    }
}
