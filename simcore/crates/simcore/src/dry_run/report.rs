//! Counts over runs, and the resulting report.

use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::change_log::Failure;
use crate::dry_run::statistics::{Statistics, add};
use crate::program::{Condition, Program};
use crate::rng::RNG_VERSION;
use crate::simd::Runs;
use crate::value::{Object, Value, count, object};

use super::Options;

/// The outcome of a run.
#[derive(Clone, Copy)]
pub(super) enum Outcome {
    /// The loss condition of this index holds.
    Lost(usize),
    /// The win condition of this index holds.
    Won(usize),
    Survived,
    /// The state exceeded its limits.
    Errored,
}

/// Counts over a range of runs.
pub(super) struct Tally {
    turns: u64,
    losses: Vec<u64>,
    wins: Vec<u64>,
    survived: u64,
    errored: u64,
    /// Distinct failures by code and rule, in order of first occurrence, with their counts.
    failures: Vec<(Failure, u64)>,
    /// Lines of the digest with the number of their run.
    lines: Vec<(u64, String)>,
    /// Optional statistics.
    pub(super) detail: Option<Statistics>,
}

impl Tally {
    pub(super) fn new(program: &Program, options: &Options) -> Self {
        Self {
            turns: 0,
            losses: vec![0; program.losses.len()],
            wins: vec![0; program.wins.len()],
            survived: 0,
            errored: 0,
            failures: Vec::new(),
            lines: Vec::new(),
            detail: options.watched.as_ref().map(|watched| Statistics::new(program, watched)),
        }
    }

    pub(super) fn count(&mut self, outcome: &Outcome, turns: u64) {
        self.turns += turns;
        let counter = match outcome {
            Outcome::Lost(index) => self.losses.get_mut(*index),
            Outcome::Won(index) => self.wins.get_mut(*index),
            Outcome::Survived => Some(&mut self.survived),
            Outcome::Errored => Some(&mut self.errored),
        };
        if let Some(counter) = counter {
            *counter += 1;
        }
        if let Some(detail) = &mut self.detail {
            match outcome {
                Outcome::Lost(_) => detail.count_lost(turns),
                Outcome::Won(_) => detail.count_won(turns),
                Outcome::Survived | Outcome::Errored => {}
            }
        }
    }

    /// Count the movement of the watched numbers from the first state of a run to its last.
    pub(super) fn count_moves(&mut self, options: &Options, first: &Value, last: &Value) {
        if let (Some(detail), Some(watched)) = (&mut self.detail, &options.watched) {
            for (moved, watched) in detail.moves.iter_mut().zip(watched) {
                if let (Some(first), Some(last)) = (watched.number(first), watched.number(last)) {
                    *moved += watched.movement(first, last);
                }
            }
        }
    }

    /// Add the counts of the vectorised executor.
    pub(super) fn add_ordinary(&mut self, runs: &Runs) {
        self.turns += runs.turns;
        self.survived += runs.survived;
        add(&mut self.losses, &runs.losses);
        add(&mut self.wins, &runs.wins);
        self.append_statistics(runs.detail.as_ref());
    }

    pub(super) fn note(&mut self, failure: &Failure) {
        self.note_times(failure, 1);
    }

    fn note_times(&mut self, failure: &Failure, times: u64) {
        let known = self.failures.iter_mut();
        match known.into_iter().find(|(known, _)| known.code == failure.code && known.rule == failure.rule) {
            Some((_, count)) => *count += times,
            None => self.failures.push((failure.clone(), times)),
        }
    }

    /// Add the hash of a final state for the digest.
    pub(super) fn add_state(&mut self, run: u64, outcome: &Outcome, turns: u64, hash: &str) {
        self.lines.push((run, format!("{} {turns} {hash}\n", outcome.name())));
    }

    /// Append the counts of the following runs.
    pub(super) fn append(&mut self, other: Self) {
        self.turns += other.turns;
        self.survived += other.survived;
        self.errored += other.errored;
        add(&mut self.losses, &other.losses);
        add(&mut self.wins, &other.wins);
        other.failures.iter().for_each(|(failure, times)| self.note_times(failure, *times));
        self.append_statistics(other.detail.as_ref());
        self.lines.extend(other.lines);
    }

    fn append_statistics(&mut self, other: Option<&Statistics>) {
        if let (Some(detail), Some(other)) = (&mut self.detail, other) {
            detail.append(other);
        }
    }

    pub(super) fn report(mut self, program: &Program, options: &Options) -> Value {
        let mut report = object([
            ("turns", count(self.turns)),
            ("lost", count(self.losses.iter().sum())),
            ("won", count(self.wins.iter().sum())),
            ("survived", count(self.survived)),
            ("errored", count(self.errored)),
            ("losses", by_id(&program.losses, &self.losses)),
            ("wins", by_id(&program.wins, &self.wins)),
            ("errors", self.failures.iter().map(|(failure, times)| count_map(failure, *times)).collect()),
            ("runs", count(options.runs)),
            ("first_run", count(options.first_run)),
            ("seed", Value::from(options.seed.to_string())),
            ("persona", Value::from(options.persona.name())),
            ("horizon", count(options.horizon)),
            ("rng_version", count(RNG_VERSION)),
        ]);
        if let Value::Object(members) = &mut report {
            let members = Arc::make_mut(members);
            if options.digest {
                members.insert("digest".into(), self.digest().into());
            }
            if let (Some(detail), Some(watched)) = (&self.detail, &options.watched) {
                let mut value = detail.value(program, watched);
                if let (Value::Object(members), true) = (&mut value, options.paths) {
                    Arc::make_mut(members).insert("win_paths".into(), detail.win_paths_value(program));
                }
                members.insert("detail".into(), value);
            }
        }
        report
    }

    fn digest(&mut self) -> String {
        self.lines.sort_unstable_by_key(|(run, _)| *run);
        let mut hash = Sha256::new();
        self.lines.iter().for_each(|(_, line)| hash.update(line));
        hex(&hash.finalize())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Self::Lost(_) => "lost",
            Self::Won(_) => "won",
            Self::Survived => "survived",
            Self::Errored => "errored",
        }
    }
}

fn by_id(conditions: &[Condition], counts: &[u64]) -> Value {
    let counts = counts.iter().map(|&number| count(number));
    conditions.iter().map(|condition| Arc::clone(&condition.id)).zip(counts).collect()
}

fn count_map(failure: &Failure, times: u64) -> Value {
    let mut members: Object = failure.value().as_object().cloned().unwrap_or_default();
    members.insert("count".into(), count(times));
    members.into()
}
