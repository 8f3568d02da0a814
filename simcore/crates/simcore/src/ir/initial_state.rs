//! Where the runs of a plan begin, but for the numbers of the state, which the layout has.

use std::collections::BTreeSet;

use crate::state::{Scheduled, State};
use crate::value::Value;

use super::Event;
use super::rules::Builder;

/// The state that all runs of a plan begin with.
#[derive(Debug)]
pub(crate) struct InitialState {
    pub(crate) tree: Value,
    /// How many turns are complete.
    pub(crate) turn: u64,
    /// The site of each entry that is pending, and the turn in which it is due; of those that are due in one turn, in the
    /// order in which they are carried out.
    pub(crate) pending: Vec<(usize, f64)>,
    /// The events that go on, in the order in which they began, and the last turn in which they do.
    pub(crate) lasting: Vec<(usize, f64)>,
}

impl InitialState {
    /// The start of runs from a state; `None` when something of it can only have been made up.
    #[expect(clippy::cast_precision_loss, reason = "counts of turns")]
    pub(super) fn new(state: &State, builder: &mut Builder<'_>, events: &[Event]) -> Option<Self> {
        // What was due when the turn was opened has been taken away then.
        (!(state.opened && state.is_due())).then_some(())?;
        // An entry replaces that of the same name.
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
        Some(Self { tree: state.tree.clone(), turn: state.turn, pending, lasting })
    }
}
