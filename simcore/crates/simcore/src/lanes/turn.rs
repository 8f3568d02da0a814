//! A turn of 64 runs, in the order that a turn has: due schedules; an action; one random event and those that last;
//! decay; conditions.

use std::sync::LazyLock;

use crate::personas::Persona;
use crate::plan::ir::{Consequence, Relation};
use crate::plan::{Domain, Param, Plan};
use crate::rng::{INCREMENT, choose, mix, stream_key, unit};
use crate::turn::PARAM_TRIES;

use super::Runs;
use super::block::Block;
use super::code::{ACTIVE, Code, RESULT};
use super::deeds;
use super::isa::Vectors;
use super::registers::Registers;
use super::vectors::{Column, Combine, Integers, LANES, Mask, Numbers};

pub(super) static POLICY_KEY: LazyLock<u64> = LazyLock::new(|| stream_key("policy"));
pub(super) static EVENT_KEY: LazyLock<u64> = LazyLock::new(|| stream_key("event"));

impl Block<'_> {
    /// Play all runs of the task to their ends.
    #[inline(always)]
    pub(super) fn play<V: Vectors>(&mut self, result: &mut Runs) {
        while self.playing.any() {
            self.turn::<V>(result);
        }
    }

    #[inline(always)]
    fn turn<V: Vectors>(&mut self, result: &mut Runs) {
        self.open::<V>();
        if self.task.persona == Persona::Random {
            self.act::<V>();
        }
        self.happen::<V>();
        self.decay();
        self.judge::<V>(result);
    }

    /// Carry out what is due, in the order of scheduling: nothing is ever due earlier than now.
    #[inline(always)]
    fn open<V: Vectors>(&mut self) {
        let machine = self.machine;
        let sites = &machine.plan.sites;
        if sites.is_empty() {
            return;
        }
        let now = self.now();
        for (index, site) in sites.iter().enumerate() {
            let mut due = Mask::NONE;
            let turns = Numbers::Each(self.registers.column(site.due));
            due.compare(Combine::Set, Relation::AtMost, turns, Numbers::Each(&now));
            due.and(&self.playing);
            if due.any() {
                self.registers.column_mut(site.due).set_where(&due, Numbers::All(f64::INFINITY));
            }
            if let Some(to) = self.registers.due.get_mut(index) {
                to.clone_from(&due);
            }
        }
        loop {
            let orders = sites.iter().map(|site| self.registers.column(site.order));
            let Some(first) = first_of(self.registers.due.iter().zip(orders)) else { return };
            for (index, site) in sites.iter().enumerate() {
                let order = self.registers.column(site.order).clone();
                let Some(due) = self.registers.due.get_mut(index).filter(|due| due.any()) else { continue };
                let hit = due.take_where_equal(&order, &first);
                if hit.any() {
                    self.carry_out::<V>(machine.sites.get(index), &hit);
                }
            }
        }
    }

    #[inline(always)]
    fn now(&self) -> Column {
        self.registers.column(self.machine.plan.turn).clone()
    }

    // --- the action ---

    #[inline(always)]
    fn act<V: Vectors>(&mut self) {
        let machine = self.machine;
        // Each draw of a turn adds one increment more.
        let mut cursor = self.counter.clone();
        cursor.add(INCREMENT);
        let mut choices = Integers::ZERO;
        for (index, (action, code)) in machine.plan.actions.iter().zip(&machine.legal).enumerate() {
            if action.depends_on_params {
                self.try_params::<V>(index, &mut cursor);
            }
            let Some(legal) = self.legal.get_mut(index) else { continue };
            if !action.depends_on_params {
                where_it_holds::<V>(&mut self.registers, &machine.plan, code, &self.playing, legal);
                if let Some(drawn) = self.drawn.get_mut(index) {
                    drawn.clone_from(&cursor);
                    let draws = INCREMENT.wrapping_mul(action.params.len() as u64);
                    cursor.add(draws.wrapping_mul(PARAM_TRIES as u64));
                    // Where it is legal, the first try was enough.
                    cursor.add_where(legal, draws.wrapping_mul(1_u64.wrapping_sub(PARAM_TRIES as u64)));
                }
            }
            choices.count(legal);
        }
        let mut pick = choices;
        for ((pick, policy), cursor) in pick.0.iter_mut().zip(&self.policy.0).zip(&cursor.0) {
            *pick = ((mix(policy.wrapping_add(*cursor)) >> 32) * *pick) >> 32;
        }
        let mut chosen = Integers([u64::MAX; LANES]);
        for (index, action) in machine.plan.actions.iter().enumerate() {
            let mut hit = Mask::NONE;
            if let Some(legal) = self.legal.get(index) {
                pick.count_down(legal, &mut hit);
            }
            if !action.params.is_empty() {
                self.draw_params(index, &hit);
                self.refuse_illegal(&action.params, &mut hit);
            }
            if machine.actions_masked {
                self.carry_out::<V>(machine.actions.get(index), &hit);
            } else {
                chosen.set_where(&hit, index as u64);
            }
        }
        if !machine.actions_masked {
            self.carry_out_each(&chosen, |index| {
                machine.plan.actions.get(index).map(|action| &action.consequence)
            });
        }
    }

    /// Draw parameters until the action is legal with them, up to a few times.
    #[inline(always)]
    fn try_params<V: Vectors>(&mut self, index: usize, cursor: &mut Integers) {
        let machine = self.machine;
        let (Some(action), Some(code)) = (machine.plan.actions.get(index), machine.legal.get(index)) else {
            return;
        };
        let mut open = self.playing.clone();
        for _ in 0..PARAM_TRIES {
            if let Some(drawn) = self.drawn.get_mut(index) {
                for ((drawn, cursor), open) in drawn.0.iter_mut().zip(&cursor.0).zip(&open.0) {
                    *drawn = (*cursor & open) | (*drawn & !open);
                }
            }
            self.draw_params(index, &open);
            cursor.add_where(&open, INCREMENT.wrapping_mul(action.params.len() as u64));
            let mut holds = Mask::NONE;
            where_it_holds::<V>(&mut self.registers, &machine.plan, code, &open, &mut holds);
            open.and_not(&holds);
            if !open.any() {
                break;
            }
        }
        if let Some(legal) = self.legal.get_mut(index) {
            legal.clone_from(&self.playing);
            legal.and_not(&open);
        }
    }

    /// The parameters of an action, drawn from where its draws were counted.
    #[inline(always)]
    fn draw_params(&mut self, index: usize, mask: &Mask) {
        let (Some(action), Some(drawn)) = (self.machine.plan.actions.get(index), self.drawn.get(index))
        else {
            return;
        };
        let mut offset = 0_u64;
        for param in &action.params {
            let mut value = Column::ZERO;
            for ((value, policy), cursor) in value.0.iter_mut().zip(&self.policy.0).zip(&drawn.0) {
                *value = param.domain.pick(mix(policy.wrapping_add(cursor.wrapping_add(offset))));
            }
            self.registers.column_mut(param.column).set_where(mask, Numbers::Each(&value));
            offset = offset.wrapping_add(INCREMENT);
        }
    }

    /// A number may have been rounded beyond its bounds; such an action is rejected, and that is no failure.
    #[inline(always)]
    fn refuse_illegal(&mut self, params: &[Param], hit: &mut Mask) {
        for param in params {
            if let Domain::Numbers { low, high } = param.domain {
                let column = self.registers.column(param.column);
                for (hit, number) in hit.0.iter_mut().zip(&column.0) {
                    *hit &= 0_u64.wrapping_sub(u64::from(low <= *number && *number <= high));
                }
            }
        }
    }

    // --- consequences ---

    /// What a rule does, wherever the mask is set.
    #[inline(always)]
    fn carry_out<V: Vectors>(&mut self, code: Option<&Code>, mask: &Mask) {
        if let Some(code) = code {
            self.registers.mask_mut(ACTIVE).clone_from(mask);
            V::run(&mut self.registers, &self.machine.plan, code);
        }
    }

    /// What the rule that each run has come to does in it.
    fn carry_out_each<'c>(&mut self, chosen: &Integers, rule: impl Fn(usize) -> Option<&'c Consequence>) {
        for (lane, &index) in chosen.0.iter().enumerate() {
            if let Some(consequence) = usize::try_from(index).ok().and_then(&rule) {
                self.carry_out_in(lane, consequence);
            }
        }
    }

    fn carry_out_in(&mut self, lane: usize, consequence: &Consequence) {
        let done = deeds::consequence(&self.machine.plan, &mut self.registers, lane, consequence);
        self.registers.note(lane, done);
    }

    // --- events ---

    #[inline(always)]
    fn happen<V: Vectors>(&mut self) {
        let machine = self.machine;
        let plan = &machine.plan;
        if plan.events.is_empty() {
            return;
        }
        let now = self.now();
        for (goes_on, until) in self.goes_on.iter_mut().zip(&self.until) {
            goes_on.compare(Combine::Set, Relation::AtMost, Numbers::Each(&now), Numbers::Each(until));
            goes_on.and(&self.playing);
        }
        let mut total = Column::ZERO;
        for (index, (event, code)) in plan.events.iter().zip(&machine.when).enumerate() {
            let mut open = self.playing.clone();
            if let Some(place) = machine.lasting.iter().position(|event| *event == index)
                && let Some(goes_on) = self.goes_on.get(place)
            {
                open.and_not(goes_on);
            }
            let Some(may) = self.eligible.get_mut(index) else { continue };
            where_it_holds::<V>(&mut self.registers, plan, code, &open, may);
            total.add_where(may, Numbers::All(event.weight));
        }
        let mut threshold = Column::ZERO;
        for (((threshold, event), counter), total) in
            threshold.0.iter_mut().zip(&self.event.0).zip(&self.counter.0).zip(&total.0)
        {
            let drawn = unit(mix(event.wrapping_add(counter.wrapping_add(INCREMENT))));
            *threshold = if *total <= 1.0 { drawn } else { drawn * *total };
        }
        self.let_happen::<V>(&threshold, &now);
        self.go_on::<V>();
    }

    /// Let the event happen that the draw has come to, if any.
    #[inline(always)]
    fn let_happen<V: Vectors>(&mut self, threshold: &Column, now: &Column) {
        let machine = self.machine;
        let mut open = self.playing.clone();
        let mut reached = Column::ZERO;
        let mut chosen = Integers([u64::MAX; LANES]);
        for (index, event) in machine.plan.events.iter().enumerate() {
            let Some(may) = self.eligible.get(index) else { continue };
            reached.add_where(may, Numbers::All(event.weight));
            let mut hit = Mask::NONE;
            for ((((hit, may), open), reached), threshold) in
                hit.0.iter_mut().zip(&may.0).zip(&mut open.0).zip(&reached.0).zip(&threshold.0)
            {
                *hit = may & *open & 0_u64.wrapping_sub(u64::from(threshold < reached));
                *open &= !*hit;
            }
            if machine.events_masked {
                self.carry_out::<V>(machine.events.get(index), &hit);
            } else {
                chosen.set_where(&hit, index as u64);
            }
            if event.turns > 1 {
                self.begin_lasting(index, &hit, now);
            }
        }
        if !machine.events_masked {
            self.carry_out_each(&chosen, |index| {
                machine.plan.events.get(index).map(|event| &event.consequence)
            });
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a count of turns")]
    fn begin_lasting(&mut self, index: usize, hit: &Mask, now: &Column) {
        let Some(place) = self.machine.lasting.iter().position(|event| *event == index) else { return };
        let turns = self.machine.plan.events.get(index).map_or(1, |event| event.turns) as f64;
        if let (Some(until), Some(since)) = (self.until.get_mut(place), self.since.get_mut(place)) {
            let mut last = now.clone();
            last.subtract(1.0 - turns);
            until.set_where(hit, Numbers::Each(&last));
            since.set_where(hit, Numbers::Each(now));
        }
    }

    /// What the events do that began earlier and still last, in the order in which they began.
    #[inline(always)]
    fn go_on<V: Vectors>(&mut self) {
        let machine = self.machine;
        if let ([index], [mask]) = (machine.lasting.as_slice(), self.goes_on.as_slice()) {
            let mask = mask.clone();
            self.carry_out::<V>(machine.events.get(*index), &mask);
            return;
        }
        while let Some(first) = first_of(self.goes_on.iter().zip(&self.since)) {
            for (place, index) in machine.lasting.iter().enumerate() {
                let goes_on = self.goes_on.get_mut(place).filter(|goes_on| goes_on.any());
                let (Some(goes_on), Some(since)) = (goes_on, self.since.get(place)) else { continue };
                let hit = goes_on.take_where_equal(since, &first);
                if hit.any() {
                    self.carry_out::<V>(machine.events.get(*index), &hit);
                }
            }
        }
    }

    // --- the end of a turn ---

    #[inline(always)]
    fn decay(&mut self) {
        for (slot, amount) in &self.machine.plan.decay {
            self.registers.column_mut(*slot).subtract(*amount);
            if self.registers.may_overflow {
                self.registers.check_finite(*slot, &self.playing);
            }
        }
    }

    /// The first condition that holds ends a run; so does the horizon.
    #[inline(always)]
    fn judge<V: Vectors>(&mut self, result: &mut Runs) {
        let machine = self.machine;
        let mut open = self.playing.clone();
        for (index, code) in machine.ends.iter().enumerate() {
            let mut holds = Mask::NONE;
            where_it_holds::<V>(&mut self.registers, &machine.plan, code, &open, &mut holds);
            self.condition.set_where(&holds, index as u64);
            open.and_not(&holds);
        }
        let mut ended = self.playing.clone();
        ended.and_not(&open);
        let mut over = Mask::NONE;
        let horizon = Numbers::All(self.horizon);
        over.compare(Combine::Set, Relation::AtMost, horizon, Numbers::Each(&self.now()));
        over.or(&ended);
        over.or(&self.registers.exceptional);
        over.and(&self.playing);
        // The turn of a run that is over stays: it is how many it has had.
        let mut goes_on = self.playing.clone();
        goes_on.and_not(&over);
        self.registers.column_mut(machine.plan.turn).add_where(&goes_on, Numbers::All(1.0));
        self.counter.add_where(&goes_on, INCREMENT.wrapping_mul(1 << 32));
        if over.any() {
            self.replace(&over, &ended, result);
        }
    }
}

/// Where a condition holds, among the runs in which it matters.
#[inline(always)]
fn where_it_holds<V: Vectors>(
    registers: &mut Registers,
    plan: &Plan,
    code: &Code,
    active: &Mask,
    result: &mut Mask,
) {
    registers.mask_mut(ACTIVE).clone_from(active);
    V::run(registers, plan, code);
    result.set_to_both(registers.mask(RESULT), active);
}

/// The least of the numbers whose masks are set, in each run; `None` when no mask is set anywhere.
#[inline(always)]
fn first_of<'a>(numbers: impl Iterator<Item = (&'a Mask, &'a Column)>) -> Option<Column> {
    let mut first = Column([f64::INFINITY; LANES]);
    let mut is_there = false;
    for (mask, column) in numbers.filter(|(mask, _)| mask.any()) {
        is_there = true;
        first.least_where(mask, column);
    }
    is_there.then_some(first)
}

impl Domain {
    /// What a draw comes to.
    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^32 integers")]
    fn pick(&self, draw: u64) -> f64 {
        match self {
            Self::Only(value) => *value,
            Self::Options(options) => {
                let index = usize::try_from(choose(draw, options.len() as u64)).unwrap_or(0);
                options.get(index).copied().unwrap_or(0.0)
            }
            Self::Integers { low, count } => low + (((draw >> 32) * count) >> 32) as f64,
            Self::Numbers { low, high } => low + unit(draw) * (high - low) + 0.0,
        }
    }
}
