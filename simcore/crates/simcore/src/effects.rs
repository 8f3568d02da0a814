//! Effects: the only writes there are.

mod transaction;

use std::sync::Arc;

use crate::durations;
use crate::error::Result;
use crate::paths::{Segment, format_path, parse_path};
use crate::read;
use crate::value::{Object, Value};

pub(crate) use transaction::{Transaction, Undo};

/// An effect, compiled.
#[derive(Clone, Debug)]
pub(crate) struct Effect {
    /// The effect as it stands in the document, for the snapshot of a state in which it is scheduled.
    source: Value,
    deed: Deed,
}

#[derive(Clone, Debug)]
enum Deed {
    Write { operation: Operation, path: Arc<Path>, value: Value },
    AddLog(Arc<str>),
    Schedule { id: Arc<str>, due: Due, effects: Vec<Effect> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Set,
    Inc,
    Dec,
    Mul,
    Patch,
    Push,
    Pop,
}

/// When a schedule is due, in turns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Due {
    At(u64),
    After(u64),
}

/// A path that begins with `state`.
#[derive(Debug)]
pub(crate) struct Path {
    segments: Vec<Segment>,
    text: Arc<str>,
}

impl Effect {
    /// Compile a list of effects.
    pub(crate) fn list(effects: &Value, turn_minutes: u64) -> Result<Vec<Self>> {
        read::list(effects)?.iter().map(|effect| Self::new(effect, turn_minutes)).collect()
    }

    /// What decay does to a path: it subtracts.
    pub(crate) fn decay(path: &str, amount: &Value) -> Result<Self> {
        let deed = Deed::Write {
            operation: Operation::Dec,
            path: Arc::new(Path::new(path)?),
            value: amount.clone(),
        };
        Ok(Self { source: Value::Null, deed })
    }

    /// The effects as they stand in a document.
    pub(crate) fn sources(effects: &[Self]) -> Value {
        effects.iter().map(|effect| effect.source.clone()).collect()
    }

    fn new(effect: &Value, turn_minutes: u64) -> Result<Self> {
        let members = read::object(effect)?;
        let deed = match &*read::text(read::field(members, "op")?)? {
            "addlog" => Deed::AddLog(read::text(read::field(members, "message")?)?),
            "schedule" => Deed::Schedule {
                id: read::text(read::field(members, "id")?)?,
                due: Due::new(members, turn_minutes)?,
                effects: Self::list(read::field(members, "effects")?, turn_minutes)?,
            },
            operation => write(members, operation)?,
        };
        Ok(Self { source: effect.clone(), deed })
    }
}

fn write(effect: &Object, operation: &str) -> Result<Deed> {
    let operation =
        Operation::named(operation).ok_or_else(|| read::invalid("an effect has an unknown op"))?;
    let path = Path::new(&read::text(read::field(effect, "path")?)?)?;
    if operation == Operation::Set && path.steps().is_empty() {
        return Err(read::invalid("the whole state cannot be set"));
    }
    let value = effect.get("value").cloned().unwrap_or(Value::Null);
    Ok(Deed::Write { operation, path: Arc::new(path), value })
}

impl Operation {
    fn named(name: &str) -> Option<Self> {
        let all = [Self::Set, Self::Inc, Self::Dec, Self::Mul, Self::Patch, Self::Push, Self::Pop];
        all.into_iter().find(|operation| operation.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Inc => "inc",
            Self::Dec => "dec",
            Self::Mul => "mul",
            Self::Patch => "patch",
            Self::Push => "push",
            Self::Pop => "pop",
        }
    }
}

impl Due {
    pub(crate) fn new(schedule: &Object, turn_minutes: u64) -> Result<Self> {
        let turns = |value: &Value| match value {
            Value::Text(duration) => durations::turns(duration, turn_minutes),
            value => read::count(value),
        };
        match schedule.get("at") {
            Some(at) => Ok(Self::At(turns(at)?)),
            None => Ok(Self::After(turns(read::field(schedule, "after")?)?)),
        }
    }

    /// The turn in which something is due that is scheduled now.
    pub(crate) fn turn(self, now: u64) -> u64 {
        match self {
            Self::At(turn) => turn.max(now + 1),
            Self::After(turns) => now + turns,
        }
    }
}

impl Path {
    fn new(text: &str) -> Result<Self> {
        let segments = parse_path(text)?;
        let text = format_path(&segments).into();
        Ok(Self { segments, text })
    }

    /// The segments below `state`.
    fn steps(&self) -> &[Segment] {
        self.segments.get(1..).unwrap_or_default()
    }

    /// The path of something directly below.
    fn below(&self, segment: Segment) -> String {
        let mut segments = self.segments.clone();
        segments.push(segment);
        format_path(&segments)
    }
}
