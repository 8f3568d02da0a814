//! Effects: the only way to change a state.

mod transaction;

use std::collections::HashMap;
use std::sync::Arc;

use crate::bounds::Bounds;
use crate::document;
use crate::durations;
use crate::error::Result;
use crate::json_node::{Json, Members, View};
use crate::paths::{Segment, format_path, parse_path};
use crate::value::Value;

pub(crate) use transaction::{Transaction, Undo};

/// A compiled effect.
#[derive(Clone, Debug)]
pub(crate) struct Effect {
    /// The source of a scheduled effect, for snapshots. Null for other effects.
    source: Value,
    mutation: Mutation,
}

#[derive(Clone, Debug)]
enum Mutation {
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

/// The due time of a schedule, in turns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Due {
    At(u64),
    After(u64),
}

/// Data that effects share during compilation.
pub(crate) struct Compiling<'v> {
    turn_minutes: u64,
    bounds: &'v Arc<Bounds>,
    /// Cache of parsed paths. Most paths are written more than once.
    paths: HashMap<&'v str, Arc<Path>>,
}

/// A path that begins with `state`.
#[derive(Debug)]
pub(crate) struct Path {
    segments: Vec<Segment>,
    text: Arc<str>,
    /// Bounds, if a write to the path may depend on them.
    bounds: Option<Arc<Bounds>>,
}

impl<'v> Compiling<'v> {
    pub(crate) fn new(turn_minutes: u64, bounds: &'v Arc<Bounds>) -> Self {
        Self { turn_minutes, bounds, paths: HashMap::new() }
    }

    fn path(&mut self, text: &'v str) -> Result<Arc<Path>> {
        if let Some(path) = self.paths.get(text) {
            return Ok(Arc::clone(path));
        }
        let path = Arc::new(Path::new(text, self.bounds)?);
        self.paths.insert(text, Arc::clone(&path));
        Ok(path)
    }
}

impl Effect {
    /// Compile a list of effects that are applied immediately.
    pub(crate) fn list<'v>(effects: &'v impl Json, compiling: &mut Compiling<'v>) -> Result<Vec<Self>> {
        document::map_items(document::list(effects)?, |_, effect| {
            Ok(Self { source: Value::Null, mutation: Mutation::new(effect, compiling)? })
        })
    }

    /// Compile a list of effects of a schedule.
    pub(crate) fn compile_scheduled<'v>(
        effects: &'v impl Json,
        compiling: &mut Compiling<'v>,
    ) -> Result<Vec<Self>> {
        document::map_items(document::list(effects)?, |_, effect| {
            Ok(Self { source: effect.to_value(), mutation: Mutation::new(effect, compiling)? })
        })
    }

    /// Compile the decay of a path: a subtraction.
    pub(crate) fn decay(path: &str, amount: &impl Json, bounds: &Arc<Bounds>) -> Result<Self> {
        Self::write(Operation::Dec, path, amount, bounds)
    }

    /// Compile an assignment of a literal.
    pub(crate) fn set(path: &str, value: &impl Json, bounds: &Arc<Bounds>) -> Result<Self> {
        Self::write(Operation::Set, path, value, bounds)
    }

    fn write(operation: Operation, path: &str, value: &impl Json, bounds: &Arc<Bounds>) -> Result<Self> {
        let path = Arc::new(Path::new(path, bounds)?);
        let mutation = Mutation::Write { operation, path, value: value.to_value() };
        Ok(Self { source: Value::Null, mutation })
    }

    /// Return the source documents of effects.
    pub(crate) fn sources(effects: &[Self]) -> Value {
        effects.iter().map(|effect| effect.source.clone()).collect()
    }
}

impl Mutation {
    fn new<'v>(effect: &'v impl Json, compiling: &mut Compiling<'v>) -> Result<Self> {
        let members = document::object(effect)?;
        Ok(match document::text(document::field(members, "op")?)? {
            "addlog" => Self::AddLog(document::text(document::field(members, "message")?)?.into()),
            "schedule" => Self::Schedule {
                id: document::text(document::field(members, "id")?)?.into(),
                due: Due::new(members, compiling.turn_minutes)?,
                effects: Effect::compile_scheduled(document::field(members, "effects")?, compiling)?,
            },
            operation => write(members, operation, compiling)?,
        })
    }
}

fn write<'v, T: Json>(
    effect: Members<'v, T>,
    operation: &str,
    compiling: &mut Compiling<'v>,
) -> Result<Mutation> {
    let operation =
        Operation::from_name(operation).ok_or_else(|| document::invalid("an effect has an unknown op"))?;
    let path = compiling.path(document::text(document::field(effect, "path")?)?)?;
    if operation == Operation::Set && path.steps().is_empty() {
        return Err(document::invalid("the whole state cannot be set"));
    }
    let value = effect.get("value").map_or(Value::Null, Json::to_value);
    Ok(Mutation::Write { operation, path, value })
}

impl Operation {
    fn from_name(name: &str) -> Option<Self> {
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
    pub(crate) fn new<T: Json>(schedule: Members<'_, T>, turn_minutes: u64) -> Result<Self> {
        let turns = |value: &T| match value.view() {
            View::Text(duration) => durations::turns(duration, turn_minutes),
            _ => document::count(value),
        };
        match schedule.get("at") {
            Some(at) => Ok(Self::At(turns(at)?)),
            None => Ok(Self::After(turns(document::field(schedule, "after")?)?)),
        }
    }

    /// Return the due turn of an entry that is scheduled in turn `now`.
    pub(crate) fn turn(self, now: u64) -> u64 {
        match self {
            Self::At(turn) => turn.max(now + 1),
            Self::After(turns) => now + turns,
        }
    }
}

impl Path {
    fn new(text: &str, bounds: &Arc<Bounds>) -> Result<Self> {
        let segments = parse_path(text)?;
        let text = format_path(&segments);
        let bounds = bounds.concerns(&text).then(|| Arc::clone(bounds));
        Ok(Self { segments, text: text.into(), bounds })
    }

    /// Return the number that a write stores instead of a value, if the path is bounded.
    fn clamp(&self, value: &Value) -> Result<Option<Value>> {
        self.bounds.as_ref().map_or(Ok(None), |bounds| bounds.clamp(&self.text, value))
    }

    /// Return the segments below `state`.
    fn steps(&self) -> &[Segment] {
        self.segments.get(1..).unwrap_or_default()
    }

    /// Return the path of a direct child.
    fn below(&self, segment: Segment) -> String {
        let mut segments = self.segments.clone();
        segments.push(segment);
        format_path(&segments)
    }
}
