//! Many runs without a model: what the rules do to a player who follows a persona.
//!
//! All runs begin with a copy of one state, the initial one or another. They are independent of each other, so a range of
//! them is cut into pieces for threads; and ordinary runs are played in lockstep, where the program allows it. Nothing of
//! that shows in the report.

mod interpreter;
mod lookahead;
mod report;
pub(crate) mod statistics;
mod work_pieces;

use std::cell::OnceCell;
use std::ops::Range;

use crate::canonical_json;
use crate::document;
use crate::dry_run::statistics::WatchedPath;
use crate::error::{Code, Error, Result};
use crate::personas::Persona;
use crate::program::Program;
use crate::simd::{self, Ended, Isa, Machine, Task};
use crate::state::State;
use crate::strict_json;
use crate::turn::check_ongoing;
use crate::value::Value;

use interpreter::Interpreter;
use report::{Outcome, Tally};

/// Runs that may come to a later turn are left to the interpreter: in lockstep turns are counted in columns of numbers.
const LAST_TURN: u64 = 1 << 32;

/// What a dry-run is asked to do.
struct Options {
    runs: u64,
    first_run: u64,
    seed: u64,
    persona: Persona,
    /// The most turns of a run.
    horizon: u64,
    /// Whether the persona has nothing to do any more in the turn in which the runs begin.
    acted: bool,
    /// Whether the states in which the runs end are hashed.
    digest: bool,
    /// Of a dry-run that counts more, the numbers that it follows.
    watched: Option<Vec<WatchedPath>>,
    /// How many threads share the work at most.
    threads: usize,
}

/// Who plays the runs. What comes of them is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executor {
    /// Ordinary runs in lockstep, where the program allows it, with these instructions; the rest one by one.
    Lockstep(Isa),
    /// One run after the other, by the interpreter.
    Interpreter,
}

impl Executor {
    /// The executor of a name: `interpreter`, or the instructions for lockstep if this processor has them.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let isa = match name {
            "interpreter" => return Some(Self::Interpreter),
            "baseline" => Isa::Baseline,
            "avx2" => Isa::Avx2,
            "avx512" => Isa::Avx512,
            _ => return None,
        };
        isa.is_available().then_some(Self::Lockstep(isa))
    }
}

impl Program {
    /// Play runs `first_run` … `first_run + runs − 1`; the JSON of a `DryRunReport`.
    ///
    /// The options are the JSON of `{runs, first_run, seed (text), persona, horizon?, digest?, detail?, watch?, threads?}`.
    ///
    /// # Errors
    ///
    /// `OPTIONS_INVALID`, or what the JSON border found.
    pub fn dry_run(&self, options: &[u8]) -> Result<String> {
        self.dry_run_with(Executor::Lockstep(Isa::best()), options)
    }

    /// As [`Program::dry_run`], by a given executor.
    ///
    /// # Errors
    ///
    /// As [`Program::dry_run`].
    pub fn dry_run_with(&self, executor: Executor, options: &[u8]) -> Result<String> {
        let options = Options { acted: false, ..Options::read(options, self.horizon)? };
        let start = self.new_state(0);
        self.run_from(executor, &start, &options, || self.machine())
    }

    /// Play runs `first_run` … `first_run + runs − 1` that begin with a copy of a state, under seeds of their own; the JSON
    /// of a `DryRunReport`.
    ///
    /// The options are those of a dry-run, whose turns are counted from the state, and `acted?`: whether its current turn is
    /// one in which the persona has nothing to do any more.
    ///
    /// # Errors
    ///
    /// `RUN_ENDED`, and as [`Program::dry_run`].
    pub fn simulate_from(&self, state: &State, options: &[u8]) -> Result<String> {
        self.simulate_from_with(Executor::Lockstep(Isa::best()), state, options)
    }

    /// As [`Program::futures`], by a given executor.
    ///
    /// # Errors
    ///
    /// As [`Program::futures`].
    pub fn simulate_from_with(&self, executor: Executor, state: &State, options: &[u8]) -> Result<String> {
        check_ongoing(state)?;
        let options = Options::read(options, self.horizon)?;
        let machine = OnceCell::new();
        self.run_from(executor, state, &options, || {
            machine.get_or_init(|| Machine::new(self, state)).as_ref()
        })
    }

    /// Play runs from a state, whose machine is made only if it is wanted.
    fn run_from<'m>(
        &self,
        executor: Executor,
        start: &State,
        options: &Options,
        machine: impl FnOnce() -> Option<&'m Machine>,
    ) -> Result<String> {
        let end = options.first_run.checked_add(options.runs).ok_or_else(unknown)?;
        let is_countable = options.horizon > 0 && start.turn + options.horizon <= LAST_TURN;
        let lockstep = match executor {
            Executor::Lockstep(isa) if is_countable => {
                let machine = machine().filter(|machine| machine.supports(options.persona));
                machine.map(|machine| (machine, isa))
            }
            _ => None,
        };
        let tally = work_pieces::play(options.first_run..end, options.persona, options.threads, |runs| {
            play_piece(self, lockstep, start, options, runs)
        })?;
        canonical_json::text(&tally.report(self, options))
    }

    /// Whether ordinary runs of this program are played in lockstep.
    #[must_use]
    pub fn is_vectorised(&self) -> bool {
        self.machine().is_some()
    }

    /// Whether ordinary futures of a state of this program are played in lockstep.
    #[must_use]
    pub fn is_vectorised_from(&self, state: &State) -> bool {
        Machine::new(self, state).is_some()
    }
}

impl Options {
    /// The options in a document; a scenario has the horizon that is meant where none is named.
    fn read(document: &[u8], horizon: u64) -> Result<Self> {
        Self::new(&strict_json::parse_canonical(document)?, horizon).map_err(|_| unknown())
    }

    fn new(options: &Value, horizon: u64) -> Result<Self> {
        let options = document::object(options)?;
        let seed = document::text(document::field(options, "seed")?)?;
        let threads = options.get("threads").map(document::count).transpose()?;
        Ok(Self {
            runs: document::count(document::field(options, "runs")?)?,
            first_run: document::count(document::field(options, "first_run")?)?,
            seed: seed.parse().map_err(|_| document::invalid("a seed is expected"))?,
            persona: Persona::from_name(document::text(document::field(options, "persona")?)?)
                .ok_or_else(|| document::invalid("a persona is expected"))?,
            horizon: options.get("horizon").map_or(Ok(horizon), document::count)?,
            acted: options.get("acted").map_or(Ok(false), document::boolean)?,
            digest: options.get("digest").map_or(Ok(false), document::boolean)?,
            watched: if options.get("detail").map_or(Ok(false), document::boolean)? {
                Some(document::list_or_empty(options, "watch")?.iter().map(watched).collect::<Result<_>>()?)
            } else {
                None
            },
            threads: threads
                .map_or_else(work_pieces::all_threads, |threads| usize::try_from(threads).unwrap_or(1)),
        })
    }
}

fn unknown() -> Error {
    Error::new(Code::OptionsInvalid, "a dry-run needs runs, first_run, seed and a known persona")
}

/// A number to watch, `[path, scale]`.
fn watched(pair: &Value) -> Result<WatchedPath> {
    let [path, scale] = document::list(pair)? else {
        return Err(document::invalid("a path and a scale are expected"));
    };
    WatchedPath::new(document::text(path)?.into(), document::number(scale)?)
        .ok_or_else(|| document::invalid("a path of the state and a scale are expected"))
}

fn play_piece(
    program: &Program,
    lockstep: Option<(&Machine, Isa)>,
    start: &State,
    options: &Options,
    runs: Range<u64>,
) -> Result<Tally> {
    let mut tally = Tally::new(program, options);
    let Some((machine, isa)) = lockstep else {
        let mut interpreter = Interpreter::new(program, start, options, &mut tally);
        for run in runs {
            interpreter.play(run)?;
        }
        return Ok(tally);
    };
    let Options { seed, persona, horizon, acted, digest, .. } = *options;
    let watched = options.watched.as_deref();
    let task = Task { program, runs, seed, persona, horizon, acted, digest, watched };
    let ordinary = simd::play(machine, task, isa);
    tally.add_ordinary(&ordinary);
    for (run, ended, turns, hash) in &ordinary.states {
        tally.add_state(*run, &Outcome::from(*ended), *turns, hash);
    }
    // What fails is told in the order of the runs, and only these have anything to tell.
    let mut interpreter = Interpreter::new(program, start, options, &mut tally);
    for run in ordinary.exceptional {
        interpreter.play(run)?;
    }
    Ok(tally)
}

impl From<Ended> for Outcome {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Lost(condition) => Self::Lost(condition),
            Ended::Won(condition) => Self::Won(condition),
            Ended::Survived => Self::Survived,
        }
    }
}
