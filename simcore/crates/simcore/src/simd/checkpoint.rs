//! Checkpoints: the registers that a rule writes, saved while the rule is tried.

use crate::ir::Plan;
use crate::ir::types::{Consequence, Mutation};

use super::lists::List;
use super::registers::Registers;
use super::vectors::Column;

/// The write set of a rule.
#[derive(Debug, Default)]
pub(super) struct WriteSet {
    columns: Vec<usize>,
    lists: Vec<usize>,
}

/// The write sets of everything that lookahead tries.
#[derive(Debug)]
pub(super) struct WriteSets {
    /// For each action and for each event.
    pub(super) actions: Vec<WriteSet>,
    pub(super) events: Vec<WriteSet>,
    /// The write set of whole turns.
    pub(super) turns: WriteSet,
}

/// Saved content of a write set.
#[derive(Debug)]
pub(super) struct Checkpoint {
    columns: Vec<Column>,
    lists: Vec<List>,
    scheduled: Column,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self { columns: Vec::new(), lists: Vec::new(), scheduled: Column::ZERO }
    }
}

impl WriteSets {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            actions: plan
                .actions
                .iter()
                .map(|action| WriteSet::for_consequences(plan, action.consequences()))
                .collect(),
            events: plan
                .events
                .iter()
                .map(|event| WriteSet::for_consequences(plan, std::iter::once(&event.consequence)))
                .collect(),
            turns: WriteSet::for_turns(plan),
        }
    }
}

impl WriteSet {
    /// Return the write set of consequences.
    fn for_consequences<'p>(plan: &Plan, rules: impl Iterator<Item = &'p Consequence>) -> Self {
        let mut write_set = Self::default();
        for mutation in rules.flat_map(|consequence| &consequence.mutations) {
            match mutation {
                Mutation::Write { slot, .. } => write_set.columns.push(*slot),
                Mutation::WriteItem { list, .. }
                | Mutation::Push { list, .. }
                | Mutation::Pop { list }
                | Mutation::Assign { list, .. } => write_set.lists.push(*list),
                Mutation::Schedule { site } => write_set.add_site(plan, *site),
            }
        }
        write_set.without_duplicates()
    }

    /// Return the write set of turns, with the parameters of the first turn.
    fn for_turns(plan: &Plan) -> Self {
        let mut write_set = Self::default();
        write_set.columns.extend(0..=plan.turn);
        let params = plan.actions.iter().flat_map(|action| &action.params);
        write_set.columns.extend(params.map(|param| param.column));
        write_set.lists.extend(0..plan.layout.lists.len());
        (0..plan.sites.len()).for_each(|site| write_set.add_site(plan, site));
        write_set.without_duplicates()
    }

    /// Add the registers that scheduling a site writes: its own columns, and the due turns of sites with the
    /// same name.
    fn add_site(&mut self, plan: &Plan, site: usize) {
        let Some(site) = plan.sites.get(site) else { return };
        let others = plan.sites.iter().filter(|other| other.name == site.name);
        self.columns.extend(others.map(|other| other.due));
        self.columns.push(site.order);
        self.columns.extend(site.frozen.iter().map(|(column, _)| *column));
    }

    fn without_duplicates(mut self) -> Self {
        for numbers in [&mut self.columns, &mut self.lists] {
            numbers.sort_unstable();
            numbers.dedup();
        }
        self
    }
}

impl Checkpoint {
    /// Save the registers of a write set.
    #[inline(always)]
    pub(super) fn save(&mut self, registers: &Registers, write_set: &WriteSet) {
        self.columns.clear();
        self.columns.extend(write_set.columns.iter().map(|column| registers.column(*column).clone()));
        self.lists.resize_with(write_set.lists.len(), List::new);
        for (to, list) in self.lists.iter_mut().zip(&write_set.lists) {
            to.copy_from(registers.list(*list));
        }
        self.scheduled.clone_from(&registers.scheduled);
    }

    /// Restore the registers of a write set.
    #[inline(always)]
    pub(super) fn restore(&self, registers: &mut Registers, write_set: &WriteSet) {
        for (saved, column) in self.columns.iter().zip(&write_set.columns) {
            registers.column_mut(*column).clone_from(saved);
        }
        for (saved, list) in self.lists.iter().zip(&write_set.lists) {
            registers.list_mut(*list).copy_from(saved);
        }
        registers.scheduled.clone_from(&self.scheduled);
    }
}
