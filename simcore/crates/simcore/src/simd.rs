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

mod action_log;
mod actions;
mod block;
mod checkpoint;
mod code;
mod counters;
mod distances;
mod isa;
mod lists;
mod lookahead;
mod machine;
mod registers;
mod single_run;
mod turn;
mod vectors;

use std::ops::Range;

use crate::dry_run::statistics::{Statistics, WatchedPath};
use crate::personas::Persona;
use crate::program::Program;

use block::Block;
pub use isa::Isa;
pub(crate) use machine::Machine;

/// What to play.
#[derive(Clone)]
pub(crate) struct Task<'a> {
    pub(crate) program: &'a Program,
    pub(crate) runs: Range<u64>,
    pub(crate) seed: u64,
    pub(crate) persona: Persona,
    /// The most turns of a run.
    pub(crate) horizon: u64,
    /// Whether the persona has nothing to do any more in the first turn.
    pub(crate) acted: bool,
    /// Whether the hashes of the states are wanted in which the runs end.
    pub(crate) digest: bool,
    /// If more is to be counted, the numbers to follow.
    pub(crate) watched: Option<&'a [WatchedPath]>,
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
    /// What was counted besides, if it was.
    pub(crate) detail: Option<Statistics>,
    ordinary: u64,
}

/// After so many exceptional runs, lockstep is given up unless they are a small part.
const MAX_EXCEPTIONAL: usize = 128;

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
        if let Some(detail) = &mut self.detail {
            match ended {
                Ended::Lost(_) => detail.count_lost(turns),
                Ended::Won(_) => detail.count_won(turns),
                Ended::Survived => {}
            }
        }
    }

    /// Whether so many runs are played twice that it would be better not to begin in lockstep.
    fn should_abandon(&self) -> bool {
        self.exceptional.len() >= MAX_EXCEPTIONAL && (self.exceptional.len() as u64) * 2 > self.ordinary
    }
}

/// Play the runs of a task that are ordinary.
pub(crate) fn play(machine: &Machine, task: Task<'_>, isa: Isa) -> Runs {
    let mut result = Runs {
        losses: vec![0; machine.plan.losses.len()],
        wins: vec![0; machine.plan.wins.len()],
        detail: task.watched.map(|watched| Statistics::new(task.program, watched)),
        ..Runs::default()
    };
    isa::play(isa, &mut Block::new(machine, task), &mut result);
    result.exceptional.sort_unstable();
    result
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::ir::Plan;
    use crate::ir::examples::{plan_of, program};
    use crate::ir::types::Condition;

    use super::Block;
    use super::code::{ACTIVE, Code, Compiler, RESULT};
    use super::isa::Vectors;
    use super::registers::Registers;
    use super::single_run::SingleRun;
    use super::vectors::LANES;

    struct Plain;

    impl Vectors for Plain {
        fn turn(block: &mut Block<'_>, acts_at_random: bool) {
            block.turn::<Self>(acts_at_random);
        }

        fn run(registers: &mut Registers, plan: &Plan, code: &Code) {
            registers.run::<Self>(plan, code);
        }
    }

    /// Make code of a condition.
    pub(crate) fn compile(condition: &Condition) {
        Compiler::new(0).condition_code(condition);
    }

    /// Columns and the runs one by one agree on where a condition holds, and on where it has no value.
    fn check(condition: &str) {
        let losses = format!(r#"[{{"id": "x", "when": {condition}}}]"#);
        let state = r#"{"a": 1, "b": 2, "list": [1]}"#;
        let plan = plan_of(&program(state, &[("loss_conditions", &losses)])).unwrap();
        let mut compiler = Compiler::new(plan.columns);
        let code = compiler.condition_code(&plan.losses[0]);
        let mut registers = Registers::new(compiler.columns, compiler.masks, 1, 0, true);
        for lane in 0..LANES {
            let number = |modulus: usize| f64::from(u32::try_from(lane % modulus).unwrap()) - 2.0;
            registers.set_number(0, lane, number(5));
            registers.set_number(1, lane, number(7) * 1e160);
            (0..lane % 4).for_each(|index| {
                registers.list_mut(0).push(lane, number(3 + index));
            });
            registers.mask_mut(ACTIVE).set(lane, lane % 9 != 0);
        }
        Plain::run(&mut registers, &plan, &code);
        for lane in (0..LANES).filter(|lane| lane % 9 != 0) {
            let alone = SingleRun::new(&plan, &registers, lane).holds(&plan.losses[0]);
            let together = (!registers.exceptional.get(lane)).then(|| registers.mask(RESULT).get(lane));
            assert_eq!(together, alone, "{condition} in {lane}");
        }
        let inactive = (0..LANES).step_by(9).any(|lane| registers.exceptional.get(lane));
        assert!(!inactive, "{condition}: what does not matter has failed");
    }

    #[test]
    fn code_and_single_runs_agree() {
        let (a, b, list) = (r#"{"var": "state.a"}"#, r#"{"var": "state.b"}"#, r#"{"var": "state.list"}"#);
        for condition in [
            format!(r#"{{"<": [{a}, {b}, 1e161]}}"#),
            format!(r#"{{"or": [{{"==": [{a}, 0]}}, {{">": [{{"/": [1, {a}]}}, 0]}}]}}"#),
            format!(r#"{{"and": [{{"!=": [{a}, 0]}}, {{">": [{{"/": [1, {a}]}}, 0]}}]}}"#),
            format!(r#"{{"<": [{a}, 1, {{"/": [3, {a}]}}]}}"#),
            format!(r#"{{"if": [{a}, {{">": [{{"%": [5, {a}]}}, 0]}}, {{"<": [{{"*": [{b}, {b}]}}, 1]}}]}}"#),
            format!(r#"{{"+": [{{"if": [{{"<": [{a}, 0]}}, {{"*": [{b}, {b}]}}, {a}]}}, 1]}}"#),
            format!(r#"{{"!": {{"or": [{{"and": [{a}, {list}]}}, {{"!": {b}}}]}}}}"#),
            format!(r#"{{"in": [{a}, {list}]}}"#),
            format!(r#"{{"some": [{list}, {{">": [{{"/": [1, {{"var": ""}}]}}, 0]}}]}}"#),
            format!(r#"{{"all": [{list}, {{"<": [{{"var": ""}}, 0]}}]}}"#),
            format!(
                r#"{{"none": [{{"map": [{{"filter": [{list}, {{"var": ""}}]}},
                     {{"/": [2, {{"var": ""}}]}}]}}, {{">": [{{"var": ""}}, 1]}}]}}"#
            ),
            format!(
                r#"{{">": [{{"reduce": [{list}, {{"/": [{{"var": "accumulator"}}, {{"var": "current"}}]}},
                     {a}]}}, 0]}}"#
            ),
        ] {
            check(&condition);
        }
    }
}
