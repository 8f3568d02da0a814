//! What is counted over runs, and the report that it makes.

use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::lanes::{Persona, Runs};
use crate::program::{Condition, Program};
use crate::record::Failure;
use crate::rng::RNG_VERSION;
use crate::value::{Object, Value, count, object};

use super::Options;

/// How a run ended.
#[derive(Clone, Copy)]
pub(super) enum Outcome {
    /// By the loss condition of this index.
    Lost(usize),
    /// By the win condition of this index.
    Won(usize),
    Survived,
    /// The state outgrew its limits.
    Errored,
}

/// What came of some runs.
pub(super) struct Tally {
    turns: u64,
    losses: Vec<u64>,
    wins: Vec<u64>,
    survived: u64,
    errored: u64,
    /// Failures that differ in code or rule, in order of their first occurrence, and how often each happened.
    failures: Vec<(Failure, u64)>,
    /// For a digest: what it says of each run, and the run's number.
    lines: Vec<(u64, String)>,
}

impl Tally {
    pub(super) fn new(program: &Program) -> Self {
        Self {
            turns: 0,
            losses: vec![0; program.losses.len()],
            wins: vec![0; program.wins.len()],
            survived: 0,
            errored: 0,
            failures: Vec::new(),
            lines: Vec::new(),
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
    }

    /// Add what lockstep has counted.
    pub(super) fn add_ordinary(&mut self, runs: &Runs) {
        self.turns += runs.turns;
        self.survived += runs.survived;
        add(&mut self.losses, &runs.losses);
        add(&mut self.wins, &runs.wins);
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

    /// Note the hash of the state in which a run ended, for the digest.
    pub(super) fn add_state(&mut self, run: u64, outcome: &Outcome, turns: u64, hash: &str) {
        self.lines.push((run, format!("{} {turns} {hash}\n", outcome.name())));
    }

    /// Add what came of the runs that follow.
    pub(super) fn append(&mut self, other: Self) {
        self.turns += other.turns;
        self.survived += other.survived;
        self.errored += other.errored;
        add(&mut self.losses, &other.losses);
        add(&mut self.wins, &other.wins);
        other.failures.iter().for_each(|(failure, times)| self.note_times(failure, *times));
        self.lines.extend(other.lines);
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
            ("errors", self.failures.iter().map(|(failure, times)| counted(failure, *times)).collect()),
            ("runs", count(options.runs)),
            ("first_run", count(options.first_run)),
            ("seed", Value::from(options.seed.to_string())),
            ("persona", Value::from(options.persona.name())),
            ("horizon", count(options.horizon)),
            ("rng_version", count(RNG_VERSION)),
        ]);
        if let (true, Value::Object(members)) = (options.digest, &mut report) {
            Arc::make_mut(members).insert("digest".into(), self.digest().into());
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

fn add(to: &mut [u64], counts: &[u64]) {
    to.iter_mut().zip(counts).for_each(|(to, count)| *to += count);
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

impl Persona {
    fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Idle => "idle",
        }
    }
}

fn by_id(conditions: &[Condition], counts: &[u64]) -> Value {
    let counts = counts.iter().map(|&number| count(number));
    conditions.iter().map(|condition| Arc::clone(&condition.id)).zip(counts).collect()
}

fn counted(failure: &Failure, times: u64) -> Value {
    let mut members: Object = failure.value().as_object().cloned().unwrap_or_default();
    members.insert("count".into(), count(times));
    members.into()
}
