//! Comparison of the engine with the handwritten loops.
//!
//! `limit compare` checks that both play the same runs. It then measures them alternately and prints
//! nanoseconds of CPU time per turn, one line of JSON for each scenario.
//!
//! `limit loops` measures the loops only, for builds with other instruction sets.
//!
//! `limit play SIDE SCENARIO RUNS` plays one side, for tools that count instructions, and prints the number
//! of turns.

use std::io::{self, Write};
use std::process::ExitCode;

use cpu_time::ProcessTime;
use simcore::{Isa, Program};
use simcore_benches::cases::{self, Counts};
use simcore_benches::handwritten::{self, Mixed, Numeric, Scenario, Scheduled};

const SEED: u64 = 1;
/// Number of runs that must have equal results.
const CHECKED: u64 = 10_000;
/// Measurement rounds. The sides alternate, and the best round counts.
const ROUNDS: usize = 7;
/// Approximate duration of one measurement.
const NANOSECONDS: f64 = 1e8;

/// Instruction sets of the engine, by name.
const ENGINES: [(&str, Isa); 3] = [("baseline", Isa::Baseline), ("avx2", Isa::Avx2), ("avx512", Isa::Avx512)];

/// A scenario with a handwritten loop.
struct Case {
    name: &'static str,
    hand: fn(u64, u64) -> Counts,
    digest: fn(u64, u64) -> simcore::Result<String>,
}

const CASES: [Case; 3] = [case::<Numeric>("numeric"), case::<Mixed>("mixed"), case::<Scheduled>("scheduled")];

const fn case<S: Scenario>(name: &'static str) -> Case {
    Case { name, hand: handwritten::dry_run::<S>, digest: handwritten::digest::<S> }
}

/// A name and a function that plays a number of runs.
type Side<'a> = (&'static str, Box<dyn Fn(u64) -> Result<Counts, String> + 'a>);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["compare"] => CASES.iter().try_for_each(|case| print_line(&case.compare(usize::MAX)?)),
        ["loops"] => CASES.iter().try_for_each(|case| print_line(&case.compare(1)?)),
        ["play", side, name, runs] => play(side, name, runs).and_then(|turns| print_line(&turns.to_string())),
        _ => Err("usage: limit compare | limit loops | limit play hand|baseline|avx2|avx512 SCENARIO RUNS"
            .to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(io::stderr(), "limit: {message}");
            ExitCode::FAILURE
        }
    }
}

fn print_line(line: &str) -> Result<(), String> {
    writeln!(io::stdout(), "{line}").map_err(|error| error.to_string())
}

fn play(wanted: &str, scenario: &str, runs: &str) -> Result<u64, String> {
    let runs = runs.parse().map_err(|_| format!("RUNS: not a number: {runs}"))?;
    let case = CASES.iter().find(|case| case.name == scenario);
    let case = case.ok_or_else(|| format!("SCENARIO: no handwritten loop: {scenario}"))?;
    let program = cases::program(scenario)?;
    let (_, side) = case
        .sides(&program)
        .into_iter()
        .find(|(name, _)| *name == wanted)
        .ok_or_else(|| format!("{wanted}: not supported by this processor"))?;
    Ok(side(runs)?.turns)
}

impl Case {
    /// Return the loop, then the engine with each instruction set that this processor supports.
    fn sides<'a>(&'a self, program: &'a Program) -> Vec<Side<'a>> {
        let mut sides: Vec<Side<'a>> = vec![("hand", Box::new(|runs| Ok((self.hand)(SEED, runs))))];
        for (name, isa) in ENGINES.into_iter().filter(|(_, isa)| isa.is_available()) {
            sides.push((name, Box::new(move |runs| cases::dry_run(program, isa, SEED, runs, false))));
        }
        sides
    }

    /// Check all sides, then measure the first ones.
    fn compare(&self, measured: usize) -> Result<String, String> {
        let program = cases::program(self.name)?;
        self.check(&program)?;
        let mut sides = self.sides(&program);
        sides.truncate(measured);
        let mut runs = vec![CHECKED; sides.len()];
        let mut best = vec![f64::INFINITY; sides.len()];
        for round in 0..=ROUNDS {
            for (((_, side), runs), best) in sides.iter().zip(&mut runs).zip(&mut best) {
                let (elapsed, turns) = measure(side, *runs)?;
                if round == 0 {
                    *runs = runs_per_measurement(*runs, elapsed);
                } else {
                    *best = best.min(elapsed / turns);
                }
            }
        }
        let figures: Vec<_> =
            sides.iter().zip(best).map(|((name, _), best)| format!(r#""{name}":{best:.3}"#)).collect();
        Ok(format!(r#"{{"scenario":"{}",{}}}"#, self.name, figures.join(",")))
    }

    /// Check that all sides give the same counts and the same final state of each run.
    fn check(&self, program: &Program) -> Result<(), String> {
        let mut hand = (self.hand)(SEED, CHECKED);
        hand.digest = (self.digest)(SEED, CHECKED).map_err(|error| error.to_string())?;
        for (name, isa) in ENGINES {
            let engine = cases::dry_run(program, isa, SEED, CHECKED, true)?;
            if hand != engine {
                return Err(format!(
                    "{}: the loop gives {hand:?}, the engine ({name}) {engine:?}",
                    self.name
                ));
            }
        }
        Ok(())
    }
}

/// Measure CPU time in nanoseconds, and count turns.
#[expect(clippy::cast_precision_loss, reason = "both are far below 2^53")]
fn measure(side: impl Fn(u64) -> Result<Counts, String>, runs: u64) -> Result<(f64, f64), String> {
    let started = ProcessTime::now();
    let counts = side(runs)?;
    Ok((started.elapsed().as_nanos() as f64, counts.turns as f64))
}

/// Return the number of runs, in whole blocks, that one measurement takes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a positive number of runs, roughly"
)]
fn runs_per_measurement(runs: u64, elapsed: f64) -> u64 {
    ((runs as f64 * NANOSECONDS / elapsed) as u64).next_multiple_of(64)
}
