//! The engine against the hand-written loops.
//!
//! `limit compare` checks that both play the same, then lets them take turns and prints CPU time for a turn, one line
//! of JSON for each scenario. `limit play engine|hand SCENARIO RUNS` plays only one of them, for tools that count
//! instructions, and prints the turns played.

use std::io::{self, Write};
use std::process::ExitCode;

use cpu_time::ProcessTime;
use simcore::Program;
use simcore_benches::by_hand::{self, Mixed, Numeric, Scenario, Scheduled};
use simcore_benches::cases::{self, Counts};

const SEED: u64 = 1;
/// How many runs have to come out the same.
const CHECKED: u64 = 10_000;
/// Rounds of which the best counts, the two taking turns.
const ROUNDS: usize = 7;
/// About how long one measurement takes.
const NANOSECONDS: f64 = 1.5e8;

/// A scenario that was written by hand.
struct Case {
    name: &'static str,
    hand: fn(u64, u64) -> Counts,
    digest: fn(u64, u64) -> simcore::Result<String>,
}

const CASES: [Case; 3] = [case::<Numeric>("numeric"), case::<Mixed>("mixed"), case::<Scheduled>("scheduled")];

const fn case<S: Scenario>(name: &'static str) -> Case {
    Case { name, hand: by_hand::dry_run::<S>, digest: by_hand::digest::<S> }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["compare"] => CASES.iter().try_for_each(|case| say(&case.compare()?)),
        ["play", side, name, runs] => play(side, name, runs).and_then(|turns| say(&turns.to_string())),
        _ => Err("usage: limit compare | limit play engine|hand SCENARIO RUNS".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(io::stderr(), "limit: {message}");
            ExitCode::FAILURE
        }
    }
}

fn say(line: &str) -> Result<(), String> {
    writeln!(io::stdout(), "{line}").map_err(|error| error.to_string())
}

fn play(side: &str, name: &str, runs: &str) -> Result<u64, String> {
    let runs = runs.parse().map_err(|_| format!("{runs} is no number of runs"))?;
    let counts = match side {
        "engine" => cases::dry_run(&cases::program(name)?, SEED, runs, false)?,
        "hand" => {
            let case = CASES.iter().find(|case| case.name == name);
            (case.ok_or_else(|| format!("{name} is not written by hand"))?.hand)(SEED, runs)
        }
        _ => return Err(format!("{side} is neither engine nor hand")),
    };
    Ok(counts.turns)
}

impl Case {
    /// Check, then measure both sides.
    fn compare(&self) -> Result<String, String> {
        let program = cases::program(self.name)?;
        self.check(&program)?;
        let hand = |runs| Ok((self.hand)(SEED, runs));
        let engine = |runs| cases::dry_run(&program, SEED, runs, false);
        let sides: [&dyn Fn(u64) -> Result<Counts, String>; 2] = [&hand, &engine];
        let mut runs = [CHECKED; 2];
        let mut best = [f64::INFINITY; 2];
        for round in 0..=ROUNDS {
            for ((side, runs), best) in sides.iter().zip(&mut runs).zip(&mut best) {
                let (taken, turns) = measure(side, *runs)?;
                if round == 0 {
                    *runs = enough(*runs, taken);
                } else {
                    *best = best.min(taken / turns);
                }
            }
        }
        let [hand, engine] = best;
        let name = self.name;
        Ok(format!(r#"{{"scenario":"{name}","hand":{hand:.3},"engine":{engine:.3}}}"#))
    }

    /// Both must give the same counts, and the same final state of each run.
    fn check(&self, program: &Program) -> Result<(), String> {
        let mut hand = (self.hand)(SEED, CHECKED);
        hand.digest = (self.digest)(SEED, CHECKED).map_err(|error| error.to_string())?;
        let engine = cases::dry_run(program, SEED, CHECKED, true)?;
        if hand == engine {
            return Ok(());
        }
        Err(format!("{}: the loop gives {hand:?}, the engine {engine:?}", self.name))
    }
}

/// CPU time in nanoseconds, and turns.
#[expect(clippy::cast_precision_loss, reason = "both are far below 2^53")]
fn measure(side: &dyn Fn(u64) -> Result<Counts, String>, runs: u64) -> Result<(f64, f64), String> {
    let started = ProcessTime::now();
    let counts = side(runs)?;
    Ok((started.elapsed().as_nanos() as f64, counts.turns as f64))
}

/// How many runs take about as long as a measurement should, in whole blocks.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a positive number of runs, roughly"
)]
fn enough(runs: u64, taken: f64) -> u64 {
    ((runs as f64 * NANOSECONDS / taken) as u64).next_multiple_of(64)
}
