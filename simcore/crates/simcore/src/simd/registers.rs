//! Registers of a block: columns, masks and arrays. They execute the code.

use crate::ir::Plan;
use crate::ir::types::{Condition, Mutation, Relation, Scalar, Write};

use super::action_log;
use super::code::{ACTIVE, Code, Loop, Operand, Step};
use super::isa::Vectors;
use super::lists::{List, narrow_to_longer};
use super::single_run::SingleRun;
use super::vectors::{Column, Combine, Mask, Numbers, turn_of};

/// The registers of a block of 64 runs.
pub(super) struct Registers {
    columns: Vec<Column>,
    masks: Vec<Mask>,
    lists: Vec<List>,
    /// For each site, lanes in which it is due in this turn and not yet executed.
    pub(super) due: Vec<Mask>,
    /// Number of scheduled entries in each lane.
    pub(super) scheduled: Column,
    /// Exceptional lanes: only the interpreter can play their runs.
    pub(super) exceptional: Mask,
    /// True if each result must be checked, because it may be infinite.
    pub(super) may_overflow: bool,
}

// The compiler allocates all numbers within the registers. A number outside is a bug, and must cause a panic
// instead of a wrong result.
#[expect(clippy::indexing_slicing, reason = "see above")]
impl Registers {
    pub(super) fn new(columns: usize, masks: usize, lists: usize, sites: usize, may_overflow: bool) -> Self {
        Self {
            columns: vec![Column::ZERO; columns],
            masks: vec![Mask::NONE; masks],
            lists: (0..lists).map(|_| List::new()).collect(),
            due: vec![Mask::NONE; sites],
            scheduled: Column::ZERO,
            exceptional: Mask::NONE,
            may_overflow,
        }
    }

    pub(super) fn number(&self, column: usize, lane: usize) -> f64 {
        self.columns[column].0[lane]
    }

    pub(super) fn set_number(&mut self, column: usize, lane: usize, number: f64) {
        self.columns[column].0[lane] = number;
    }

    #[inline(always)]
    pub(super) fn column(&self, column: usize) -> &Column {
        &self.columns[column]
    }

    #[inline(always)]
    pub(super) fn column_mut(&mut self, column: usize) -> &mut Column {
        &mut self.columns[column]
    }

    #[inline(always)]
    pub(super) fn check_finite(&mut self, column: usize, active: &Mask) {
        self.exceptional.add_infinite(active, &self.columns[column]);
    }

    pub(super) fn list(&self, list: usize) -> &List {
        &self.lists[list]
    }

    pub(super) fn list_mut(&mut self, list: usize) -> &mut List {
        &mut self.lists[list]
    }

    #[inline(always)]
    pub(super) fn mask(&self, mask: usize) -> &Mask {
        &self.masks[mask]
    }

    #[inline(always)]
    pub(super) fn mask_mut(&mut self, mask: usize) -> &mut Mask {
        &mut self.masks[mask]
    }

    /// Return a column for mutation, and the numbers of an operand.
    #[inline(always)]
    fn column_and(columns: &mut [Column], to: usize, with: Operand) -> (&mut Column, Numbers<'_>) {
        match with {
            Operand::Constant(number) => (&mut columns[to], Numbers::All(number)),
            Operand::Column(from) => {
                let (low, high) = columns.split_at_mut(to.max(from));
                if to < from {
                    (&mut low[to], Numbers::Each(&high[0]))
                } else {
                    (&mut high[0], Numbers::Each(&low[from]))
                }
            }
        }
    }

    #[inline(always)]
    fn mask_and(&mut self, to: usize, with: usize) -> (&mut Mask, &Mask) {
        let (low, high) = self.masks.split_at_mut(to.max(with));
        if to < with { (&mut low[to], &high[0]) } else { (&mut high[0], &low[with]) }
    }

    #[inline(always)]
    fn numbers(columns: &[Column], operand: Operand) -> Numbers<'_> {
        match operand {
            Operand::Column(column) => Numbers::Each(&columns[column]),
            Operand::Constant(number) => Numbers::All(number),
        }
    }

    /// Execute code. It is inlined only here, once for each instruction set.
    #[inline(always)]
    pub(super) fn run<V: Vectors>(&mut self, plan: &Plan, code: &Code) {
        for step in &code.0 {
            match step {
                Step::Compare { to, combine, relation, a, b } => {
                    let (a, b) = (Self::numbers(&self.columns, *a), Self::numbers(&self.columns, *b));
                    self.masks[*to].compare(*combine, *relation, a, b);
                }
                Step::Load { to, from } => {
                    let (to, from) = Self::column_and(&mut self.columns, *to, *from);
                    to.fill(from);
                }
                Step::Apply { to, operation, with } => {
                    let (to, with) = Self::column_and(&mut self.columns, *to, *with);
                    to.apply(*operation, with);
                }
                Step::Negate { to } => self.columns[*to].negate(),
                Step::Select { to, mask, with } => {
                    let mask = &self.masks[*mask];
                    let (to, with) = Self::column_and(&mut self.columns, *to, *with);
                    to.set_where(mask, with);
                }
                Step::Truth { to, mask } => self.columns[*to].truth(&self.masks[*mask]),
                Step::CheckFinite { column, active, always } => {
                    if *always || self.may_overflow {
                        self.exceptional.add_infinite(&self.masks[*active], &self.columns[*column]);
                    }
                }
                Step::CheckNotZero { operand, active } => {
                    let numbers = Self::numbers(&self.columns, *operand);
                    self.exceptional.add_zero(&self.masks[*active], numbers);
                }
                Step::EachValue { to, scalar, active } => self.each_value(plan, *to, scalar, *active),
                Step::EachCondition { to, condition, active } => {
                    self.each_condition(plan, *to, condition, *active);
                }
                Step::Write { slot, write, with } => {
                    let mask = &self.masks[ACTIVE];
                    let (to, with) = Self::column_and(&mut self.columns, *slot, *with);
                    match write {
                        Write::Set => to.set_where(mask, with),
                        Write::Add => to.add_where(mask, with),
                        Write::Subtract => to.subtract_where(mask, with),
                        Write::Multiply => to.multiply_where(mask, with),
                    }
                }
                Step::Push { list, with } => self.push_where_active(plan, *list, *with),
                Step::Pop { list } => {
                    let mask = &self.masks[ACTIVE];
                    self.exceptional.add_zero(mask, Numbers::Each(self.lists[*list].length()));
                    self.lists[*list].pop_where(mask);
                }
                Step::Schedule { site } => self.schedule(plan, *site),
                Step::EachMutation { mutation } => self.each_mutation(plan, mutation),
                Step::NotEmpty { to, list } => {
                    let (zero, lengths) = (Numbers::All(0.0), Numbers::Each(self.lists[*list].length()));
                    self.masks[*to].compare(Combine::Set, Relation::Less, zero, lengths);
                }
                Step::Iterate(Loop { list, active, current, element, body }) => {
                    for index in 0..self.lists[*list].longest() {
                        let (to, active) = self.mask_and(*current, *active);
                        to.clone_from(active);
                        narrow_to_longer(self.lists[*list].length(), index, &mut self.masks[*current]);
                        if !self.masks[*current].any() {
                            break;
                        }
                        if let Some(items) = self.lists[*list].items(index) {
                            self.columns[*element].clone_from(items);
                        }
                        V::run(self, plan, body);
                    }
                }
                Step::Fill { to, holds } => self.masks[*to].fill(*holds),
                Step::Copy { to, from } => {
                    let (to, from) = self.mask_and(*to, *from);
                    to.clone_from(from);
                }
                Step::And { to, with } => {
                    let (to, with) = self.mask_and(*to, *with);
                    to.and(with);
                }
                Step::AndNot { to, with } => {
                    let (to, with) = self.mask_and(*to, *with);
                    to.and_not(with);
                }
                Step::Or { to, with } => {
                    let (to, with) = self.mask_and(*to, *with);
                    to.or(with);
                }
                Step::Invert { to } => self.masks[*to].invert(),
            }
        }
    }

    fn each_value(&mut self, plan: &Plan, to: usize, scalar: &Scalar, active: usize) {
        for lane in self.masks[active].lanes() {
            match SingleRun::new(plan, self, lane).value(scalar) {
                Some(number) => self.set_number(to, lane, number),
                None => self.exceptional.set(lane, true),
            }
        }
    }

    fn each_condition(&mut self, plan: &Plan, to: usize, condition: &Condition, active: usize) {
        let mut result = Mask::NONE;
        for lane in self.masks[active].lanes() {
            match SingleRun::new(plan, self, lane).holds(condition) {
                Some(holds) => result.set(lane, holds),
                None => self.exceptional.set(lane, true),
            }
        }
        self.masks[to] = result;
    }

    /// Schedule a site in active lanes. It replaces entries with the same name.
    #[inline(always)]
    fn schedule(&mut self, plan: &Plan, site: usize) {
        let mask = self.masks[ACTIVE].clone();
        let place = &plan.sites[site];
        // An entry that is due but not executed still needs its frozen values.
        let mut busy = mask.clone();
        busy.and(&self.due[site]);
        self.exceptional.or(&busy);
        for other in plan.sites.iter().filter(|other| other.name == place.name) {
            self.columns[other.due].set_where(&mask, Numbers::All(f64::INFINITY));
        }
        for (column, value) in &place.frozen {
            if let Scalar::Column(from) = value {
                let (to, from) = Self::column_and(&mut self.columns, *column, Operand::Column(*from));
                to.set_where(&mask, from);
            }
        }
        let mut due = self.columns[plan.turn].clone();
        due.delay(place.when);
        self.columns[place.due].set_where(&mask, Numbers::Each(&due));
        self.columns[place.order].set_where(&mask, Numbers::Each(&self.scheduled));
        self.scheduled.add_where(&mask, Numbers::All(1.0));
    }

    /// As `schedule`, in one lane. Return `None` if the run is exceptional.
    pub(super) fn schedule_in(&mut self, plan: &Plan, lane: usize, site: usize) -> Option<()> {
        let place = plan.sites.get(site)?;
        if self.due[site].get(lane) {
            return None;
        }
        for other in plan.sites.iter().filter(|other| other.name == place.name) {
            self.set_number(other.due, lane, f64::INFINITY);
        }
        for (column, value) in &place.frozen {
            let value = SingleRun::new(plan, self, lane).value(value)?;
            self.set_number(*column, lane, value);
        }
        self.set_number(place.due, lane, turn_of(place.when, self.number(plan.turn, lane)));
        self.set_number(place.order, lane, self.scheduled.get(lane));
        self.scheduled.set(lane, self.scheduled.get(lane) + 1.0);
        Some(())
    }

    /// Load the entries that are pending at the start of a run.
    #[expect(clippy::cast_precision_loss, reason = "a count of entries")]
    pub(super) fn load_pending(&mut self, plan: &Plan, lane: usize) {
        plan.sites.iter().for_each(|site| self.set_number(site.due, lane, f64::INFINITY));
        let pending = &plan.start.pending;
        for (order, (site, due)) in pending.iter().enumerate() {
            let place = &plan.sites[*site];
            self.set_number(place.due, lane, *due);
            self.set_number(place.order, lane, order as f64);
        }
        self.scheduled.set(lane, pending.len() as f64);
    }

    fn push_where_active(&mut self, plan: &Plan, list: usize, with: Operand) {
        for lane in self.masks[ACTIVE].lanes() {
            let element = match with {
                Operand::Column(column) => self.number(column, lane),
                Operand::Constant(number) => number,
            };
            if self.lists[list].push(lane, element) > plan.most_elements {
                self.exceptional.set(lane, true);
            }
        }
    }

    fn each_mutation(&mut self, plan: &Plan, mutation: &Mutation) {
        for lane in self.masks[ACTIVE].lanes() {
            let done = action_log::apply_mutation(plan, self, lane, mutation);
            self.mark_failure(lane, done);
        }
    }

    /// Mark a lane as exceptional if an operation failed.
    pub(super) fn mark_failure(&mut self, lane: usize, done: Option<()>) {
        if done.is_none() {
            self.exceptional.set(lane, true);
        }
    }
}
