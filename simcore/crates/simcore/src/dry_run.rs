//! Many runs without a model: what the rules do to a player who follows a persona.
//!
//! Runs are independent of each other, so a range of them is cut into pieces for threads; and ordinary runs are played
//! in lockstep, where the program allows it. Nothing of that shows in the report.

mod pieces;
mod report;

use std::ops::Range;

use crate::border;
use crate::canonical;
use crate::error::{Code, Error, Result};
use crate::lanes::{self, Ended, Isa, Persona, Task};
use crate::program::Program;
use crate::read;
use crate::record::{Failure, Record};
use crate::rng::{choose, run_seed};
use crate::state::{State, Status};
use crate::turn::{PolicyDraws, act, legal_choices, step};
use crate::value::Value;

use report::{Outcome, Tally};

/// What a dry-run is asked to do.
struct Options {
    runs: u64,
    first_run: u64,
    seed: u64,
    persona: Persona,
    horizon: u64,
    /// Whether the states in which the runs end are hashed.
    digest: bool,
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
    pub fn named(name: &str) -> Option<Self> {
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
    /// The options are the JSON of `{runs, first_run, seed (text), persona, horizon?, digest?, threads?}`.
    ///
    /// # Errors
    ///
    /// `OPTIONS_INVALID`, or what the JSON border found.
    pub fn dry_run(&self, options: &[u8]) -> Result<String> {
        self.dry_run_by(Executor::Lockstep(Isa::best()), options)
    }

    /// As [`Program::dry_run`], by a given executor.
    ///
    /// # Errors
    ///
    /// As [`Program::dry_run`].
    pub fn dry_run_by(&self, executor: Executor, options: &[u8]) -> Result<String> {
        let options = border::parse_canonical(options)?;
        let options = Options::new(&options, self.horizon).map_err(|_| {
            Error::new(Code::OptionsInvalid, "a dry-run needs runs, first_run, seed and a known persona")
        })?;
        let end = options.first_run.checked_add(options.runs).ok_or_else(|| {
            Error::new(Code::OptionsInvalid, "a dry-run needs runs, first_run, seed and a known persona")
        })?;
        let tally = pieces::play(options.first_run..end, options.threads, |runs| {
            play_piece(self, executor, &options, runs)
        })?;
        canonical::text(&tally.report(self, &options))
    }

    /// Whether ordinary runs of this program are played in lockstep.
    #[must_use]
    pub fn plays_in_lockstep(&self) -> bool {
        self.machine().is_some()
    }
}

impl Options {
    fn new(options: &Value, horizon: u64) -> Result<Self> {
        let options = read::object(options)?;
        let seed = read::text(read::field(options, "seed")?)?;
        let threads = options.get("threads").map(read::count).transpose()?;
        Ok(Self {
            runs: read::count(read::field(options, "runs")?)?,
            first_run: read::count(read::field(options, "first_run")?)?,
            seed: seed.parse().map_err(|_| read::invalid("a seed is expected"))?,
            persona: match &*read::text(read::field(options, "persona")?)? {
                "random" => Persona::Random,
                "idle" => Persona::Idle,
                _ => return Err(read::invalid("a persona is expected")),
            },
            horizon: options.get("horizon").map_or(Ok(horizon), read::count)?,
            digest: options.get("digest").map_or(Ok(false), read::boolean)?,
            threads: threads
                .map_or_else(pieces::all_threads, |threads| usize::try_from(threads).unwrap_or(1)),
        })
    }
}

fn play_piece(program: &Program, executor: Executor, options: &Options, runs: Range<u64>) -> Result<Tally> {
    let mut tally = Tally::new(program);
    let lockstep = match executor {
        Executor::Lockstep(isa) if options.horizon > 0 => program.machine().map(|machine| (machine, isa)),
        _ => None,
    };
    let Some((machine, isa)) = lockstep else {
        for run in runs {
            play_one(program, options, run, &mut tally)?;
        }
        return Ok(tally);
    };
    let Options { seed, persona, horizon, digest, .. } = *options;
    let ordinary = lanes::play(machine, Task { program, runs, seed, persona, horizon, digest }, isa);
    tally.add_ordinary(&ordinary);
    for (run, ended, turns, hash) in &ordinary.states {
        tally.add_state(*run, &Outcome::from(*ended), *turns, hash);
    }
    // What fails is told in the order of the runs, and only these have anything to tell.
    for run in ordinary.exceptional {
        play_one(program, options, run, &mut tally)?;
    }
    Ok(tally)
}

/// Play one run by the interpreter.
fn play_one(program: &Program, options: &Options, run: u64, tally: &mut Tally) -> Result<()> {
    let mut state = program.new_state(run_seed(options.seed, run));
    let mut record = Record::new(false);
    let outcome = play(program, &mut state, options, tally, &mut record);
    tally.count(&outcome, state.turn);
    if options.digest {
        tally.add_state(run, &outcome, state.turn, &state.hash()?);
    }
    Ok(())
}

/// Play one run to its end.
fn play(
    program: &Program,
    state: &mut State,
    options: &Options,
    tally: &mut Tally,
    record: &mut Record,
) -> Outcome {
    while state.turn < options.horizon {
        if let Err(error) = play_turn(program, state, options.persona, tally, record) {
            tally.note(&Failure::of(&error, format_args!("")));
            return Outcome::Errored;
        }
        match state.status {
            Status::Ongoing => {}
            Status::Lost(condition) => return Outcome::Lost(condition),
            Status::Won(condition) => return Outcome::Won(condition),
        }
    }
    Outcome::Survived
}

fn play_turn(
    program: &Program,
    state: &mut State,
    persona: Persona,
    tally: &mut Tally,
    record: &mut Record,
) -> Result<()> {
    if let Persona::Random = persona {
        take_random_action(program, state, tally, record)?;
    }
    step(program, state, record)?;
    record.failures.iter().for_each(|failure| tally.note(failure));
    Ok(())
}

fn take_random_action(
    program: &Program,
    state: &mut State,
    tally: &mut Tally,
    record: &mut Record,
) -> Result<()> {
    let mut draws = PolicyDraws::new(state);
    record.clear();
    let choices = legal_choices(program, state, &mut draws, record)?;
    record.failures.iter().for_each(|failure| tally.note(failure));
    if choices.is_empty() {
        return Ok(());
    }
    let index = usize::try_from(choose(draws.next(), choices.len() as u64)).unwrap_or(0);
    if let Some(choice) = choices.get(index) {
        act(program, state, &choice.action.id, &choice.params, record)?;
        record.failures.iter().for_each(|failure| tally.note(failure));
    }
    Ok(())
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
