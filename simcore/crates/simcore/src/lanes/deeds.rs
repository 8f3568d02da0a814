//! What effects do: to all runs at once where that is possible, else to one after the other.

use crate::plan::ir::{Consequence, Deed, Scalar, Write};
use crate::plan::{MOST_FROZEN, Plan};

use super::registers::Registers;
use super::scalar::{Place, finite};

/// What is scheduled in one run, in the order of scheduling.
#[derive(Default)]
pub(super) struct Queue {
    pending: Vec<Entry>,
    /// Entries that are being carried out; kept for its memory.
    due: Vec<Entry>,
}

#[derive(Clone)]
struct Entry {
    site: usize,
    due: f64,
    frozen: [f64; MOST_FROZEN],
}

impl Queue {
    pub(super) fn clear(&mut self) {
        self.pending.clear();
    }

    pub(super) fn is_due(&self, now: f64) -> bool {
        self.pending.iter().any(|entry| entry.due <= now)
    }

    /// Schedule something, in place of what has the same name.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "turns"
    )]
    fn schedule(&mut self, plan: &Plan, site: usize, now: f64, frozen: [f64; MOST_FROZEN]) {
        let name = |site: usize| plan.sites.get(site).map(|site| site.name);
        self.pending.retain(|entry| name(entry.site) != name(site));
        if let Some(place) = plan.sites.get(site) {
            let due = place.due.turn(now as u64) as f64;
            self.pending.push(Entry { site, due, frozen });
        }
    }

    /// Take out what is due, in its order.
    fn take_due(&mut self, now: f64) -> Vec<Entry> {
        let mut due = std::mem::take(&mut self.due);
        due.extend(self.pending.extract_if(.., |entry| entry.due <= now));
        due.sort_by(|a, b| a.due.total_cmp(&b.due));
        due
    }

    fn keep_memory(&mut self, mut due: Vec<Entry>) {
        due.clear();
        self.due = due;
    }
}

/// Carry out what is due in one run. `None` when the run is not for this executor.
pub(super) fn open(plan: &Plan, registers: &mut Registers, lane: usize) -> Option<()> {
    let now = registers.number(plan.turn, lane);
    let due = registers.queue_mut(lane).take_due(now);
    let done = due.iter().try_for_each(|entry| {
        let deeds = plan.sites.get(entry.site).map_or(&[][..], |site| &site.deeds);
        deeds.iter().try_for_each(|deed| one(plan, registers, lane, deed, &entry.frozen))
    });
    registers.queue_mut(lane).keep_memory(due);
    done
}

/// Carry out a rule in one run. `None` when the run is not for this executor.
pub(super) fn consequence(
    plan: &Plan,
    registers: &mut Registers,
    lane: usize,
    consequence: &Consequence,
) -> Option<()> {
    for (column, value) in &consequence.derives {
        let value = Place::new(plan, registers, lane).value(value)?;
        registers.set_number(*column, lane, value);
    }
    consequence.deeds.iter().try_for_each(|deed| one(plan, registers, lane, deed, &[]))
}

/// Carry out a deed in one run.
pub(super) fn one(
    plan: &Plan,
    registers: &mut Registers,
    lane: usize,
    deed: &Deed,
    frozen: &[f64],
) -> Option<()> {
    let value_of = |registers: &Registers, value: &Scalar| {
        Place { frozen, ..Place::new(plan, registers, lane) }.value(value)
    };
    match deed {
        Deed::Write { slot, write, value } => {
            let value = value_of(registers, value)?;
            let old = registers.number(*slot, lane);
            registers.set_number(*slot, lane, written(*write, old, value)?);
        }
        Deed::WriteItem { list, index, write, value } => {
            let value = value_of(registers, value)?;
            let item = registers.list_mut(*list).item_mut(lane, *index)?;
            *item = written(*write, *item, value)?;
        }
        Deed::Push { list, value } => {
            let value = value_of(registers, value)?;
            let length = registers.list_mut(*list).push(lane, value);
            (length <= plan.most_elements).then_some(())?;
        }
        Deed::Pop { list } => {
            registers.list_mut(*list).pop(lane)?;
        }
        Deed::Assign { list, items } => {
            registers.list_mut(*list).assign(lane, items);
            (items.len() <= plan.most_elements).then_some(())?;
        }
        Deed::Schedule { site } => {
            let now = registers.number(plan.turn, lane);
            let fresh = &plan.sites.get(*site)?.frozen;
            let mut kept = [0.0; MOST_FROZEN];
            if fresh.is_empty() {
                kept.iter_mut().zip(frozen).for_each(|(to, value)| *to = *value);
            }
            for (to, value) in kept.iter_mut().zip(fresh) {
                *to = value_of(registers, value)?;
            }
            registers.queue_mut(lane).schedule(plan, *site, now, kept);
        }
    }
    Some(())
}

fn written(write: Write, old: f64, value: f64) -> Option<f64> {
    finite(match write {
        Write::Set => value,
        Write::Add => old + value,
        Write::Subtract => old - value,
        Write::Multiply => old * value,
    })
}
