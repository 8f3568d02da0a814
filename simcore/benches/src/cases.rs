//! Reference scenarios as `python -m bench.reference` writes them, and dry-runs of them.

use std::path::PathBuf;

use simcore::{Executor, Isa, Program, Value, strict_json};

/// Default folder of the scenarios. `PERIPETY_BENCH_SPECS` overrides it.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/specs");

/// Read the document of a scenario.
///
/// # Errors
///
/// If the file is missing: a sentence with the command that writes it.
pub fn document(name: &str) -> Result<Vec<u8>, String> {
    let folder = std::env::var_os("PERIPETY_BENCH_SPECS").unwrap_or_else(|| FOLDER.into());
    let path = PathBuf::from(folder).join(format!("{name}.json"));
    std::fs::read(&path).map_err(|error| {
        format!("{}: {error}; write it with `PYTHONPATH=tests python -m bench.reference`", path.display())
    })
}

/// Compile a scenario.
///
/// # Errors
///
/// A sentence about a missing or invalid document.
pub fn program(name: &str) -> Result<Program, String> {
    Program::new(&document(name)?).map_err(|error| format!("{name}: {error}"))
}

/// Counts of a dry-run that the handwritten loops produce too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Turns over all runs.
    pub turns: u64,
    /// Lost runs for each condition, in the order of their ids.
    pub losses: Vec<u64>,
    /// Runs that reached the horizon.
    pub survived: u64,
    /// SHA-256 over outcome, turns and final state of each run. Empty if not requested.
    pub digest: String,
}

/// Play runs 0 … `runs` − 1 of the persona `random` on one thread with an instruction set.
///
/// # Errors
///
/// A sentence about an error or a missing count of the engine.
pub fn dry_run(program: &Program, isa: Isa, seed: u64, runs: u64, digest: bool) -> Result<Counts, String> {
    let options = format!(
        r#"{{"digest":{digest},"first_run":0,"persona":"random","runs":{runs},"seed":"{seed}","threads":1}}"#
    );
    let report = program.dry_run_with(Executor::Lockstep(isa), options.as_bytes());
    let report = report.map_err(|error| error.to_string())?;
    let report = strict_json::parse_canonical(report.as_bytes()).map_err(|error| error.to_string())?;
    counts(&report).ok_or_else(|| "the report lacks a member".to_owned())
}

fn counts(report: &Value) -> Option<Counts> {
    let report = report.as_object()?;
    let losses = report.get("losses")?.as_object()?;
    Some(Counts {
        turns: whole(report.get("turns")?)?,
        losses: losses.values().map(whole).collect::<Option<_>>()?,
        survived: whole(report.get("survived")?)?,
        digest: report.get("digest").and_then(Value::as_text).unwrap_or_default().to_owned(),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are whole and not negative"
)]
fn whole(value: &Value) -> Option<u64> {
    value.as_number().map(|number| number as u64)
}
