//! Interpreter for dry-runs: one run after the other.

use crate::change_log::{ChangeLog, Failure};
use crate::error::Result;
use crate::personas::Persona;
use crate::program::Program;
use crate::rng::run_seed;
use crate::state::{State, Status};
use crate::turn::{PolicyDraws, act, deal, legal_choices, step};

use super::Options;
use super::lookahead::Lookahead;
use super::report::{Outcome, Tally};

/// Plays runs and counts their outcomes.
pub(super) struct Interpreter<'a> {
    program: &'a Program,
    /// Each run begins with a copy of this state.
    start: &'a State,
    options: &'a Options,
    tally: &'a mut Tally,
    record: ChangeLog,
}

impl<'a> Interpreter<'a> {
    pub(super) fn new(
        program: &'a Program,
        start: &'a State,
        options: &'a Options,
        tally: &'a mut Tally,
    ) -> Self {
        Self { program, start, options, tally, record: ChangeLog::new(false) }
    }

    /// Play one run.
    pub(super) fn play(&mut self, run: u64) -> Result<()> {
        let mut state = State { seed: run_seed(self.options.seed, run), ..self.start.clone() };
        let mut dealt = None;
        if !(self.program.deals.is_empty() || state.is_dealt) {
            deal(self.program, &mut state);
            dealt = Some(state.tree.clone());
        }
        let outcome = self.finish_run(&mut state);
        let turns = state.turn - self.start.turn;
        self.tally.count(&outcome, turns);
        self.tally.count_moves(self.options, dealt.as_ref().unwrap_or(&self.start.tree), &state.tree);
        if self.options.digest {
            self.tally.add_state(run, &outcome, turns, &state.hash()?);
        }
        Ok(())
    }

    /// Play a run to its end.
    fn finish_run(&mut self, state: &mut State) -> Outcome {
        let last = self.last_turn();
        while state.turn < last {
            if let Err(error) = self.play_turn(state) {
                self.tally.note(&Failure::from_error(&error, format_args!("")));
                return Outcome::Errored;
            }
            match state.status {
                Status::Ongoing => {}
                Status::Lost(condition) => return Outcome::Lost(condition),
                Status::Won(condition) => return Outcome::Won(condition),
            }
        }
        Outcome::Survived
    }

    /// Return the last turn that a run may reach.
    fn last_turn(&self) -> u64 {
        self.start.turn + self.options.horizon
    }

    fn play_turn(&mut self, state: &mut State) -> Result<()> {
        let has_acted = self.options.acted && state.turn == self.start.turn;
        if self.options.persona != Persona::Idle && !has_acted {
            self.act(state)?;
        }
        let drawn = step(self.program, state, &mut self.record)?;
        self.note_failures();
        if let (Some(detail), Some(event)) = (&mut self.tally.detail, drawn) {
            count_one(&mut detail.drawn, event);
        }
        Ok(())
    }

    fn act(&mut self, state: &mut State) -> Result<()> {
        let program = self.program;
        let mut draws = PolicyDraws::new(state);
        self.record.clear();
        let choices = legal_choices(program, state, &mut draws, &mut self.record)?;
        self.note_failures();
        if let Some(detail) = &mut self.tally.detail {
            for choice in &choices {
                count_one(&mut detail.legal, choice.index);
            }
        }
        let chosen = match self.options.persona {
            Persona::Random => draws.pick(&choices),
            persona => Lookahead::new(program, self.last_turn(), persona).best_choice(state, &choices)?,
        };
        if let Some(choice) = chosen {
            let reasons = act(program, state, &choice.action.id, &choice.params, &mut self.record)?;
            self.note_failures();
            if let (Some(detail), true) = (&mut self.tally.detail, reasons.is_empty()) {
                count_one(&mut detail.taken, choice.index);
            }
        }
        Ok(())
    }

    fn note_failures(&mut self) {
        self.record.failures.iter().for_each(|failure| self.tally.note(failure));
    }
}

fn count_one(counts: &mut [u64], index: usize) {
    if let Some(count) = counts.get_mut(index) {
        *count += 1;
    }
}
