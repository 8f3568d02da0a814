//! Interpreter for dry-runs: one run after the other.

use std::collections::BTreeSet;

use crate::change_log::{ChangeLog, Failure};
use crate::error::Result;
use crate::params::Trial;
use crate::personas::Persona;
use crate::program::{Otherwise, Program, SolutionStep};
use crate::rng::run_seed;
use crate::state::{State, Status};
use crate::turn::{PolicyDraws, act, deal, is_for, legal_choices, step};
use crate::value::Value;

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
    /// For the curious persona: the actions with values of their parameters, by the index of the action.
    trials: Vec<(usize, Trial)>,
}

/// The memory of a persona in a run.
#[derive(Default)]
struct RunMemory<'a> {
    /// The steps of its solution, and the index of the next one.
    steps: Option<&'a [SolutionStep]>,
    next_step: usize,
    /// The number of uses of each trial.
    uses: Vec<u64>,
    /// The indices of the accepted actions.
    path: Vec<usize>,
}

impl<'a> Interpreter<'a> {
    pub(super) fn new(
        program: &'a Program,
        start: &'a State,
        options: &'a Options,
        tally: &'a mut Tally,
    ) -> Self {
        let explores = options.persona == Persona::Curious;
        let actions = program.actions.iter().enumerate().filter(|_| explores);
        let trials = actions
            .flat_map(|(index, action)| action.params.trials().into_iter().map(move |trial| (index, trial)));
        let trials = trials.collect();
        Self { program, start, options, tally, record: ChangeLog::new(false), trials }
    }

    /// Play one run.
    pub(super) fn play(&mut self, run: u64) -> Result<()> {
        let mut state = State { seed: run_seed(self.options.seed, run), ..self.start.clone() };
        let mut dealt = None;
        if !(self.program.deals.is_empty() || state.is_dealt) {
            deal(self.program, &mut state);
            dealt = Some(state.tree.clone());
        }
        let mut memory = RunMemory::default();
        let outcome = self.finish_run(&mut state, &mut memory);
        let turns = state.turn - self.start.turn;
        self.tally.count(&outcome, turns);
        if let (Some(detail), Outcome::Won(_), true) = (&mut self.tally.detail, &outcome, self.options.paths)
        {
            detail.count_win_path(memory.path);
        }
        self.tally.count_moves(self.options, dealt.as_ref().unwrap_or(&self.start.tree), &state.tree);
        if self.options.digest {
            self.tally.add_state(run, &outcome, turns, &state.hash()?);
        }
        Ok(())
    }

    /// Play a run to its end.
    fn finish_run(&mut self, state: &mut State, memory: &mut RunMemory<'a>) -> Outcome {
        let last = self.last_turn();
        while state.turn < last {
            if let Err(error) = self.play_turn(state, memory) {
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

    fn play_turn(&mut self, state: &mut State, memory: &mut RunMemory<'a>) -> Result<()> {
        let has_acted = self.options.acted && state.turn == self.start.turn;
        if self.options.persona != Persona::Idle && !has_acted {
            self.act(state, memory)?;
        }
        let drawn = step(self.program, state, &mut self.record)?;
        self.note_failures();
        if let (Some(detail), Some(event)) = (&mut self.tally.detail, drawn) {
            count_one(&mut detail.drawn, event);
        }
        Ok(())
    }

    fn act(&mut self, state: &mut State, memory: &mut RunMemory<'a>) -> Result<()> {
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
            Persona::Par => return self.follow_solution(state, &mut draws, memory),
            Persona::Curious => return self.explore(state, &mut draws, memory),
            Persona::Random => draws.pick(&choices),
            persona => Lookahead::new(program, self.last_turn(), persona).best_choice(state, &choices)?,
        };
        if let Some(choice) = chosen {
            self.try_action(state, choice.index, &choice.params, memory)?;
        }
        Ok(())
    }

    /// Follow one of the solutions that are for the state in which the persona first acts.
    fn follow_solution(
        &mut self,
        state: &mut State,
        draws: &mut PolicyDraws,
        memory: &mut RunMemory<'a>,
    ) -> Result<()> {
        let program = self.program;
        let steps = *memory.steps.get_or_insert_with(|| {
            let fitting: Vec<_> =
                program.solutions.iter().filter(|one| is_for(program, state, one.when.as_ref())).collect();
            let chosen = if fitting.is_empty() { 0 } else { draws.index_below(fitting.len()) };
            fitting.get(chosen).map_or(&[][..], |solution| &solution.steps)
        });
        for _ in steps {
            let Some(step) = steps.get(memory.next_step) else { return Ok(()) };
            let following = (memory.next_step + 1) % steps.len();
            let is_due = is_for(program, state, step.when.as_ref());
            if is_due && self.try_action(state, step.action.index, &step.action.params, memory)? {
                memory.next_step = following;
                return Ok(());
            }
            let default = if is_due { &Otherwise::Wait } else { &Otherwise::Skip };
            match step.otherwise.as_ref().unwrap_or(default) {
                Otherwise::Skip => memory.next_step = following,
                Otherwise::Wait => return Ok(()),
                Otherwise::Act(other) => {
                    return self.try_action(state, other.index, &other.params, memory).map(drop);
                }
            }
        }
        Ok(())
    }

    /// Make the least used trial that is legal.
    fn explore(
        &mut self,
        state: &mut State,
        draws: &mut PolicyDraws,
        memory: &mut RunMemory<'a>,
    ) -> Result<()> {
        memory.uses.resize(self.trials.len(), 0);
        let counts: BTreeSet<u64> = memory.uses.iter().copied().collect();
        for uses in counts {
            let indices = memory.uses.iter().enumerate().filter(|(_, count)| **count == uses);
            let mut left: Vec<usize> = indices.map(|(index, _)| index).collect();
            while !left.is_empty() {
                let trial = left.remove(draws.index_below(left.len()));
                let Some((index, fixed)) = self.trials.get(trial) else { continue };
                let Some(action) = self.program.actions.get(*index) else { continue };
                let (index, params) = (*index, action.params.sample(fixed, || draws.next_draw())?);
                if self.try_action(state, index, &params, memory)? {
                    count_one(&mut memory.uses, trial);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Perform an action. Return true if it is accepted.
    fn try_action(
        &mut self,
        state: &mut State,
        index: usize,
        params: &Value,
        memory: &mut RunMemory<'a>,
    ) -> Result<bool> {
        let Some(action) = self.program.actions.get(index) else { return Ok(false) };
        let reasons = act(self.program, state, &action.id, params, &mut self.record)?;
        self.note_failures();
        if let (Some(detail), true) = (&mut self.tally.detail, reasons.is_empty()) {
            count_one(&mut detail.taken, index);
            memory.path.push(index);
        }
        Ok(reasons.is_empty())
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
