//! Lookahead of personas: each candidate is applied in all its lanes, evaluated, and rolled back.

use crate::ir::types::Relation;
use crate::personas::{Persona, ROLLOUT_TURNS, ROLLOUTS, lost_in, won_in};
use crate::rng::{INCREMENT, mix};

use super::block::Block;
use super::checkpoint::Checkpoint;
use super::counters::Counters;
use super::isa::Vectors;
use super::turn::{EVENT_KEY, POLICY_KEY, evaluate_condition};
use super::vectors::{Column, Combine, Integers, LANES, Mask, Numbers};

/// The candidate without an action.
const NO_ACTION: u64 = u64::MAX;

/// Checkpoints of a lookahead, and the best candidate so far.
#[derive(Debug)]
pub(super) struct Lookahead {
    /// For each action the lanes in which it is a candidate.
    candidates: Vec<Mask>,
    before_candidate: Checkpoint,
    before_event: Checkpoint,
    best: Column,
    chosen: Integers,
}

impl Default for Lookahead {
    fn default() -> Self {
        Self {
            candidates: Vec::new(),
            before_candidate: Checkpoint::default(),
            before_event: Checkpoint::default(),
            best: Column::ZERO,
            chosen: Integers::ZERO,
        }
    }
}

impl Lookahead {
    /// Record a candidate in the lanes in which it is better than earlier ones.
    #[inline(always)]
    fn consider(&mut self, candidate: u64, mask: &Mask, value_of: &Column) {
        let mut better = Mask::NONE;
        better.compare(Combine::Set, Relation::Less, Numbers::Each(&self.best), Numbers::Each(value_of));
        better.and(mask);
        self.best.set_where(&better, Numbers::Each(value_of));
        self.chosen.set_where(&better, candidate);
    }
}

impl Block<'_> {
    /// Take the best action in the lanes in which one is better than no action.
    #[inline(always)]
    pub(super) fn apply_best<V: Vectors>(&mut self) {
        self.draw_choices::<V>();
        let mut lookahead = std::mem::take(&mut self.lookahead);
        let mut any = false;
        lookahead.candidates.resize(self.legal.len(), Mask::NONE);
        for (index, candidate) in lookahead.candidates.iter_mut().enumerate() {
            let Some(legal) = self.legal.get(index) else { continue };
            candidate.clone_from(legal);
            self.set_params(index, candidate);
            any |= candidate.any();
        }
        if any {
            lookahead.best = Column([f64::NEG_INFINITY; LANES]);
            lookahead.chosen = Integers([NO_ACTION; LANES]);
            if self.task.persona == Persona::Planner {
                self.rollout_candidates::<V>(&mut lookahead);
            } else {
                self.evaluate_candidates::<V>(&mut lookahead);
            }
            let chosen = &lookahead.chosen;
            self.apply_choices::<V>(|index, _| chosen.equals(index as u64));
        }
        self.lookahead = lookahead;
    }

    // --- one step ahead ---

    #[inline(always)]
    fn evaluate_candidates<V: Vectors>(&mut self, lookahead: &mut Lookahead) {
        let machine = self.machine;
        self.find_lasting_events(&self.now());
        let everywhere = self.playing.clone();
        let value_of = self.candidate_value::<V>(&everywhere, &mut lookahead.before_event);
        lookahead.consider(NO_ACTION, &everywhere, &value_of);
        for (index, write_set) in machine.write_sets.actions.iter().enumerate() {
            let Some(mask) = lookahead.candidates.get(index).filter(|mask| mask.any()).cloned() else {
                continue;
            };
            lookahead.before_candidate.save(&self.registers, write_set);
            self.run_action::<V>(index, &mask);
            let value_of = self.candidate_value::<V>(&mask, &mut lookahead.before_event);
            lookahead.before_candidate.restore(&mut self.registers, write_set);
            lookahead.consider(index as u64, &mask, &value_of);
        }
    }

    /// Return the value of the current state for the persona.
    #[inline(always)]
    fn candidate_value<V: Vectors>(&mut self, mask: &Mask, before_event: &mut Checkpoint) -> Column {
        let mut value_of = self.value::<V>(mask).clone();
        match self.task.persona {
            Persona::Cautious => self.lower_to_worst_event::<V>(mask, &mut value_of, before_event),
            Persona::Saboteur => value_of.negate(),
            _ => {}
        }
        value_of
    }

    /// Lower a value to its minimum after each possible event.
    #[inline(always)]
    fn lower_to_worst_event<V: Vectors>(
        &mut self,
        mask: &Mask,
        value_of: &mut Column,
        before_event: &mut Checkpoint,
    ) {
        let machine = self.machine;
        let mut open = mask.clone();
        if machine.plan.ends_early {
            for code in &machine.ends {
                let (tested, mut holds) = (open.clone(), Mask::NONE);
                evaluate_condition::<V>(&mut self.registers, &machine.plan, code, &tested, &mut holds);
                open.and_not(&holds);
            }
        }
        let mask = &open;
        for (index, write_set) in machine.write_sets.events.iter().enumerate() {
            let mut may = mask.clone();
            self.narrow_to_eligible::<V>(index, &mut may);
            if may.any() {
                before_event.save(&self.registers, write_set);
                self.run_rule::<V>(machine.events.get(index), &may);
                value_of.least_where(&may, self.value::<V>(&may));
                before_event.restore(&mut self.registers, write_set);
            }
        }
    }

    /// Return the heuristic value in the lanes of the mask.
    #[inline(always)]
    fn value<V: Vectors>(&mut self, mask: &Mask) -> &Column {
        self.run_rule::<V>(self.machine.value.as_ref(), mask);
        self.registers.column(self.machine.value_column)
    }

    // --- many turns ahead ---

    #[inline(always)]
    fn rollout_candidates<V: Vectors>(&mut self, lookahead: &mut Lookahead) {
        let machine = self.machine;
        let turns = &machine.write_sets.turns;
        let now = BlockCheckpoint::of_block(self);
        lookahead.before_candidate.save(&self.registers, turns);
        for index in std::iter::once(NO_ACTION).chain(0..machine.actions.len() as u64) {
            let action = usize::try_from(index).unwrap_or(usize::MAX);
            let mask = lookahead.candidates.get(action).unwrap_or(&now.playing).clone();
            if !mask.any() {
                continue;
            }
            let mut value_of = Column::ZERO;
            for rollout in 0..ROLLOUTS {
                lookahead.before_candidate.restore(&mut self.registers, turns);
                now.begin_rollout(self, rollout, &mask);
                self.run_action::<V>(action, &mask);
                let value = self.play_rollout::<V>();
                value_of.add_where(&mask, Numbers::Each(&value));
            }
            lookahead.consider(index, &mask, &value_of);
        }
        lookahead.before_candidate.restore(&mut self.registers, turns);
        now.restore_block(self);
    }

    /// Finish the turn and play more turns at random. Return the values at the end.
    #[inline(always)]
    fn play_rollout<V: Vectors>(&mut self) -> Column {
        let mut values = Column::ZERO;
        for turn in 1..=ROLLOUT_TURNS {
            V::turn(self, turn > 1);
            self.value_ends(turn, &mut values);
            let mut continuing = self.playing.clone();
            continuing.and_not(&self.ended);
            continuing.and_not(&self.registers.exceptional);
            self.advance(&continuing);
            let mut over = continuing.clone();
            if turn < ROLLOUT_TURNS {
                let (last_turn, now) = (Numbers::All(self.last_turn), self.now());
                over.compare(Combine::And, Relation::Less, last_turn, Numbers::Each(&now));
            }
            if over.any() {
                values.set_where(&over, Numbers::Each(self.value::<V>(&over)));
                continuing.and_not(&over);
            }
            self.playing = continuing;
            if !self.playing.any() {
                break;
            }
        }
        values
    }

    /// Set the values of runs that a condition has ended in a turn of a rollout.
    #[inline(always)]
    fn value_ends(&self, turn: u64, values: &mut Column) {
        let losses = self.machine.plan.losses.len() as u64;
        let (lost, won) = (lost_in(turn), won_in(turn));
        let ends = values.0.iter_mut().zip(&self.ended.0).zip(&self.condition.0);
        for ((value, ended), condition) in ends {
            let end = if *condition < losses { lost } else { won };
            *value = if *ended == 0 { *value } else { end };
        }
    }
}

/// Checkpoint of a block, without its registers.
struct BlockCheckpoint<'a> {
    playing: Mask,
    policy: Integers,
    event: Integers,
    counter: Integers,
    legal: Vec<Mask>,
    drawn: Vec<Integers>,
    until: Vec<Column>,
    since: Vec<Column>,
    /// Removed during the lookahead, because trials are not counted.
    counters: Option<Counters<'a>>,
}

impl<'a> BlockCheckpoint<'a> {
    fn of_block(block: &mut Block<'a>) -> Self {
        Self {
            playing: block.playing.clone(),
            policy: block.policy.clone(),
            event: block.event.clone(),
            counter: block.counter.clone(),
            legal: block.legal.clone(),
            drawn: block.drawn.clone(),
            until: block.until.clone(),
            since: block.since.clone(),
            counters: block.counters.take(),
        }
    }

    /// Start a rollout in the lanes of a mask, with its own seeds.
    #[inline(always)]
    fn begin_rollout(&self, block: &mut Block<'_>, rollout: u64, mask: &Mask) {
        block.playing.clone_from(mask);
        block.counter.clone_from(&self.counter);
        block.until.clone_from(&self.until);
        block.since.clone_from(&self.since);
        let (policy_key, event_key) = (*POLICY_KEY, *EVENT_KEY);
        let index = INCREMENT.wrapping_mul(rollout + 1);
        let streams = block.policy.0.iter_mut().zip(&mut block.event.0);
        for ((policy, event), (base, counter)) in streams.zip(block.rollout.0.iter().zip(&self.counter.0)) {
            let seed = mix(base.wrapping_add(counter.wrapping_add(index)));
            *policy = mix(seed ^ policy_key);
            *event = mix(seed ^ event_key);
        }
    }

    fn restore_block(self, block: &mut Block<'a>) {
        block.playing = self.playing;
        block.policy = self.policy;
        block.event = self.event;
        block.counter = self.counter;
        block.legal = self.legal;
        block.drawn = self.drawn;
        block.until = self.until;
        block.since = self.since;
        block.counters = self.counters;
    }
}

#[cfg(test)]
mod tests {
    use crate::dry_run::Executor;
    use crate::ir::examples::program;
    use crate::program::Program;

    /// A program in which most choices matter. It has parameters, arrays, schedules, lasting events, and an
    /// action that fails if it is repeated too often.
    fn complex_program(until: u64) -> Program {
        let action = |id: &str, params: &str, preconditions: &str, effects: &str| {
            format!(
                r#"{{"id": "{id}", "params": {params}, "preconditions": {preconditions}, "effects": [{effects}],
                     "derives": {{"d": {{"*": [{{"var": "state.b"}}, 0.5]}}}}}}"#
            )
        };
        let inc =
            |path: &str, value: &str| format!(r#"{{"op": "inc", "path": "state.{path}", "value": {value}}}"#);
        let later =
            format!(r#"{{"op": "schedule", "id": "s", "after": 2, "effects": [{}]}}"#, inc("a", r#""d""#));
        let number = r#"{"p": {"type": "number", "minimum": 0.1, "maximum": 0.3}}"#;
        let suits = r#"{"<": [{"var": "params.p"}, {"var": "state.b"}]}"#;
        let actions = [
            action("gain", number, suits, &format!("{}, {}", inc("a", "1"), inc("b", "-0.1"))),
            action("wait", "{}", "{}", &format!("{}, {later}", inc("b", "0.25"))),
            action("store", "{}", "{}", r#"{"op": "push", "path": "state.list", "value": "d"}"#),
            action(
                "spend",
                "{}",
                &format!(r#"{{"<": [{{"var": "turn"}}, {until}]}}"#),
                &format!(r#"{{"op": "pop", "path": "state.list"}}, {}"#, inc("a", "2")),
            ),
        ];
        let event = |id: &str, weight: f64, turns: u32, effects: &str| {
            format!(
                r#"{{"id": "{id}", "weight": {weight}, "duration": "{turns}h", "effects": [{effects}],
                     "when": {{">": [{{"var": "state.b"}}, 0.2]}}}}"#
            )
        };
        let events = [event("drain", 0.3, 2, &inc("a", "-1.5")), event("gift", 0.2, 1, &inc("b", "1"))];
        let at_most = |id: &str, path: &str| {
            format!(r#"{{"id": "{id}", "when": {{"<=": [{{"var": "state.{path}"}}, 0]}}}}"#)
        };
        let win = r#"{"id": "rich", "when": {"and": [{">": [{"var": "state.a"}, 12]}, {"some": [{"var": "state.list"}, {">": [{"var": ""}, 1]}]}]}}"#;
        program(
            r#"{"a": 5, "b": 1.5, "list": [1, 1, 1, 1]}"#,
            &[
                ("actions", &format!("[{}]", actions.join(","))),
                ("random_events", &format!("[{}]", events.join(","))),
                ("loss_conditions", &format!("[{}, {}]", at_most("out", "a"), at_most("dry", "b"))),
                ("win_conditions", &format!("[{win}]")),
                ("negativity_budget", r#"{"decay_per_turn": {"state.a": 0.5}}"#),
            ],
        )
    }

    fn assert_reports_agree(program: &Program, persona: &str, runs: u64, horizon: u64) {
        let options = format!(
            r#"{{"runs": {runs}, "first_run": 3, "seed": "5", "persona": "{persona}", "horizon": {horizon}, "digest": true,
                 "detail": true, "watch": [["state.a", 3], ["state.list[1]", 0.5], ["state.list", 1]], "threads": 1}}"#
        );
        let expected = program.dry_run_with(Executor::Interpreter, options.as_bytes()).unwrap();
        for name in ["baseline", "avx2", "avx512"] {
            if let Some(executor) = Executor::from_name(name) {
                let report = program.dry_run_with(executor, options.as_bytes()).unwrap();
                assert_eq!(report, expected, "{persona} by {name}");
            }
        }
    }

    #[test]
    fn vectorised_and_interpreted_personas_agree() {
        // Until turn 5 all runs are ordinary, until turn 9 some are not.
        for program in [complex_program(5), complex_program(9)] {
            assert!(program.is_vectorised());
            for persona in ["idle", "random", "greedy", "cautious", "saboteur"] {
                assert_reports_agree(&program, persona, 100, 25);
            }
            assert_reports_agree(&program, "planner", 15, 11);
        }
    }
}
