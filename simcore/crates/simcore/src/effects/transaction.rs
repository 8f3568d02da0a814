//! A list of effects is a transaction: all of it, or none of it.

use std::sync::Arc;

use crate::border::{MAX_DEPTH, MAX_STRING_BYTES};
use crate::error::{Code, Error, Result};
use crate::logic::finite;
use crate::paths::{Segment, child_mut, lookup_mut};
use crate::record::{Change, Record};
use crate::state::{LogLine, Scheduled, Size, State};
use crate::value::{Array, Object, Value};

use super::{Deed, Due, Effect, Operation, Path};

const MAX_LOG_LINES: usize = 256;
const MAX_PENDING: usize = 256;
const MAX_STATE_NODES: usize = 10_000;
const MAX_STATE_TEXT: usize = 1 << 20;

/// A list of effects being applied to a state.
pub(crate) struct Transaction<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) record: &'a mut Record,
    /// The values that names stand for.
    pub(crate) derives: &'a Object,
    /// What the changes are recorded under, such as `action:a`.
    pub(crate) cause: &'a Arc<str>,
}

/// How to take one write back.
#[derive(Debug)]
pub(crate) enum Undo {
    /// The value at a path, or at a key below it.
    Put {
        path: Arc<Path>,
        key: Option<Arc<str>>,
        before: Option<Value>,
    },
    Push(Arc<Path>),
    Pop(Arc<Path>, Value),
    /// A line was added to the log, and perhaps the oldest dropped.
    Log(Option<Arc<LogLine>>),
    Scheduled(Vec<Arc<Scheduled>>),
}

impl Transaction<'_> {
    /// Apply the effects, all or none.
    ///
    /// # Errors
    ///
    /// The first effect that failed, its path being the place in the list.
    pub(crate) fn apply(mut self, effects: &[Effect]) -> Result<()> {
        let mark = self.record.mark();
        let result = self.apply_all(effects);
        if result.is_err() {
            self.record.roll_back(mark, self.state);
        }
        result
    }

    fn apply_all(&mut self, effects: &[Effect]) -> Result<()> {
        let mut grew = false;
        for (index, effect) in effects.iter().enumerate() {
            grew |= self.apply_one(effect).map_err(|error| error.at(format!("/{index}")))?;
        }
        if grew { check_limits(self.state) } else { Ok(()) }
    }

    /// Apply an effect; whether the state may have grown by it.
    fn apply_one(&mut self, effect: &Effect) -> Result<bool> {
        match &effect.deed {
            Deed::AddLog(message) => {
                self.add_log(message);
                Ok(false)
            }
            Deed::Schedule { id, due, effects } => self.schedule(id, *due, effects),
            Deed::Write { operation, path, value } => {
                self.write(*operation, path, resolved(self.derives, value))
            }
        }
    }

    // --- operations on the tree ---

    fn write(&mut self, operation: Operation, path: &Arc<Path>, value: &Value) -> Result<bool> {
        match operation {
            Operation::Set => self.set(path, value),
            Operation::Inc => self.calculate(operation, path, value, |number, amount| number + amount),
            Operation::Dec => self.calculate(operation, path, value, |number, amount| number - amount),
            Operation::Mul => self.calculate(operation, path, value, |number, amount| number * amount),
            Operation::Patch => self.patch(path, value),
            Operation::Push => self.push(path, value),
            Operation::Pop => self.pop(path),
        }
    }

    fn set(&mut self, path: &Arc<Path>, value: &Value) -> Result<bool> {
        let (key, steps) = path.steps().split_last().ok_or_else(|| missing(path))?;
        let holder = lookup_mut(&mut self.state.tree, steps).ok_or_else(|| missing(path))?;
        let before = if let Some(slot) = child_mut(holder, key) {
            Some(std::mem::replace(slot, value.clone()))
        } else if let (Value::Object(members), Segment::Key(name)) = (holder, key) {
            Arc::make_mut(members).insert(Arc::clone(name), value.clone());
            None
        } else {
            return Err(missing(path));
        };
        let grew = before.is_none() || may_grow(value);
        self.note(path, None, Operation::Set, before.as_ref(), Some(value));
        self.record.undo.push(Undo::Put { path: Arc::clone(path), key: None, before });
        Ok(grew)
    }

    fn calculate(
        &mut self,
        operation: Operation,
        path: &Arc<Path>,
        amount: &Value,
        result: fn(f64, f64) -> f64,
    ) -> Result<bool> {
        let slot = lookup_mut(&mut self.state.tree, path.steps()).ok_or_else(|| missing(path))?;
        let Value::Number(number) = slot else {
            return Err(holds_another(path, slot, "a number"));
        };
        let before = *number;
        let Value::Number(amount) = amount else {
            let message = format!("the amount is {}, not a number", kind_of(amount));
            return Err(Error::new(Code::TypeMismatch, message));
        };
        let after = finite(result(before, *amount))?;
        *number = after;
        let (before, after) = (Value::Number(before), Value::Number(after));
        self.note(path, None, operation, Some(&before), Some(&after));
        self.record.undo.push(Undo::Put { path: Arc::clone(path), key: None, before: Some(before) });
        Ok(false)
    }

    fn patch(&mut self, path: &Arc<Path>, value: &Value) -> Result<bool> {
        self.object(path)?;
        let Value::Object(members) = value else {
            let message = format!("the value to merge is {}, not an object", kind_of(value));
            return Err(Error::new(Code::TypeMismatch, message));
        };
        let mut grew = false;
        for (key, value) in members.iter() {
            let before = self.object(path)?.insert(Arc::clone(key), value.clone());
            grew |= before.is_none() || may_grow(value);
            self.note(
                path,
                Some(Segment::Key(Arc::clone(key))),
                Operation::Patch,
                before.as_ref(),
                Some(value),
            );
            self.record.undo.push(Undo::Put { path: Arc::clone(path), key: Some(Arc::clone(key)), before });
        }
        Ok(grew)
    }

    fn push(&mut self, path: &Arc<Path>, value: &Value) -> Result<bool> {
        let items = self.array(path)?;
        items.push(value.clone());
        let index = items.len() as u64 - 1;
        self.note(path, Some(Segment::Index(index)), Operation::Push, None, Some(value));
        self.record.undo.push(Undo::Push(Arc::clone(path)));
        Ok(true)
    }

    fn pop(&mut self, path: &Arc<Path>) -> Result<bool> {
        let items = self.array(path)?;
        let value = items.pop().ok_or_else(|| {
            Error::new(Code::EmptyArray, format!("'{}' is empty: there is nothing to remove", path.text))
        })?;
        let index = items.len() as u64;
        self.note(path, Some(Segment::Index(index)), Operation::Pop, Some(&value), None);
        self.record.undo.push(Undo::Pop(Arc::clone(path), value));
        Ok(false)
    }

    // --- what they share ---

    fn object(&mut self, path: &Path) -> Result<&mut Object> {
        match lookup_mut(&mut self.state.tree, path.steps()) {
            Some(Value::Object(members)) => Ok(Arc::make_mut(members)),
            Some(other) => Err(holds_another(path, other, "an object")),
            None => Err(missing(path)),
        }
    }

    fn array(&mut self, path: &Path) -> Result<&mut Array> {
        match lookup_mut(&mut self.state.tree, path.steps()) {
            Some(Value::Array(items)) => Ok(Arc::make_mut(items)),
            Some(other) => Err(holds_another(path, other, "an array")),
            None => Err(missing(path)),
        }
    }

    fn note(
        &mut self,
        path: &Path,
        below: Option<Segment>,
        operation: Operation,
        before: Option<&Value>,
        after: Option<&Value>,
    ) {
        if self.record.reports {
            self.record.changes.push(Change {
                path: below.map_or_else(|| Arc::clone(&path.text), |segment| path.below(segment).into()),
                operation: operation.name(),
                before: before.cloned(),
                after: after.cloned(),
                cause: Arc::clone(self.cause),
            });
        }
    }

    // --- operations beside the tree ---

    fn add_log(&mut self, message: &Arc<str>) {
        let line = Arc::new(LogLine {
            turn: self.state.turn + 1,
            message: Arc::clone(message),
            cause: Arc::clone(self.cause),
        });
        self.state.log.push_back(Arc::clone(&line));
        let oldest = if self.state.log.len() > MAX_LOG_LINES { self.state.log.pop_front() } else { None };
        self.record.log.push(line);
        self.record.undo.push(Undo::Log(oldest));
    }

    fn schedule(&mut self, id: &Arc<str>, due: Due, effects: &[Effect]) -> Result<bool> {
        let entry = Scheduled::new(Arc::clone(id), due.turn(self.state.turn + 1), self.frozen(effects));
        let others = self.state.scheduled.iter().filter(|other| other.id != *id);
        let mut pending: Vec<Arc<Scheduled>> = others.cloned().collect();
        if pending.len() >= MAX_PENDING {
            let message = format!("more than {MAX_PENDING} scheduled entries are pending");
            return Err(Error::new(Code::StateLimit, message));
        }
        pending.push(Arc::new(entry));
        let before = std::mem::replace(&mut self.state.scheduled, pending);
        self.record.undo.push(Undo::Scheduled(before));
        Ok(true)
    }

    /// Effects for later, with the derived values of now.
    fn frozen(&self, effects: &[Effect]) -> Vec<Effect> {
        effects.iter().map(|effect| self.frozen_one(effect)).collect()
    }

    fn frozen_one(&self, effect: &Effect) -> Effect {
        let mut later = effect.clone();
        let (key, resolved) = match &mut later.deed {
            Deed::AddLog(_) | Deed::Write { operation: Operation::Pop, .. } => return later,
            Deed::Write { value, .. } => {
                *value = resolved(self.derives, value).clone();
                ("value", value.clone())
            }
            Deed::Schedule { effects, .. } => {
                *effects = self.frozen(effects);
                ("effects", Effect::sources(effects))
            }
        };
        if let Value::Object(members) = &mut later.source {
            Arc::make_mut(members).insert(key.into(), resolved);
        }
        later
    }
}

impl Undo {
    /// Take the write back. Undone in reverse order, each finds what it left.
    pub(crate) fn undo(self, state: &mut State) {
        match self {
            Self::Put { path, key, before } => {
                let below = key.map(Segment::Key);
                let steps: Vec<Segment> = path.steps().iter().cloned().chain(below).collect();
                put_back(&mut state.tree, &steps, before);
            }
            Self::Push(path) => {
                if let Some(Value::Array(items)) = lookup_mut(&mut state.tree, path.steps()) {
                    Arc::make_mut(items).pop();
                }
            }
            Self::Pop(path, value) => {
                if let Some(Value::Array(items)) = lookup_mut(&mut state.tree, path.steps()) {
                    Arc::make_mut(items).push(value);
                }
            }
            Self::Log(oldest) => {
                state.log.pop_back();
                if let Some(oldest) = oldest {
                    state.log.push_front(oldest);
                }
            }
            Self::Scheduled(before) => state.scheduled = before,
        }
    }
}

/// A literal, or the derived value that a string names.
fn resolved<'a>(derives: &'a Object, value: &'a Value) -> &'a Value {
    value.as_text().and_then(|name| derives.get(name)).unwrap_or(value)
}

/// Whether a value can take more room than the number or word that it replaces.
fn may_grow(value: &Value) -> bool {
    !value.is_scalar() || value.as_text().is_some()
}

fn put_back(tree: &mut Value, steps: &[Segment], before: Option<Value>) {
    let Some((key, steps)) = steps.split_last() else { return };
    let Some(holder) = lookup_mut(tree, steps) else { return };
    match (before, holder, key) {
        (Some(before), holder, key) => {
            if let Some(slot) = child_mut(holder, key) {
                *slot = before;
            }
        }
        (None, Value::Object(members), Segment::Key(name)) => {
            Arc::make_mut(members).remove(name);
        }
        _ => {}
    }
}

/// A state may not outgrow its limits, whatever wrote to it.
fn check_limits(state: &State) -> Result<()> {
    let (tree, pending) = (Size::of(&state.tree), Scheduled::size(&state.scheduled));
    let problem = if tree.longest.max(pending.longest) > MAX_STRING_BYTES {
        format!("a string is longer than {MAX_STRING_BYTES} bytes")
    } else if tree.deepest > MAX_DEPTH {
        format!("the state is nested deeper than {MAX_DEPTH} levels")
    } else if tree.nodes + pending.nodes > MAX_STATE_NODES {
        format!("the state has more than {MAX_STATE_NODES} values")
    } else if tree.text + pending.text > MAX_STATE_TEXT {
        format!("the state holds more than {MAX_STATE_TEXT} bytes of text")
    } else {
        return Ok(());
    };
    Err(Error::new(Code::StateLimit, problem))
}

fn missing(path: &Path) -> Error {
    Error::new(Code::MissingPath, format!("'{}' does not exist", path.text))
}

fn holds_another(path: &Path, value: &Value, wanted: &str) -> Error {
    let message = format!("'{}' holds {}, not {wanted}", path.text, kind_of(value));
    Error::new(Code::TypeMismatch, message)
}

/// What a value is, for a message.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::Text(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
