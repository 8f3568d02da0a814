//! One run after the other, as the rules say it.

use crate::error::Result;
use crate::personas::Persona;
use crate::program::Program;
use crate::record::{Failure, Record};
use crate::rng::run_seed;
use crate::state::{State, Status};
use crate::turn::{PolicyDraws, act, legal_choices, step};

use super::Options;
use super::looking_ahead::Outlook;
use super::report::{Outcome, Tally};

/// Plays runs, and counts what comes of them.
pub(super) struct Interpreter<'a> {
    program: &'a Program,
    options: &'a Options,
    tally: &'a mut Tally,
    record: Record,
}

impl<'a> Interpreter<'a> {
    pub(super) fn new(program: &'a Program, options: &'a Options, tally: &'a mut Tally) -> Self {
        Self { program, options, tally, record: Record::new(false) }
    }

    /// Play one run.
    pub(super) fn play(&mut self, run: u64) -> Result<()> {
        let mut state = self.program.new_state(run_seed(self.options.seed, run));
        let outcome = self.play_on(&mut state);
        self.tally.count(&outcome, state.turn);
        self.tally.count_moves(self.program, self.options, &state.tree);
        if self.options.digest {
            self.tally.add_state(run, &outcome, state.turn, &state.hash()?);
        }
        Ok(())
    }

    /// Play a run to its end.
    fn play_on(&mut self, state: &mut State) -> Outcome {
        while state.turn < self.options.horizon {
            if let Err(error) = self.play_turn(state) {
                self.tally.note(&Failure::of(&error, format_args!("")));
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

    fn play_turn(&mut self, state: &mut State) -> Result<()> {
        if self.options.persona != Persona::Idle {
            self.take_an_action(state)?;
        }
        let drawn = step(self.program, state, &mut self.record)?;
        self.note_failures();
        if let (Some(detail), Some(event)) = (&mut self.tally.detail, drawn) {
            count_one(&mut detail.drawn, event);
        }
        Ok(())
    }

    fn take_an_action(&mut self, state: &mut State) -> Result<()> {
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
            persona => Outlook::new(program, self.options.horizon, persona).best(state, &choices)?,
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
