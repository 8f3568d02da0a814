//! Many runs without a model: what the rules do to a player who follows a persona.

use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::border;
use crate::canonical;
use crate::error::{Code, Error, Result};
use crate::program::{Condition, Program};
use crate::read;
use crate::record::{Failure, Record};
use crate::rng::{RNG_VERSION, choose, run_seed};
use crate::state::{State, Status};
use crate::turn::{PolicyDraws, act, legal_choices, step};
use crate::value::{Object, Value, count, object};

/// What a dry-run is asked to do.
struct Options {
    runs: u64,
    first_run: u64,
    seed: u64,
    persona: Persona,
    horizon: u64,
    /// Whether the states in which the runs end are hashed.
    digest: bool,
}

#[derive(Clone, Copy)]
enum Persona {
    /// Uniform over legal actions and parameters.
    Random,
    /// No action at all.
    Idle,
}

/// How a run ended.
enum Outcome {
    Ended(Status),
    Survived,
    /// The state outgrew its limits.
    Errored,
}

impl Program {
    /// Play runs `first_run` … `first_run + runs − 1`; the JSON of a `DryRunReport`.
    ///
    /// The options are the JSON of `{runs, first_run, seed (text), persona, horizon?, digest?}`.
    ///
    /// # Errors
    ///
    /// `OPTIONS_INVALID`, or what the JSON border found.
    pub fn dry_run(&self, options: &[u8]) -> Result<String> {
        let options = border::parse_canonical(options)?;
        let options = Options::new(&options, self.horizon).map_err(|_| {
            Error::new(Code::OptionsInvalid, "a dry-run needs runs, first_run, seed and a known persona")
        })?;
        let mut tally = Tally::new(self, &options);
        let mut record = Record::new(false);
        for run in 0..options.runs {
            let mut state = self.new_state(run_seed(options.seed, options.first_run.wrapping_add(run)));
            let outcome = play(self, &mut state, &options, &mut tally, &mut record);
            tally.count(&outcome, state.turn);
            if let Some(digest) = &mut tally.digest {
                digest.add(&outcome, state.turn, &state.tree)?;
            }
        }
        canonical::text(&tally.report(self, &options))
    }
}

impl Options {
    fn new(options: &Value, horizon: u64) -> Result<Self> {
        let options = read::object(options)?;
        let seed = read::text(read::field(options, "seed")?)?;
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
        })
    }
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
        if state.status != Status::Ongoing {
            return Outcome::Ended(state.status);
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

/// What came of the runs so far.
struct Tally {
    turns: u64,
    losses: Vec<u64>,
    wins: Vec<u64>,
    survived: u64,
    errored: u64,
    /// Failures that differ in code or rule, in order of their first occurrence, and how often each happened.
    failures: Vec<(Failure, u64)>,
    digest: Option<Digest>,
}

/// A hash over how each run ended, after how many turns, in which state.
#[derive(Default)]
struct Digest(Sha256);

impl Digest {
    fn add(&mut self, outcome: &Outcome, turns: u64, tree: &Value) -> Result<()> {
        let state = hex(&Sha256::digest(canonical::text(tree)?));
        self.0.update(format!("{} {turns} {state}\n", outcome.name()));
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Outcome {
    fn name(&self) -> &'static str {
        match self {
            Self::Ended(Status::Ongoing) | Self::Survived => "survived",
            Self::Ended(status) => status.kind(),
            Self::Errored => "errored",
        }
    }
}

impl Tally {
    fn new(program: &Program, options: &Options) -> Self {
        Self {
            digest: options.digest.then(Digest::default),
            turns: 0,
            losses: vec![0; program.losses.len()],
            wins: vec![0; program.wins.len()],
            survived: 0,
            errored: 0,
            failures: Vec::new(),
        }
    }

    fn count(&mut self, outcome: &Outcome, turns: u64) {
        self.turns += turns;
        let counter = match outcome {
            Outcome::Ended(Status::Lost(index)) => self.losses.get_mut(*index),
            Outcome::Ended(Status::Won(index)) => self.wins.get_mut(*index),
            Outcome::Ended(Status::Ongoing) | Outcome::Survived => Some(&mut self.survived),
            Outcome::Errored => Some(&mut self.errored),
        };
        if let Some(counter) = counter {
            *counter += 1;
        }
    }

    fn note(&mut self, failure: &Failure) {
        let known = self.failures.iter_mut();
        match known.into_iter().find(|(known, _)| known.code == failure.code && known.rule == failure.rule) {
            Some((_, times)) => *times += 1,
            None => self.failures.push((failure.clone(), 1)),
        }
    }

    fn report(self, program: &Program, options: &Options) -> Value {
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
        if let (Some(Digest(hash)), Value::Object(members)) = (self.digest, &mut report) {
            Arc::make_mut(members).insert("digest".into(), hex(&hash.finalize()).into());
        }
        report
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
