//! Machine: a plan with the code of its rules, shared by all blocks.

use crate::ir::Plan;
use crate::ir::types::Consequence;
use crate::personas::Persona;
use crate::program::Program;
use crate::state::State;

use super::checkpoint::WriteSets;
use super::code::{Code, Compiler};

/// With more actions or events, the chosen rule is applied lane by lane. Masked execution would waste most
/// lanes.
const MOST_MASKED: usize = 24;

/// A scenario compiled for vectorised runs.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) plan: Plan,
    /// For each action, the code of its legality.
    pub(super) legal: Vec<Code>,
    /// For each event, the code of its condition.
    pub(super) when: Vec<Code>,
    /// For each loss condition, then each win condition, its code.
    pub(super) ends: Vec<Code>,
    /// For each action, then each event, the code of its consequence.
    pub(super) actions: Vec<Code>,
    pub(super) events: Vec<Code>,
    /// For each action, the code of its variants.
    pub(super) variants: Vec<Vec<Code>>,
    /// For each site, the code of its consequence.
    pub(super) sites: Vec<Code>,
    /// The code of decay that needs masks or bounds.
    pub(super) masked_decay: Option<Code>,
    /// The events that last for more than one turn.
    pub(super) lasting: Vec<usize>,
    /// For each of them, the last turn of an occurrence before the runs, and the turn of its start, which
    /// defines their order.
    pub(super) ongoing: Vec<(f64, f64)>,
    /// For personas with lookahead: the code of the heuristic value, if it can be lowered, and its column.
    pub(super) value: Option<Code>,
    pub(super) value_column: usize,
    pub(super) write_sets: WriteSets,
    pub(super) columns: usize,
    pub(super) masks: usize,
    pub(super) actions_masked: bool,
    pub(super) events_masked: bool,
}

impl Machine {
    /// Build the machine of a program for runs from a state, if both can be vectorised.
    pub(crate) fn new(program: &Program, state: &State) -> Option<Self> {
        let plan = Plan::new(program, state)?;
        let value_column = plan.columns;
        let mut compiler = Compiler::new(value_column + 1);
        let legal = plan.actions.iter().map(|action| compiler.condition_code(&action.legal)).collect();
        let when = plan.events.iter().map(|event| compiler.condition_code(&event.when)).collect();
        let ends = plan.losses.iter().chain(&plan.wins).map(|end| compiler.condition_code(end)).collect();
        let mut run_rule = |consequence: &Consequence| compiler.consequence_code(consequence);
        let actions = plan.actions.iter().map(|action| run_rule(&action.consequence)).collect();
        let variants = plan
            .actions
            .iter()
            .map(|action| action.variants.iter().map(|variant| run_rule(&variant.consequence)).collect());
        let variants = variants.collect();
        let events = plan.events.iter().map(|event| run_rule(&event.consequence)).collect();
        let sites = plan.sites.iter().map(|site| run_rule(&site.consequence())).collect();
        let masked_decay = plan.masked_decay.as_ref().map(run_rule);
        let lasting = plan.events.iter().enumerate().filter(|(_, event)| event.turns > 1);
        let lasting: Vec<usize> = lasting.map(|(index, _)| index).collect();
        let value = plan.distances.as_ref().map(|distances| compiler.value_code(distances, value_column));
        Some(Self {
            legal,
            when,
            ends,
            actions,
            events,
            variants,
            sites,
            masked_decay,
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

    /// Return True if a persona is supported.
    pub(crate) fn supports(&self, persona: Persona) -> bool {
        match persona {
            Persona::Idle | Persona::Random => true,
            // They remember more of a run than its lane holds.
            Persona::Curious | Persona::Par => false,
            _ => self.value.is_some(),
        }
    }
}

/// Return the last turn of an event that lasts from before the runs, and its start. The turn is 0 if it does
/// not.
#[expect(clippy::cast_precision_loss, reason = "a place among few")]
fn ongoing(plan: &Plan, event: usize) -> (f64, f64) {
    let lasting = &plan.start.lasting;
    let found = lasting.iter().enumerate().find(|(_, (other, _))| *other == event);
    // Before all events that start in the runs, and in the original order.
    found.map_or((0.0, 0.0), |(place, (_, until))| (*until, place as f64 - lasting.len() as f64))
}
