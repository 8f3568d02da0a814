//! Transactions: a list of effects is applied completely or not at all.

use std::sync::Arc;

use crate::change_log::{Change, ChangeLog};
use crate::error::{Code, Error, Result};
use crate::jsonlogic::finite;
use crate::paths::{Segment, child_mut, lookup_mut};
use crate::state::{LogLine, MAX_LOG_LINES, MAX_PENDING, Scheduled, Size, State};
use crate::value::{Array, Object, Value};

use super::{Due, Effect, Mutation, Operation, Path};

/// A list of effects in the process of being applied to a state.
pub(crate) struct Transaction<'a> {
    state: &'a mut State,
    record: &'a mut ChangeLog,
    derives: &'a Object,
    cause: &'a Arc<str>,
    /// The longest string that was written, and the deepest level.
    written: Size,
}

/// Undo information of one write.
#[derive(Debug)]
pub(crate) enum Undo {
    /// The previous value at a path, or at a key below it.
    Put {
        path: Arc<Path>,
        key: Option<Arc<str>>,
        before: Option<Value>,
    },
    Push(Arc<Path>),
    Pop(Arc<Path>, Value),
    /// A log line was added, and perhaps the oldest one was dropped.
    Log(Option<Arc<LogLine>>),
    Scheduled(Arc<Vec<Arc<Scheduled>>>),
}

impl<'a> Transaction<'a> {
    /// Start a transaction on a state.
    ///
    /// Names in effects resolve to the derived values. The cause labels the recorded changes, such as
    /// `action:a`.
    pub(crate) fn new(
        state: &'a mut State,
        record: &'a mut ChangeLog,
        derives: &'a Object,
        cause: &'a Arc<str>,
    ) -> Self {
        Self { state, record, derives, cause, written: Size::default() }
    }

    /// Apply all effects or none.
    ///
    /// # Errors
    ///
    /// The first failure. Its path is the position in the list.
    pub(crate) fn apply(mut self, effects: &[Effect]) -> Result<()> {
        let mark = self.record.mark(self.state);
        let result = self.apply_all(effects);
        if result.is_err() {
            self.record.roll_back(mark, self.state);
        }
        result
    }

    fn apply_all(&mut self, effects: &[Effect]) -> Result<()> {
        for (index, effect) in effects.iter().enumerate() {
            self.apply_one(effect).map_err(|error| error.at(format!("/{index}")))?;
        }
        Size { nodes: self.state.nodes, text: self.state.text, ..self.written }.check()
    }

    fn apply_one(&mut self, effect: &Effect) -> Result<()> {
        match &effect.mutation {
            Mutation::AddLog(message) => {
                self.add_log(message);
                Ok(())
            }
            Mutation::Schedule { id, due, effects } => self.schedule(id, *due, effects),
            Mutation::Write { operation, path, value } => {
                self.write(*operation, path, resolve(self.derives, value))
            }
        }
    }

    // --- operations on the tree ---

    fn write(&mut self, operation: Operation, path: &Arc<Path>, value: &Value) -> Result<()> {
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

    fn set(&mut self, path: &Arc<Path>, value: &Value) -> Result<()> {
        let (key, steps) = path.steps().split_last().ok_or_else(|| missing_error(path))?;
        let holder = lookup_mut(&mut self.state.tree, steps).ok_or_else(|| missing_error(path))?;
        let is_member = matches!((&*holder, key), (Value::Object(_), Segment::Key(_)));
        let stored = if is_member { path.clamp(value)? } else { None };
        let value = stored.as_ref().unwrap_or(value);
        let before = if let Some(slot) = child_mut(holder, key) {
            Some(std::mem::replace(slot, value.clone()))
        } else if let (Value::Object(members), Segment::Key(name)) = (holder, key) {
            Arc::make_mut(members).insert(Arc::clone(name), value.clone());
            None
        } else {
            return Err(missing_error(path));
        };
        let noted = self.record_change(path, None, Operation::Set, before.as_ref(), Some(value));
        self.record.undo.push(Undo::Put { path: Arc::clone(path), key: None, before });
        noted
    }

    fn calculate(
        &mut self,
        operation: Operation,
        path: &Arc<Path>,
        amount: &Value,
        result: fn(f64, f64) -> f64,
    ) -> Result<()> {
        let slot = lookup_mut(&mut self.state.tree, path.steps()).ok_or_else(|| missing_error(path))?;
        let Value::Number(number) = slot else {
            return Err(type_mismatch(path, slot, "a number"));
        };
        let before = *number;
        let Value::Number(amount) = amount else {
            let message = format!("the amount is {}, not a number", kind_of(amount));
            return Err(Error::new(Code::TypeMismatch, message));
        };
        let after = Value::Number(finite(result(before, *amount))?);
        let after = path.clamp(&after)?.unwrap_or(after);
        *slot = after.clone();
        let before = Value::Number(before);
        let noted = self.record_change(path, None, operation, Some(&before), Some(&after));
        self.record.undo.push(Undo::Put { path: Arc::clone(path), key: None, before: Some(before) });
        noted
    }

    fn patch(&mut self, path: &Arc<Path>, value: &Value) -> Result<()> {
        self.object(path)?;
        let Value::Object(members) = value else {
            let message = format!("the value to merge is {}, not an object", kind_of(value));
            return Err(Error::new(Code::TypeMismatch, message));
        };
        let stored = clamp_members(path, members)?;
        for (key, value) in stored.as_ref().unwrap_or(members).iter() {
            let before = self.object(path)?.insert(Arc::clone(key), value.clone());
            let segment = Segment::Key(Arc::clone(key));
            let noted =
                self.record_change(path, Some(segment), Operation::Patch, before.as_ref(), Some(value));
            self.record.undo.push(Undo::Put { path: Arc::clone(path), key: Some(Arc::clone(key)), before });
            noted?;
        }
        Ok(())
    }

    fn push(&mut self, path: &Arc<Path>, value: &Value) -> Result<()> {
        let items = self.array(path)?;
        items.push(value.clone());
        let index = items.len() as u64 - 1;
        self.record.undo.push(Undo::Push(Arc::clone(path)));
        self.record_change(path, Some(Segment::Index(index)), Operation::Push, None, Some(value))
    }

    fn pop(&mut self, path: &Arc<Path>) -> Result<()> {
        let items = self.array(path)?;
        let value = items.pop().ok_or_else(|| {
            Error::new(Code::EmptyArray, format!("'{}' is empty: there is nothing to remove", path.text))
        })?;
        let index = items.len() as u64;
        let noted = self.record_change(path, Some(Segment::Index(index)), Operation::Pop, Some(&value), None);
        self.record.undo.push(Undo::Pop(Arc::clone(path), value));
        noted
    }

    // --- shared helpers ---

    fn object(&mut self, path: &Path) -> Result<&mut Object> {
        match lookup_mut(&mut self.state.tree, path.steps()) {
            Some(Value::Object(members)) => Ok(Arc::make_mut(members)),
            Some(other) => Err(type_mismatch(path, other, "an object")),
            None => Err(missing_error(path)),
        }
    }

    fn array(&mut self, path: &Path) -> Result<&mut Array> {
        match lookup_mut(&mut self.state.tree, path.steps()) {
            Some(Value::Array(items)) => Ok(Arc::make_mut(items)),
            Some(other) => Err(type_mismatch(path, other, "an array")),
            None => Err(missing_error(path)),
        }
    }

    /// Record a change, charge its steps, and update the size of the state.
    fn record_change(
        &mut self,
        path: &Path,
        below: Option<Segment>,
        operation: Operation,
        before: Option<&Value>,
        after: Option<&Value>,
    ) -> Result<()> {
        let most_steps = self.record.steps;
        let size = |value: Option<&Value>| {
            value.map(|value| Size::measure_within(value, most_steps)).unwrap_or_default()
        };
        let (old, new) = (size(before), size(after));
        let both = Size { nodes: old.nodes + new.nodes, text: old.text + new.text, ..new };
        self.record.charge(1 + both.steps())?;
        self.state.nodes = self.state.nodes + new.nodes - old.nodes;
        self.state.text = self.state.text + new.text - old.text;
        let above = path.steps().len() + usize::from(below.is_some());
        if before.is_none() {
            self.state.text += below.as_ref().or(path.steps().last()).map_or(0, key_length);
        }
        self.written.longest = self.written.longest.max(new.longest);
        self.written.deepest = self.written.deepest.max(above + new.deepest);
        if self.record.reports {
            self.record.changes.push(Change {
                path: below.map_or_else(|| Arc::clone(&path.text), |segment| path.below(segment).into()),
                operation: operation.name(),
                before: before.cloned(),
                after: after.cloned(),
                cause: Arc::clone(self.cause),
            });
        }
        Ok(())
    }

    // --- operations outside the tree ---

    fn add_log(&mut self, message: &Arc<str>) {
        let line = Arc::new(LogLine {
            turn: self.state.turn + 1,
            message: Arc::clone(message),
            cause: Arc::clone(self.cause),
        });
        let log = Arc::make_mut(&mut self.state.log);
        log.push_back(Arc::clone(&line));
        let oldest = if log.len() > MAX_LOG_LINES { log.pop_front() } else { None };
        self.record.log.push(line);
        self.record.undo.push(Undo::Log(oldest));
    }

    fn schedule(&mut self, id: &Arc<str>, due: Due, effects: &[Effect]) -> Result<()> {
        self.record.undo.push(Undo::Scheduled(Arc::clone(&self.state.scheduled)));
        self.state.unschedule(|other| other.id == *id);
        if self.state.scheduled.len() >= MAX_PENDING {
            let message = format!("more than {MAX_PENDING} scheduled entries are pending");
            return Err(Error::new(Code::StateLimit, message));
        }
        let due = due.turn(self.state.turn + 1);
        let entry = Scheduled::new(Arc::clone(id), due, self.freeze(effects), self.record.steps);
        let size = entry.size();
        self.record.charge(1 + size.steps())?;
        self.written.longest = self.written.longest.max(size.longest);
        self.state.schedule(entry);
        Ok(())
    }

    /// Return scheduled effects with the current derived values inlined.
    fn freeze(&self, effects: &[Effect]) -> Vec<Effect> {
        effects.iter().map(|effect| self.freeze_one(effect)).collect()
    }

    fn freeze_one(&self, effect: &Effect) -> Effect {
        let mut later = effect.clone();
        let (key, resolved) = match &mut later.mutation {
            Mutation::AddLog(_) | Mutation::Write { operation: Operation::Pop, .. } => return later,
            Mutation::Write { value, .. } => {
                *value = resolve(self.derives, value).clone();
                ("value", value.clone())
            }
            Mutation::Schedule { effects, .. } => {
                *effects = self.freeze(effects);
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
    /// Undo the write. In reverse order, each undo finds the state that its write produced.
    pub(crate) fn undo(self, state: &mut State) {
        match self {
            Self::Put { path, key, before } => {
                let below = key.map(Segment::Key);
                let steps: Vec<Segment> = path.steps().iter().cloned().chain(below).collect();
                restore(&mut state.tree, &steps, before);
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
                let log = Arc::make_mut(&mut state.log);
                log.pop_back();
                if let Some(oldest) = oldest {
                    log.push_front(oldest);
                }
            }
            Self::Scheduled(before) => state.scheduled = before,
        }
    }
}

/// Return a literal, or the derived value that a string names.
fn resolve<'a>(derives: &'a Object, value: &'a Value) -> &'a Value {
    value.as_text().and_then(|name| derives.get(name)).unwrap_or(value)
}

/// Return the bytes of text that a new member adds beside its value.
fn key_length(segment: &Segment) -> usize {
    match segment {
        Segment::Key(name) | Segment::Digits(name, _) => name.len(),
        Segment::Index(_) => 0,
    }
}

fn restore(tree: &mut Value, steps: &[Segment], before: Option<Value>) {
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

/// Return the members that a patch stores instead of others, if it may depend on bounds.
fn clamp_members(path: &Path, members: &Object) -> Result<Option<Object>> {
    let Some(bounds) = &path.bounds else { return Ok(None) };
    let mut stored = members.clone();
    for (key, value) in members.iter() {
        let member = path.below(Segment::Key(Arc::clone(key)));
        if let Some(clamped) = bounds.clamp(&member, value)? {
            stored.insert(Arc::clone(key), clamped);
        }
    }
    Ok(Some(stored))
}

fn missing_error(path: &Path) -> Error {
    Error::new(Code::MissingPath, format!("'{}' does not exist", path.text))
}

fn type_mismatch(path: &Path, value: &Value, wanted: &str) -> Error {
    let message = format!("'{}' holds {}, not {wanted}", path.text, kind_of(value));
    Error::new(Code::TypeMismatch, message)
}

/// Return the type name of a value for a message.
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
