//! What a rule writes to, kept while it is tried out.

use crate::ir::Plan;
use crate::ir::types::{Consequence, Deed};

use super::lists::List;
use super::registers::Registers;
use super::vectors::Column;

/// What something writes to, when it is carried out.
#[derive(Debug, Default)]
pub(super) struct Footprint {
    columns: Vec<usize>,
    lists: Vec<usize>,
}

/// The footprints of what is tried out.
#[derive(Debug)]
pub(super) struct Footprints {
    /// Of each action, and of each event.
    pub(super) actions: Vec<Footprint>,
    pub(super) events: Vec<Footprint>,
    /// Of whole turns.
    pub(super) turns: Footprint,
}

/// What stood in a footprint.
#[derive(Debug)]
pub(super) struct Saved {
    columns: Vec<Column>,
    lists: Vec<List>,
    scheduled: Column,
}

impl Default for Saved {
    fn default() -> Self {
        Self { columns: Vec::new(), lists: Vec::new(), scheduled: Column::ZERO }
    }
}

impl Footprints {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            actions: plan.actions.iter().map(|action| Footprint::of(plan, &action.consequence)).collect(),
            events: plan.events.iter().map(|event| Footprint::of(plan, &event.consequence)).collect(),
            turns: Footprint::of_turns(plan),
        }
    }
}

impl Footprint {
    /// The footprint of a rule.
    fn of(plan: &Plan, consequence: &Consequence) -> Self {
        let mut footprint = Self::default();
        for deed in &consequence.deeds {
            match deed {
                Deed::Write { slot, .. } => footprint.columns.push(*slot),
                Deed::WriteItem { list, .. }
                | Deed::Push { list, .. }
                | Deed::Pop { list }
                | Deed::Assign { list, .. } => footprint.lists.push(*list),
                Deed::Schedule { site } => footprint.add_site(plan, *site),
            }
        }
        footprint.without_doubles()
    }

    /// Everything that turns write to, and the parameters of the first of them.
    fn of_turns(plan: &Plan) -> Self {
        let mut footprint = Self::default();
        footprint.columns.extend(0..=plan.turn);
        let params = plan.actions.iter().flat_map(|action| &action.params);
        footprint.columns.extend(params.map(|param| param.column));
        footprint.lists.extend(0..plan.layout.lists.len());
        (0..plan.sites.len()).for_each(|site| footprint.add_site(plan, site));
        footprint.without_doubles()
    }

    /// What it writes to schedule a site: its own columns, and what is pending under the same name.
    fn add_site(&mut self, plan: &Plan, site: usize) {
        let Some(site) = plan.sites.get(site) else { return };
        let others = plan.sites.iter().filter(|other| other.name == site.name);
        self.columns.extend(others.map(|other| other.due));
        self.columns.push(site.order);
        self.columns.extend(site.frozen.iter().map(|(column, _)| *column));
    }

    fn without_doubles(mut self) -> Self {
        for numbers in [&mut self.columns, &mut self.lists] {
            numbers.sort_unstable();
            numbers.dedup();
        }
        self
    }
}

impl Saved {
    /// Keep what stands in a footprint.
    #[inline(always)]
    pub(super) fn keep(&mut self, registers: &Registers, footprint: &Footprint) {
        self.columns.clear();
        self.columns.extend(footprint.columns.iter().map(|column| registers.column(*column).clone()));
        self.lists.resize_with(footprint.lists.len(), List::new);
        for (to, list) in self.lists.iter_mut().zip(&footprint.lists) {
            to.copy_from(registers.list(*list));
        }
        self.scheduled.clone_from(&registers.scheduled);
    }

    /// Put it back.
    #[inline(always)]
    pub(super) fn restore(&self, registers: &mut Registers, footprint: &Footprint) {
        for (kept, column) in self.columns.iter().zip(&footprint.columns) {
            registers.column_mut(*column).clone_from(kept);
        }
        for (kept, list) in self.lists.iter().zip(&footprint.lists) {
            registers.list_mut(*list).copy_from(kept);
        }
        registers.scheduled.clone_from(&self.scheduled);
    }
}
