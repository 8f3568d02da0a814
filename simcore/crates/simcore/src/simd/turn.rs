//! One turn of 64 lanes, in the order of a turn: due schedules; an action; one random event and lasting
//! events; decay; conditions.

use std::sync::LazyLock;

use crate::ir::Plan;
use crate::ir::types::{Consequence, Relation};
use crate::personas::Persona;
use crate::rng::{INCREMENT, mix, stream_key, unit};

use super::Runs;
use super::action_log;
use super::block::Block;
use super::code::{ACTIVE, Code, RESULT};
use super::isa::Vectors;
use super::registers::Registers;
use super::vectors::{Column, Combine, Integers, LANES, Mask, Numbers};

pub(super) static POLICY_KEY: LazyLock<u64> = LazyLock::new(|| stream_key("policy"));
pub(super) static EVENT_KEY: LazyLock<u64> = LazyLock::new(|| stream_key("event"));

impl<'a> Block<'a> {
    /// Play all runs of the task to their end.
    #[inline(always)]
    pub(super) fn play<V: Vectors>(&mut self, result: &mut Runs) {
        while self.playing.any() {
            let persona = self.task.persona;
            if !matches!(persona, Persona::Idle | Persona::Random) {
                self.open::<V>();
                self.apply_best::<V>();
            }
            V::turn(self, persona == Persona::Random);
            self.finish_turn(result);
        }
    }

    /// Open a turn if necessary, and play it to its end. Optionally start with a random action.
    #[inline(always)]
    pub(super) fn turn<V: Vectors>(&mut self, acts_at_random: bool) {
        self.open::<V>();
        if acts_at_random {
            self.act_at_random::<V>();
        }
        let ends_early = self.machine.plan.ends_early;
        let early = if ends_early { self.end_early::<V>() } else { Mask::NONE };
        self.apply_events::<V>();
        self.decay::<V>();
        self.check_end_conditions::<V>();
        if ends_early {
            self.playing.or(&early);
            self.ended.or(&early);
        }
    }

    /// Check the end conditions before the random event. The lanes whose run ends leave the rest of the turn.
    #[inline(always)]
    fn end_early<V: Vectors>(&mut self) -> Mask {
        self.check_end_conditions::<V>();
        let early = self.ended.clone();
        self.playing.and_not(&early);
        early
    }

    /// Execute due entries in the order of scheduling. A repeated call has no effect.
    #[inline(always)]
    pub(super) fn open<V: Vectors>(&mut self) {
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
            let Some(first) = least_of(self.registers.due.iter().zip(orders)) else { return };
            for (index, site) in sites.iter().enumerate() {
                let order = self.registers.column(site.order).clone();
                let Some(due) = self.registers.due.get_mut(index).filter(|due| due.any()) else { continue };
                let hit = due.take_where_equal(&order, &first);
                if hit.any() {
                    self.run_rule::<V>(machine.sites.get(index), &hit);
                }
            }
        }
    }

    #[inline(always)]
    pub(super) fn now(&self) -> Column {
        self.registers.column(self.machine.plan.turn).clone()
    }

    // --- rules ---

    /// Execute the code of a rule in the lanes of a mask.
    #[inline(always)]
    pub(super) fn run_rule<V: Vectors>(&mut self, code: Option<&Code>, mask: &Mask) {
        if let Some(code) = code {
            self.registers.mask_mut(ACTIVE).clone_from(mask);
            V::run(&mut self.registers, &self.machine.plan, code);
        }
    }

    /// Execute the code of an action in the lanes of a mask, by the variant of each lane.
    #[inline(always)]
    pub(super) fn run_action<V: Vectors>(&mut self, index: usize, mask: &Mask) {
        let machine = self.machine;
        self.run_rule::<V>(machine.actions.get(index), mask);
        let variants = machine.plan.actions.get(index).map_or(&[][..], |action| action.variants.as_slice());
        for (place, variant) in variants.iter().enumerate() {
            let mut chosen = mask.clone();
            for (column, value) in &variant.values {
                let given = Numbers::Each(self.registers.column(*column));
                chosen.compare(Combine::And, Relation::Equal, given, Numbers::All(*value));
            }
            if chosen.any() {
                self.run_rule::<V>(machine.variants.get(index).and_then(|codes| codes.get(place)), &chosen);
            }
        }
    }

    /// Return the consequence of an action in a lane.
    pub(super) fn consequence_in(&self, lane: usize, index: usize) -> Option<&'a Consequence> {
        let action = self.machine.plan.actions.get(index)?;
        let is_given = |(column, value): &(usize, f64)| self.registers.number(*column, lane) == *value;
        let variant = action.variants.iter().find(|variant| variant.values.iter().all(is_given));
        Some(variant.map_or(&action.consequence, |variant| &variant.consequence))
    }

    /// Apply the chosen rule of each lane.
    pub(super) fn run_rule_per_lane<'c>(
        &mut self,
        chosen: &Integers,
        rule: impl Fn(&Self, usize, usize) -> Option<&'c Consequence>,
    ) {
        for (lane, &index) in chosen.0.iter().enumerate() {
            let index = usize::try_from(index).ok();
            if let Some(consequence) = index.and_then(|index| rule(self, lane, index)) {
                self.run_rule_in(lane, consequence);
            }
        }
    }

    fn run_rule_in(&mut self, lane: usize, consequence: &Consequence) {
        let done = action_log::apply_consequence(&self.machine.plan, &mut self.registers, lane, consequence);
        self.registers.mark_failure(lane, done);
    }

    // --- events ---

    #[inline(always)]
    fn apply_events<V: Vectors>(&mut self) {
        let machine = self.machine;
        let plan = &machine.plan;
        if plan.events.is_empty() {
            return;
        }
        let now = self.now();
        self.find_lasting_events(&now);
        let mut total = Column::ZERO;
        for (index, event) in plan.events.iter().enumerate() {
            let mut may = self.playing.clone();
            self.narrow_to_eligible::<V>(index, &mut may);
            total.add_where(&may, Numbers::All(event.weight));
            if let Some(eligible) = self.eligible.get_mut(index) {
                eligible.clone_from(&may);
            }
        }
        let mut threshold = Column::ZERO;
        for (((threshold, event), counter), total) in
            threshold.0.iter_mut().zip(&self.event.0).zip(&self.counter.0).zip(&total.0)
        {
            let drawn = unit(mix(event.wrapping_add(counter.wrapping_add(INCREMENT))));
            *threshold = if *total <= 1.0 { drawn } else { drawn * *total };
        }
        self.apply_drawn_event::<V>(&threshold, &now);
        self.apply_lasting_events::<V>();
    }

    /// Find the lanes in which earlier events still last.
    #[inline(always)]
    pub(super) fn find_lasting_events(&mut self, now: &Column) {
        for (lasting_now, until) in self.lasting_now.iter_mut().zip(&self.until) {
            lasting_now.compare(Combine::Set, Relation::AtMost, Numbers::Each(now), Numbers::Each(until));
            lasting_now.and(&self.playing);
        }
    }

    /// Narrow a mask to the lanes in which an event can be drawn.
    #[inline(always)]
    pub(super) fn narrow_to_eligible<V: Vectors>(&mut self, event: usize, mask: &mut Mask) {
        let machine = self.machine;
        if let Some(place) = machine.lasting.iter().position(|lasting| *lasting == event)
            && let Some(lasting_now) = self.lasting_now.get(place)
        {
            mask.and_not(lasting_now);
        }
        if let Some(code) = machine.when.get(event) {
            let open = mask.clone();
            evaluate_condition::<V>(&mut self.registers, &machine.plan, code, &open, mask);
        }
    }

    /// Apply the drawn event of each lane, if any.
    #[inline(always)]
    fn apply_drawn_event<V: Vectors>(&mut self, threshold: &Column, now: &Column) {
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
            if let Some(counters) = &mut self.counters {
                counters.count_drawn(index, &hit);
            }
            if machine.events_masked {
                self.run_rule::<V>(machine.events.get(index), &hit);
            } else {
                chosen.set_where(&hit, index as u64);
            }
            if event.turns > 1 {
                self.start_lasting_event(index, &hit, now);
            }
        }
        if !machine.events_masked {
            self.run_rule_per_lane(&chosen, |_, _, index| {
                machine.plan.events.get(index).map(|event| &event.consequence)
            });
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a count of turns")]
    fn start_lasting_event(&mut self, index: usize, hit: &Mask, now: &Column) {
        let Some(place) = self.machine.lasting.iter().position(|event| *event == index) else { return };
        let turns = self.machine.plan.events.get(index).map_or(1, |event| event.turns) as f64;
        if let (Some(until), Some(since)) = (self.until.get_mut(place), self.since.get_mut(place)) {
            let mut last = now.clone();
            last.subtract(1.0 - turns);
            until.set_where(hit, Numbers::Each(&last));
            since.set_where(hit, Numbers::Each(now));
        }
    }

    /// Apply the lasting events in the order of their start.
    #[inline(always)]
    fn apply_lasting_events<V: Vectors>(&mut self) {
        let machine = self.machine;
        if let ([index], [mask]) = (machine.lasting.as_slice(), self.lasting_now.as_slice()) {
            let mask = mask.clone();
            self.run_rule::<V>(machine.events.get(*index), &mask);
            return;
        }
        while let Some(first) = least_of(self.lasting_now.iter().zip(&self.since)) {
            for (place, index) in machine.lasting.iter().enumerate() {
                let lasting_now = self.lasting_now.get_mut(place).filter(|lasting_now| lasting_now.any());
                let (Some(lasting_now), Some(since)) = (lasting_now, self.since.get(place)) else { continue };
                let hit = lasting_now.take_where_equal(since, &first);
                if hit.any() {
                    self.run_rule::<V>(machine.events.get(*index), &hit);
                }
            }
        }
    }

    // --- the end of a turn ---

    #[inline(always)]
    fn decay<V: Vectors>(&mut self) {
        if self.machine.masked_decay.is_some() {
            let playing = self.playing.clone();
            self.run_rule::<V>(self.machine.masked_decay.as_ref(), &playing);
        }
        for (slot, amount) in &self.machine.plan.decay {
            self.registers.column_mut(*slot).subtract(*amount);
            if self.registers.may_overflow {
                self.registers.check_finite(*slot, &self.playing);
            }
        }
    }

    /// Check the end conditions. The first one that holds ends a run.
    #[inline(always)]
    pub(super) fn check_end_conditions<V: Vectors>(&mut self) {
        let machine = self.machine;
        let mut open = self.playing.clone();
        for (index, code) in machine.ends.iter().enumerate() {
            let mut holds = Mask::NONE;
            evaluate_condition::<V>(&mut self.registers, &machine.plan, code, &open, &mut holds);
            self.condition.set_where(&holds, index as u64);
            open.and_not(&holds);
        }
        self.ended.clone_from(&self.playing);
        self.ended.and_not(&open);
    }

    /// Count runs that ended by a condition or at the horizon, and advance the others.
    #[inline(always)]
    fn finish_turn(&mut self, result: &mut Runs) {
        let mut over = Mask::NONE;
        let last_turn = Numbers::All(self.last_turn);
        over.compare(Combine::Set, Relation::AtMost, last_turn, Numbers::Each(&self.now()));
        over.or(&self.ended);
        over.or(&self.registers.exceptional);
        over.and(&self.playing);
        // The turn of a finished run does not advance: it is the number of its turns.
        let mut continuing = self.playing.clone();
        continuing.and_not(&over);
        self.advance(&continuing);
        if over.any() {
            self.replace(&over, result);
        }
    }

    /// Advance runs to their next turn.
    #[inline(always)]
    pub(super) fn advance(&mut self, continuing: &Mask) {
        self.registers.column_mut(self.machine.plan.turn).add_where(continuing, Numbers::All(1.0));
        self.counter.add_where(continuing, INCREMENT.wrapping_mul(1 << 32));
    }
}

/// Evaluate a condition in the active lanes.
#[inline(always)]
pub(super) fn evaluate_condition<V: Vectors>(
    registers: &mut Registers,
    plan: &Plan,
    code: &Code,
    active: &Mask,
    result: &mut Mask,
) {
    registers.mask_mut(ACTIVE).clone_from(active);
    V::run(registers, plan, code);
    result.set_to_and(registers.mask(RESULT), active);
}

/// Return the minimum of the masked numbers in each lane, or `None` if all masks are empty.
#[inline(always)]
fn least_of<'a>(numbers: impl Iterator<Item = (&'a Mask, &'a Column)>) -> Option<Column> {
    let mut first = Column([f64::INFINITY; LANES]);
    let mut is_there = false;
    for (mask, column) in numbers.filter(|(mask, _)| mask.any()) {
        is_there = true;
        first.least_where(mask, column);
    }
    is_there.then_some(first)
}
