//! Snapshots: a state as JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::canonical_json;
use crate::document;
use crate::effects::{Compiling, Effect};
use crate::error::{Code, Error, Result};
use crate::json_node::Members;
use crate::program::{Condition, Program};
use crate::rng::RNG_VERSION;
use crate::strict_json;
use crate::value::{Value, count, object};

use super::{Lasting, LogLine, MAX_LOG_LINES, MAX_PENDING, MAX_ROLLS, Scheduled, Size, State, Status};

/// Number of members of every snapshot.
const MEMBERS: usize = 9;

impl State {
    /// Return a complete snapshot as canonical JSON.
    ///
    /// # Errors
    ///
    /// `TOO_DEEP` if it cannot be written.
    pub fn to_json(&self, program: &Program) -> Result<String> {
        let rolls = (!self.rolls.is_empty()).then(|| ("rolls", self.rolls_value()));
        let always = [
            ("lasting", self.lasting.iter().filter_map(|entry| entry.value(program)).collect()),
            ("log", self.log.iter().map(|line| line.value()).collect()),
            ("opened", Value::Bool(self.opened)),
            ("rng_version", count(RNG_VERSION)),
            ("scheduled", Scheduled::list(&self.scheduled)),
            ("seed", Value::from(self.seed.to_string())),
            ("state", self.tree.clone()),
            ("status", self.status.value(program)),
            ("turn", count(self.turn)),
        ];
        let members = always.into_iter().chain(rolls);
        canonical_json::text(&members.map(|(key, value)| (Arc::from(key), value)).collect())
    }

    fn rolls_value(&self) -> Value {
        self.rolls.iter().map(|(stream, rolled)| (Arc::clone(stream), count(*rolled))).collect()
    }

    /// Restore a state from a snapshot of [`State::to_json`].
    ///
    /// # Errors
    ///
    /// `SNAPSHOT_INVALID`, or an error of the JSON parser.
    pub fn from_json(program: &Program, snapshot: &[u8]) -> Result<Self> {
        let value = strict_json::parse_canonical(snapshot)?;
        let members = document::object(&value).map_err(|_| invalid_snapshot())?;
        if members
            .get("rng_version")
            .is_some_and(|version| version.as_number() != count(RNG_VERSION).as_number())
        {
            let message = "the snapshot is of another version of the random numbers";
            return Err(Error::new(Code::SnapshotInvalid, message));
        }
        parse_state(program, members).map_err(|_| invalid_snapshot())
    }
}

fn parse_state(program: &Program, snapshot: Members<'_, Value>) -> Result<State> {
    let entries = |name| document::list(document::field(snapshot, name)?);
    let tree = document::field(snapshot, "state")?;
    document::object(tree)?;
    document::field(snapshot, "rng_version")?;
    check_member_count(snapshot, MEMBERS + usize::from(snapshot.get("rolls").is_some()))?;
    let mut size = Size::measure(tree);
    let mut state = State {
        seed: parse_seed(document::text(document::field(snapshot, "seed")?)?)?,
        tree: tree.clone(),
        nodes: size.nodes,
        text: size.text,
        turn: document::count(document::field(snapshot, "turn")?)?,
        opened: document::boolean(document::field(snapshot, "opened")?)?,
        scheduled: Arc::default(),
        lasting: entries("lasting")?
            .iter()
            .map(|entry| parse_lasting(program, entry))
            .collect::<Result<_>>()?,
        log: Arc::new(entries("log")?.iter().map(parse_log_line).collect::<Result<_>>()?),
        status: parse_status(program, document::object(document::field(snapshot, "status")?)?)?,
        rolls: snapshot.get("rolls").map_or_else(|| Ok(BTreeMap::new()), parse_rolls)?,
        is_dealt: true,
    };
    for entry in entries("scheduled")? {
        let entry = parse_scheduled(program, entry)?;
        size.longest = size.longest.max(entry.size().longest);
        state.schedule(entry);
    }
    Size { nodes: state.nodes, text: state.text, ..size }.check()?;
    if state.log.len() > MAX_LOG_LINES || state.scheduled.len() > MAX_PENDING {
        return Err(document::invalid("there are too many entries"));
    }
    Ok(state)
}

fn invalid_snapshot() -> Error {
    Error::new(Code::SnapshotInvalid, "the snapshot was not made by this engine")
}

/// Reject an object with members that were not read.
fn check_member_count(object: Members<'_, Value>, members: usize) -> Result<()> {
    if object.len() == members { Ok(()) } else { Err(document::invalid("other members are not expected")) }
}

fn parse_seed(text: &str) -> Result<u64> {
    let seed = text.parse().map_err(|_| document::invalid("a seed is expected"))?;
    if u64::to_string(&seed) == text { Ok(seed) } else { Err(document::invalid("a seed is expected")) }
}

fn parse_scheduled(program: &Program, entry: &Value) -> Result<Scheduled> {
    let entry = document::object(entry)?;
    let effects = Effect::compile_scheduled(
        document::field(entry, "effects")?,
        &mut Compiling::new(program.turn_minutes, &program.bounds),
    )?;
    let due = document::count(document::field(entry, "due")?)?;
    check_member_count(entry, 3)?;
    Ok(Scheduled::new(document::text(document::field(entry, "id")?)?.into(), due, effects, u64::MAX))
}

fn parse_lasting(program: &Program, entry: &Value) -> Result<Lasting> {
    let entry = document::object(entry)?;
    let id = document::text(document::field(entry, "id")?)?;
    let event = program.events.iter().position(|event| *event.id == *id);
    let event = event.ok_or_else(|| document::invalid("there is no such event"))?;
    check_member_count(entry, 2)?;
    Ok(Lasting { event, until: document::count(document::field(entry, "until")?)? })
}

fn parse_log_line(line: &Value) -> Result<Arc<LogLine>> {
    let line = document::object(line)?;
    check_member_count(line, 3)?;
    Ok(Arc::new(LogLine {
        turn: document::count(document::field(line, "turn")?)?,
        message: document::text(document::field(line, "message")?)?.into(),
        cause: document::text(document::field(line, "cause")?)?.into(),
    }))
}

fn parse_status(program: &Program, given: Members<'_, Value>) -> Result<Status> {
    let status = status_from_name(program, given)?;
    let expected = status.value(program);
    if document::object(&expected)?.iter().map(text_of).eq(given.iter().map(text_of)) {
        Ok(status)
    } else {
        Err(document::invalid("another status is expected"))
    }
}

/// Return a member of a status, whose values are texts or null.
fn text_of<'a>((key, value): (&'a str, &'a Value)) -> (&'a str, Option<&'a str>, bool) {
    (key, value.as_text(), matches!(value, Value::Null))
}

fn status_from_name(program: &Program, status: Members<'_, Value>) -> Result<Status> {
    let find = |conditions: &[Condition]| {
        let id = document::text(document::field(status, "condition")?)?;
        let index = conditions.iter().position(|condition| *condition.id == *id);
        index.ok_or_else(|| document::invalid("there is no such condition"))
    };
    match document::text(document::field(status, "kind")?)? {
        "ongoing" => Ok(Status::Ongoing),
        "lost" => Ok(Status::Lost(find(&program.losses)?)),
        "won" => Ok(Status::Won(find(&program.wins)?)),
        _ => Err(document::invalid("a status is expected")),
    }
}

fn parse_rolls(rolls: &Value) -> Result<BTreeMap<Arc<str>, u64>> {
    document::object(rolls)?
        .iter()
        .map(|(stream, rolled)| Ok((stream.into(), parse_roll_count(rolled)?)))
        .collect()
}

fn parse_roll_count(rolled: &Value) -> Result<u64> {
    let rolled = document::count(rolled)?;
    if (1..=MAX_ROLLS).contains(&rolled) { Ok(rolled) } else { Err(document::invalid("rolls are expected")) }
}

impl Lasting {
    fn value(self, program: &Program) -> Option<Value> {
        let event = program.events.get(self.event)?;
        Some(object([("id", Value::from(&event.id)), ("until", count(self.until))]))
    }
}
