//! Initial state of the runs of a plan, without the numbers, which are in the layout.

use std::collections::BTreeSet;

use crate::state::{Scheduled, State};
use crate::value::Value;

use super::Event;
use super::rules::Builder;

/// The state that all runs of a plan begin with.
#[derive(Debug)]
pub(crate) struct InitialState {
    pub(crate) tree: Value,
    /// Number of complete turns.
    pub(crate) turn: u64,
    /// Pending entries: the site and the due turn. Entries of one turn are in the order of execution.
    pub(crate) pending: Vec<(usize, f64)>,
    /// Lasting events in the order of their start, with their last turn.
    pub(crate) lasting: Vec<(usize, f64)>,
    /// Slots whose number is drawn once for each run.
    pub(crate) deals: Vec<Deal>,
}

/// A slot whose number is drawn once for each run.
#[derive(Debug)]
pub(crate) struct Deal {
    pub(crate) slot: usize,
    /// The key of its stream.
    pub(crate) key: u64,
    pub(crate) values: Vec<f64>,
}

impl InitialState {
    /// Return the initial state of runs from a state, or `None` if the snapshot is inconsistent.
    #[expect(clippy::cast_precision_loss, reason = "counts of turns")]
    pub(super) fn new(state: &State, builder: &mut Builder<'_>, events: &[Event]) -> Option<Self> {
        // Opening the turn has removed the due entries.
        (!(state.opened && state.is_due())).then_some(())?;
        // An entry replaces the entry of the same name.
        let mut names = BTreeSet::new();
        state.scheduled.iter().all(|entry| names.insert(&entry.id)).then_some(())?;
        let mut entries: Vec<&Scheduled> = state.scheduled.iter().map(|entry| &**entry).collect();
        entries.sort_by_key(|entry| entry.due);
        let pending = entries.into_iter().map(|entry| Some((builder.pending(entry)?, entry.due as f64)));
        let pending = pending.collect::<Option<_>>()?;
        let mut lasting: Vec<(usize, f64)> = Vec::new();
        for entry in &state.lasting {
            let lasts = events.get(entry.event).is_some_and(|event| event.turns > 1);
            let is_new = lasting.iter().all(|(event, _)| *event != entry.event);
            (lasts && is_new).then_some(())?;
            lasting.push((entry.event, entry.until as f64));
        }
        let deals = if state.is_dealt { Vec::new() } else { builder.deals()? };
        Some(Self { tree: state.tree.clone(), turn: state.turn, pending, lasting, deals })
    }
}
