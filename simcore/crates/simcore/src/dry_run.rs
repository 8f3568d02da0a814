//! Monte Carlo dry-runs: many runs of a scenario, played by a persona without a model.
//!
//! All runs begin with a copy of one state. They are independent, so a range of runs is split into pieces for
//! threads. Ordinary runs are vectorised if the program permits it. Neither affects the report.

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

/// Runs with later turns are left to the interpreter: the vectorised executor stores turns as floating-point
/// numbers.
const LAST_TURN: u64 = 1 << 32;

/// Options of a dry-run.
struct Options {
    runs: u64,
    first_run: u64,
    seed: u64,
    persona: Persona,
    /// Maximum turns of a run.
    horizon: u64,
    /// True if the persona has already acted in the current turn.
    acted: bool,
    /// True if final states are hashed.
    digest: bool,
    /// Watched numbers, if statistics are requested.
    watched: Option<Vec<WatchedPath>>,
    /// True if the actions of won runs are collected.
    paths: bool,
    /// Maximum number of threads.
    threads: usize,
}

/// The executor of the runs. It has no effect on the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executor {
    /// Ordinary runs are vectorised with an instruction set if the program permits it. Other runs are
    /// interpreted.
    Lockstep(Isa),
    /// All runs are interpreted.
    Interpreter,
}

impl Executor {
    /// Return the executor of a name: `interpreter`, or an instruction set that this processor supports.
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
    /// Play runs `first_run` … `first_run + runs − 1`. Return the JSON of a `DryRunReport`.
    ///
    /// The options are the JSON of `{runs, first_run, seed (text), persona, horizon?, digest?, detail?,
    /// watch?, paths?, threads?}`.
    ///
    /// # Errors
    ///
    /// `OPTIONS_INVALID`, or an error of the JSON parser.
    pub fn dry_run(&self, options: &[u8]) -> Result<String> {
        self.dry_run_with(Executor::Lockstep(Isa::best()), options)
    }

    /// As [`Program::dry_run`], with a given executor.
    ///
    /// # Errors
    ///
    /// As [`Program::dry_run`].
    pub fn dry_run_with(&self, executor: Executor, options: &[u8]) -> Result<String> {
        let options = Options { acted: false, ..Options::parse(options, self.horizon)? };
        let start = State::undealt(self, 0);
        self.run_from(executor, &start, &options, || self.machine())
    }

    /// Play runs `first_run` … `first_run + runs − 1` from a copy of a state, each under its own seed. Return
    /// the JSON of a `DryRunReport`.
    ///
    /// The options are those of a dry-run, with turns counted from the state, and `acted?`: true if the
    /// persona has already acted in the current turn.
    ///
    /// # Errors
    ///
    /// `RUN_ENDED`, and as [`Program::dry_run`].
    pub fn simulate_from(&self, state: &State, options: &[u8]) -> Result<String> {
        self.simulate_from_with(Executor::Lockstep(Isa::best()), state, options)
    }

    /// As [`Program::simulate_from`], with a given executor.
    ///
    /// # Errors
    ///
    /// As [`Program::simulate_from`].
    pub fn simulate_from_with(&self, executor: Executor, state: &State, options: &[u8]) -> Result<String> {
        check_ongoing(state)?;
        let options = Options::parse(options, self.horizon)?;
        let machine = OnceCell::new();
        self.run_from(executor, state, &options, || {
            machine.get_or_init(|| Machine::new(self, state)).as_ref()
        })
    }

    /// Play runs from a state. Its machine is built only if it is used.
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
            Executor::Lockstep(isa) if is_countable && !options.paths => {
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

    /// Return True if ordinary runs of this program are vectorised.
    #[must_use]
    pub fn is_vectorised(&self) -> bool {
        self.machine().is_some()
    }

    /// Return True if ordinary runs from a state of this program are vectorised.
    #[must_use]
    pub fn is_vectorised_from(&self, state: &State) -> bool {
        Machine::new(self, state).is_some()
    }
}

impl Options {
    /// Parse the options of a document. The default horizon is that of the scenario.
    fn parse(document: &[u8], horizon: u64) -> Result<Self> {
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
                Some(
                    document::list_or_empty(options, "watch")?
                        .iter()
                        .map(parse_watched)
                        .collect::<Result<_>>()?,
                )
            } else {
                None
            },
            paths: options.get("paths").map_or(Ok(false), document::boolean)?,
            threads: threads
                .map_or_else(work_pieces::all_threads, |threads| usize::try_from(threads).unwrap_or(1)),
        })
    }
}

fn unknown() -> Error {
    Error::new(Code::OptionsInvalid, "a dry-run needs runs, first_run, seed and a known persona")
}

/// Parse a watched number, `[path, scale]`.
fn parse_watched(pair: &Value) -> Result<WatchedPath> {
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
    // Failures are reported in the order of the runs, and only these runs can have failures.
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
