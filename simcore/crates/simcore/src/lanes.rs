//! Many runs of one scenario, 64 at a time in lockstep.
//!
//! Every number of the state is a column: its value in each of 64 runs. What a turn does is worked out once for a
//! scenario and carried out on columns; what cannot be (arrays, schedules) is carried out run by run, and the rest
//! stays in lockstep. A lane whose run has ended gets the next one at once.
//!
//! Nothing here fails. A run in which something happens that ordinary play does not have (a rule that fails, a number
//! that is not finite, an array that might be too long) is *exceptional*: it is given back, to be played again from
//! its start by the interpreter, which knows what that means. That is possible because a run depends on nothing but
//! its number.

#![expect(clippy::inline_always, reason = "what is inlined is compiled for the instructions of its caller")]

mod block;
mod code;
mod deeds;
mod isa;
mod lists;
mod machine;
mod registers;
mod scalar;
mod turn;
mod vectors;

use std::ops::Range;

use crate::program::Program;

use block::Block;
pub use isa::Isa;
pub(crate) use machine::Machine;

/// Who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persona {
    /// Uniform over legal actions and parameters.
    Random,
    /// No action at all.
    Idle,
}

/// What to play.
#[derive(Clone)]
pub(crate) struct Task<'a> {
    pub(crate) program: &'a Program,
    pub(crate) runs: Range<u64>,
    pub(crate) seed: u64,
    pub(crate) persona: Persona,
    pub(crate) horizon: u64,
    /// Whether the hashes of the states are wanted in which the runs end.
    pub(crate) digest: bool,
}

/// How an ordinary run ended: by which condition, if by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Lost(usize),
    Won(usize),
    Survived,
}

/// What came of ordinary runs, and which were not ordinary.
#[derive(Default)]
pub(crate) struct Runs {
    pub(crate) turns: u64,
    pub(crate) losses: Vec<u64>,
    pub(crate) wins: Vec<u64>,
    pub(crate) survived: u64,
    /// The numbers of the runs that are to be played again.
    pub(crate) exceptional: Vec<u64>,
    /// Run, end, turns and hash of the state.
    pub(crate) states: Vec<(u64, Ended, u64, String)>,
    ordinary: u64,
}

/// After so many exceptional runs, lockstep is given up unless they are a small part.
const PATIENCE: usize = 128;

impl Runs {
    fn count(&mut self, ended: Ended, turns: u64) {
        self.ordinary += 1;
        self.turns += turns;
        let counter = match ended {
            Ended::Lost(condition) => self.losses.get_mut(condition),
            Ended::Won(condition) => self.wins.get_mut(condition),
            Ended::Survived => Some(&mut self.survived),
        };
        if let Some(counter) = counter {
            *counter += 1;
        }
    }

    /// Whether so many runs are played twice that it would be better not to begin in lockstep.
    fn is_hopeless(&self) -> bool {
        self.exceptional.len() >= PATIENCE && (self.exceptional.len() as u64) * 2 > self.ordinary
    }
}

/// Play the runs of a task that are ordinary.
pub(crate) fn play(machine: &Machine, task: Task<'_>, isa: Isa) -> Runs {
    let mut result = Runs {
        losses: vec![0; machine.plan.losses.len()],
        wins: vec![0; machine.plan.wins.len()],
        ..Runs::default()
    };
    isa::play(isa, &mut Block::new(machine, task), &mut result);
    result.exceptional.sort_unstable();
    result
}
