//! Vectorised dry-run: 64 runs of one scenario as lanes.
//!
//! # Design
//!
//! Each number of the state is a column with its value in 64 lanes. A machine (`machine`) holds a plan (see
//! `ir`) and straight-line code for its rules (`code`). The registers (`registers`) execute the code on whole
//! columns, with masks for control flow. Arrays and schedules are handled lane by lane (`single_run`,
//! `action_log`). If a run ends, its lane starts the next run immediately (`block`).
//!
//! The columns are fixed-size arrays that the compiler vectorises. The same code is compiled for several
//! instruction sets, and the processor is checked at run time (`isa`).
//!
//! # Invariants
//!
//! - The report is that of the interpreter, byte for byte. Each lane computes the same bits as a scalar
//!   program, without fused multiply-add.
//! - This executor never fails. A run is *exceptional* if a rule fails, a number becomes infinite, or an
//!   array may become too long. The interpreter plays it again from its start.
//! - A replay is possible because a run depends only on its seed and its number.
//! - If most runs are exceptional, the executor stops, and the interpreter plays the remaining runs.
//!
//! # Rejected alternatives
//!
//! - Intrinsics: they need unsafe code in many places. Here `isa` is the only module with unsafe code.
//! - A wheel for each processor: the choice at run time needs only one.
//! - Errors in lanes: their order and rollback are rare and intricate, so only the interpreter implements
//!   them.

#![expect(clippy::inline_always, reason = "inlined code is compiled for the instruction set of its caller")]

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

/// A range of runs with its options.
#[derive(Clone)]
pub(crate) struct Task<'a> {
    pub(crate) program: &'a Program,
    pub(crate) runs: Range<u64>,
    pub(crate) seed: u64,
    pub(crate) persona: Persona,
    /// Maximum turns of a run.
    pub(crate) horizon: u64,
    /// True if the persona has already acted in the first turn.
    pub(crate) acted: bool,
    /// True if final states are hashed.
    pub(crate) digest: bool,
    /// Watched numbers, if statistics are requested.
    pub(crate) watched: Option<&'a [WatchedPath]>,
}

/// The outcome of an ordinary run, with the index of the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Lost(usize),
    Won(usize),
    Survived,
}

/// Counts over ordinary runs, and the numbers of exceptional runs.
#[derive(Default)]
pub(crate) struct Runs {
    pub(crate) turns: u64,
    pub(crate) losses: Vec<u64>,
    pub(crate) wins: Vec<u64>,
    pub(crate) survived: u64,
    /// Runs that the interpreter must play again.
    pub(crate) exceptional: Vec<u64>,
    /// Run, outcome, turns and hash of the final state.
    pub(crate) states: Vec<(u64, Ended, u64, String)>,
    /// Statistics, if requested.
    pub(crate) detail: Option<Statistics>,
    ordinary: u64,
}

/// After this number of exceptional runs, the executor stops unless they are a minority.
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

    /// Return True if so many runs are played twice that vectorisation has no benefit.
    fn should_abandon(&self) -> bool {
        self.exceptional.len() >= MAX_EXCEPTIONAL && (self.exceptional.len() as u64) * 2 > self.ordinary
    }
}

/// Play the ordinary runs of a task.
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

    /// Compile a condition.
    pub(crate) fn compile(condition: &Condition) {
        Compiler::new(0).condition_code(condition);
    }

    /// Check that vectorised and lane-by-lane evaluation agree on a condition and on its failures.
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
        assert!(!inactive, "{condition}: an inactive lane has failed");
    }

    #[test]
    fn vectorised_and_single_lane_evaluation_agree() {
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
