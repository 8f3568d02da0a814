//! Block of 64 lanes: assignment of runs to lanes, and the results of finished runs.

use crate::canonical_json;
use crate::ir::Plan;
use crate::personas::ROLLOUT_KEY;
use crate::rng::{INCREMENT, choose, draw, mix, run_seed};
use crate::value::Value;

use super::counters::Counters;
use super::lookahead::Lookahead;
use super::machine::Machine;
use super::registers::Registers;
use super::turn::{EVENT_KEY, POLICY_KEY};
use super::vectors::{Column, Integers, LANES, Mask};
use super::{Ended, Runs, Task};

/// Runs in progress.
pub(super) struct Block<'a> {
    pub(super) machine: &'a Machine,
    pub(super) task: Task<'a>,
    pub(super) registers: Registers,
    /// Lanes with a run.
    pub(super) playing: Mask,
    /// The number of the run in each lane.
    runs: Integers,
    next_run: u64,
    /// The first mixing round of each stream, from the seed of the run and the key of the stream.
    pub(super) policy: Integers,
    pub(super) event: Integers,
    pub(super) rollout: Integers,
    /// The turn part of the draw counter.
    pub(super) counter: Integers,
    /// For each action the lanes in which it is legal, and for each event those in which it can occur.
    pub(super) legal: Vec<Mask>,
    pub(super) eligible: Vec<Mask>,
    /// For each action the counter of its parameter draws.
    pub(super) drawn: Vec<Integers>,
    /// For each lasting event its last turn, and the turn of its start.
    pub(super) until: Vec<Column>,
    pub(super) since: Vec<Column>,
    /// Lanes whose run has ended in this turn, and the condition that ended it.
    pub(super) ended: Mask,
    pub(super) condition: Integers,
    /// For each lasting event the lanes in which it lasts in this turn.
    pub(super) lasting_now: Vec<Mask>,
    /// The last turn that a run may reach.
    pub(super) last_turn: f64,
    /// The turn in which the persona has already acted, if any.
    pub(super) acted_in: Option<f64>,
    /// Counters for statistics, if requested.
    pub(super) counters: Option<Counters<'a>>,
    pub(super) lookahead: Lookahead,
}

impl<'a> Block<'a> {
    pub(super) fn new(machine: &'a Machine, task: Task<'a>) -> Self {
        let plan = &machine.plan;
        let lists = plan.layout.lists.len();
        #[expect(clippy::cast_precision_loss, reason = "counts of turns")]
        let (first_turn, last_turn) = ((plan.start.turn + 1) as f64, (plan.start.turn + task.horizon) as f64);
        let draws_params = plan.actions.iter().any(|action| !action.params.is_empty());
        let mut block = Self {
            registers: Registers::new(
                machine.columns,
                machine.masks,
                lists,
                plan.sites.len(),
                plan.may_overflow(task.horizon),
            ),
            playing: Mask::NONE,
            runs: Integers::ZERO,
            next_run: task.runs.start,
            policy: Integers::ZERO,
            event: Integers::ZERO,
            rollout: Integers::ZERO,
            counter: Integers::ZERO,
            legal: vec![Mask::NONE; plan.actions.len()],
            eligible: vec![Mask::NONE; plan.events.len()],
            drawn: vec![Integers::ZERO; if draws_params { plan.actions.len() } else { 0 }],
            until: vec![Column::ZERO; machine.lasting.len()],
            since: vec![Column::ZERO; machine.lasting.len()],
            ended: Mask::NONE,
            condition: Integers::ZERO,
            lasting_now: vec![Mask::NONE; machine.lasting.len()],
            last_turn,
            acted_in: task.acted.then_some(first_turn),
            counters: task.watched.map(|watched| Counters::new(plan, watched)),
            lookahead: Lookahead::default(),
            machine,
            task,
        };
        (0..LANES).for_each(|lane| block.start_run(lane));
        block
    }

    /// Start the next run in a lane, if there is one.
    fn start_run(&mut self, lane: usize) {
        let has_run = self.next_run < self.task.runs.end;
        self.playing.set(lane, has_run);
        if !has_run {
            return;
        }
        let run = self.next_run;
        self.next_run += 1;
        let seed = run_seed(self.task.seed, run);
        self.runs.set(lane, run);
        self.policy.set(lane, mix(seed ^ *POLICY_KEY));
        self.event.set(lane, mix(seed ^ *EVENT_KEY));
        self.rollout.set(lane, mix(seed ^ *ROLLOUT_KEY));
        let plan = &self.machine.plan;
        let first_turn = plan.start.turn + 1;
        self.counter.set(lane, INCREMENT.wrapping_mul(first_turn << 32));
        for (slot, place) in plan.layout.slots.iter().enumerate() {
            self.registers.set_number(slot, lane, place.initial);
        }
        for deal in &plan.start.deals {
            let drawn = choose(draw(seed, deal.key, 0, 0), deal.values.len() as u64);
            let value = usize::try_from(drawn).ok().and_then(|drawn| deal.values.get(drawn));
            self.registers.set_number(deal.slot, lane, value.copied().unwrap_or_default());
        }
        #[expect(clippy::cast_precision_loss, reason = "a count of turns")]
        self.registers.set_number(plan.turn, lane, first_turn as f64);
        for (list, place) in plan.layout.lists.iter().enumerate() {
            self.registers.list_mut(list).assign(lane, &place.initial);
        }
        let lasting = self.until.iter_mut().zip(&mut self.since);
        for ((until, since), ongoing) in lasting.zip(&self.machine.ongoing) {
            until.set(lane, ongoing.0);
            since.set(lane, ongoing.1);
        }
        self.registers.load_pending(plan, lane);
        if let Some(counters) = &mut self.counters {
            counters.start(&self.registers, lane);
        }
    }

    /// Count the finished runs of lanes, and start others there.
    pub(super) fn replace(&mut self, over: &Mask, result: &mut Runs) {
        for lane in over.lanes() {
            let run = self.runs.get(lane);
            if self.registers.exceptional.get(lane) {
                self.registers.exceptional.set(lane, false);
                result.exceptional.push(run);
            } else {
                let condition =
                    usize::try_from(self.condition.get(lane)).ok().filter(|_| self.ended.get(lane));
                self.count_run(run, lane, condition, result);
            }
            self.start_run(lane);
        }
        if result.should_abandon() {
            self.abandon(result);
        }
    }

    /// Leave all unfinished runs to the interpreter.
    fn abandon(&mut self, result: &mut Runs) {
        let under_way = self.playing.lanes().map(|lane| self.runs.get(lane));
        result.exceptional.extend(under_way);
        result.exceptional.extend(self.next_run..self.task.runs.end);
        self.next_run = self.task.runs.end;
        self.playing = Mask::NONE;
    }

    fn count_run(&mut self, run: u64, lane: usize, condition: Option<usize>, result: &mut Runs) {
        let plan = &self.machine.plan;
        let turns = self.registers.number(plan.turn, lane);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of turns")]
        let turns = turns as u64 - plan.start.turn;
        let ended = match condition {
            None => Ended::Survived,
            Some(condition) => match condition.checked_sub(plan.losses.len()) {
                None => Ended::Lost(condition),
                Some(condition) => Ended::Won(condition),
            },
        };
        if self.task.digest {
            // Hashed immediately, because the trees of many runs would need much memory.
            let Ok(tree) = canonical_json::text(&self.tree(lane)) else {
                result.exceptional.push(run);
                return;
            };
            result.states.push((run, ended, turns, canonical_json::sha256_hex(tree.as_bytes())));
        }
        result.count(ended, turns);
        if let (Some(counters), Some(detail)) = (&self.counters, &mut result.detail) {
            counters.add_to(detail, &self.registers, lane);
        }
    }

    /// Return the state of a lane as a tree.
    fn tree(&self, lane: usize) -> Value {
        let Plan { layout, start, .. } = &self.machine.plan;
        let mut tree = start.tree.clone();
        let mut put = |path, value| {
            if let Some(place) = crate::paths::lookup_mut(&mut tree, path) {
                *place = value;
            }
        };
        for (slot, place) in layout.slots.iter().enumerate() {
            put(&place.path, layout.value(place.kind, self.registers.number(slot, lane)));
        }
        for (list, place) in layout.lists.iter().enumerate() {
            let kind = place.element();
            let items = self.registers.list(list).elements(lane).map(|item| layout.value(kind, item));
            put(&place.path, items.collect());
        }
        tree
    }
}
