//! Lookahead of personas: candidate actions are simulated on copies of a run.
//!
//! The copies leave no trace in the report.

use crate::change_log::ChangeLog;
use crate::error::Result;
use crate::personas::{LOST, Persona, ROLLOUT_KEY, ROLLOUT_TURNS, ROLLOUTS, lost_in, won_in};
use crate::program::Program;
use crate::rng::draw;
use crate::state::{State, Status};
use crate::turn::{Choice, PolicyDraws, act, find_ending, legal_choices, open_copy, step, try_event};

/// The data that a persona evaluates.
pub(super) struct Lookahead<'a> {
    program: &'a Program,
    /// The last turn that a run may reach.
    last_turn: u64,
    persona: Persona,
    record: ChangeLog,
}

/// The result of a candidate action.
enum After {
    Going(State),
    /// The run exceeded its limits.
    Errored,
}

impl<'a> Lookahead<'a> {
    pub(super) fn new(program: &'a Program, last_turn: u64, persona: Persona) -> Self {
        Self { program, last_turn, persona, record: ChangeLog::new(false) }
    }

    /// Return the best choice, or `None` for no action. Of equal choices the first wins.
    pub(super) fn best_choice<'c>(
        &mut self,
        state: &State,
        choices: &'c [Choice<'a>],
    ) -> Result<Option<&'c Choice<'a>>> {
        if choices.is_empty() {
            return Ok(None);
        }
        let now = open_copy(state, &mut ChangeLog::new(false))?;
        let mut best = f64::NEG_INFINITY;
        let mut chosen = None;
        for candidate in std::iter::once(None).chain(choices.iter().map(Some)) {
            if let Some(value_of) = self.candidate_value(&now, candidate)
                && value_of > best
            {
                (best, chosen) = (value_of, candidate);
            }
        }
        Ok(chosen)
    }

    /// Return the value of a candidate for the persona, or `None` if it is rejected.
    fn candidate_value(&mut self, now: &State, candidate: Option<&Choice<'_>>) -> Option<f64> {
        match self.persona {
            Persona::Planner => {
                let turn = now.turn + 1;
                let seeds = (0..ROLLOUTS).map(|rollout| draw(now.seed, *ROLLOUT_KEY, turn, rollout));
                seeds.map(|seed| self.rollout(State { seed, ..now.clone() }, candidate)).sum()
            }
            Persona::Cautious => match self.apply_candidate(now.clone(), candidate)? {
                After::Errored => Some(LOST),
                After::Going(state) => Some(self.worst_case_value(&state)),
            },
            Persona::Saboteur => Some(-self.next_value(now, candidate)?),
            // The others do not look ahead.
            _ => self.next_value(now, candidate),
        }
    }

    fn next_value(&mut self, now: &State, candidate: Option<&Choice<'_>>) -> Option<f64> {
        Some(match self.apply_candidate(now.clone(), candidate)? {
            After::Going(state) => self.value(&state),
            After::Errored => LOST,
        })
    }

    /// Return the minimum of the state's value now and after each event that could be drawn.
    fn worst_case_value(&mut self, state: &State) -> f64 {
        let as_it_is = self.value(state);
        if self.program.ends_early {
            match find_ending(self.program, state, &mut ChangeLog::new(false)) {
                Ok(Status::Ongoing) => {}
                Ok(_) => return as_it_is,
                Err(_) => return LOST,
            }
        }
        (0..self.program.events.len()).fold(as_it_is, |worst, event| {
            let mut after = state.clone();
            match try_event(self.program, &mut after, event, &mut self.record) {
                Ok(true) => worst.min(self.value(&after)),
                Ok(false) => worst,
                Err(_) => worst.min(LOST),
            }
        })
    }

    /// Return the value at the end of a random rollout after a candidate.
    fn rollout(&mut self, state: State, candidate: Option<&Choice<'_>>) -> Option<f64> {
        Some(match self.apply_candidate(state, candidate)? {
            After::Going(mut state) => self.play_rollout(&mut state).unwrap_or(LOST),
            After::Errored => LOST,
        })
    }

    /// Finish the turn, play more turns at random, and return the value.
    fn play_rollout(&mut self, state: &mut State) -> Result<f64> {
        let program = self.program;
        let before = state.turn;
        let end = self.last_turn.min(before + ROLLOUT_TURNS);
        loop {
            step(program, state, &mut self.record)?;
            match state.status {
                Status::Lost(_) => return Ok(lost_in(state.turn - before)),
                Status::Won(_) => return Ok(won_in(state.turn - before)),
                Status::Ongoing if state.turn >= end => return Ok(self.value(state)),
                Status::Ongoing => {}
            }
            let mut draws = PolicyDraws::new(state);
            self.record.clear();
            let choices = legal_choices(program, state, &mut draws, &mut self.record)?;
            if let Some(choice) = draws.pick(&choices) {
                act(program, state, &choice.action.id, &choice.params, &mut self.record)?;
            }
        }
    }

    /// Return a run after a candidate, or `None` if the candidate is rejected.
    fn apply_candidate(&mut self, mut state: State, candidate: Option<&Choice<'_>>) -> Option<After> {
        let Some(choice) = candidate else { return Some(After::Going(state)) };
        match act(self.program, &mut state, &choice.action.id, &choice.params, &mut self.record) {
            Ok(reasons) if reasons.is_empty() => Some(After::Going(state)),
            Ok(_) => None,
            Err(_) => Some(After::Errored),
        }
    }

    fn value(&self, state: &State) -> f64 {
        self.program.distances().value(self.program, state)
    }
}
