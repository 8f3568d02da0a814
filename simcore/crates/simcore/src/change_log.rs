//! Change log of one call: changes, draws, failures, and the undo log for a rollback.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::canonical_json::Members;
use crate::effects::Undo;
use crate::error::{Code, Error, Result};
use crate::state::{LogLine, State};
use crate::value::{Value, count, object};

/// Maximum steps of a call.
pub(crate) const TURN_LIMIT: u64 = 100_000;

/// Changes, draws, failures and remaining steps of one call.
#[derive(Debug)]
pub(crate) struct ChangeLog {
    /// True if the changes are reported. A dry-run counts errors only.
    pub(crate) reports: bool,
    pub(crate) changes: Vec<Change>,
    pub(crate) log: Vec<Arc<LogLine>>,
    pub(crate) draws: Vec<Draw>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) undo: Vec<Undo>,
    /// Remaining steps of the call.
    pub(crate) steps: u64,
}

/// One write to a state.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) path: Arc<str>,
    pub(crate) operation: &'static str,
    pub(crate) before: Option<Value>,
    pub(crate) after: Option<Value>,
    pub(crate) cause: Arc<str>,
}

/// One use of randomness.
#[derive(Debug)]
pub(crate) struct Draw {
    pub(crate) stream: Cow<'static, str>,
    pub(crate) turn: u64,
    pub(crate) index: u64,
    pub(crate) value: u64,
}

/// A rule that failed, or an action that was rejected.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) rule: String,
    pub(crate) message: String,
}

/// A position to roll back to.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    changes: usize,
    log: usize,
    undo: usize,
    nodes: usize,
    text: usize,
}

impl ChangeLog {
    pub(crate) fn new(reports: bool) -> Self {
        Self {
            reports,
            changes: Vec::new(),
            log: Vec::new(),
            draws: Vec::new(),
            failures: Vec::new(),
            undo: Vec::new(),
            steps: TURN_LIMIT,
        }
    }

    /// Reset for another call.
    pub(crate) fn clear(&mut self) {
        self.changes.clear();
        self.log.clear();
        self.draws.clear();
        self.failures.clear();
        self.undo.clear();
        self.steps = TURN_LIMIT;
    }

    /// Charge steps. They are not refunded if the rule fails.
    ///
    /// # Errors
    ///
    /// `TURN_LIMIT` if the call has no steps left.
    pub(crate) fn charge(&mut self, steps: u64) -> Result<()> {
        let left = self.steps.checked_sub(steps);
        self.steps = left.unwrap_or(0);
        if left.is_some() {
            Ok(())
        } else {
            Err(Error::new(Code::TurnLimit, format!("the call takes more than {TURN_LIMIT} steps")))
        }
    }

    /// Record a failed rule, which had no effect.
    ///
    /// # Errors
    ///
    /// If the failure ends the call: `STATE_LIMIT`, `TURN_LIMIT`.
    pub(crate) fn fail(&mut self, error: Error, place: fmt::Arguments<'_>) -> Result<Failure> {
        if matches!(error.code(), Code::StateLimit | Code::TurnLimit) {
            return Err(error.at(place.to_string()));
        }
        let failure = Failure::from_error(&error, place);
        self.failures.push(failure.clone());
        Ok(failure)
    }

    pub(crate) fn mark(&self, state: &State) -> Mark {
        Mark {
            changes: self.changes.len(),
            log: self.log.len(),
            undo: self.undo.len(),
            nodes: state.nodes,
            text: state.text,
        }
    }

    /// Undo the changes since a mark.
    pub(crate) fn roll_back(&mut self, mark: Mark, state: &mut State) {
        self.undo.drain(mark.undo..).rev().for_each(|undo| undo.undo(state));
        self.changes.truncate(mark.changes);
        self.log.truncate(mark.log);
        (state.nodes, state.text) = (mark.nodes, mark.text);
    }

    /// Write the changes as a member of a result.
    pub(crate) fn write_changes(&self, result: &mut Members<'_>) -> Result<()> {
        result.list("changes", &self.changes, Change::write)
    }

    pub(crate) fn log_value(&self) -> Value {
        self.log.iter().map(|line| line.value()).collect()
    }

    pub(crate) fn draws_value(&self) -> Value {
        self.draws.iter().map(Draw::value).collect()
    }

    pub(crate) fn failures_value(&self) -> Value {
        self.failures.iter().map(Failure::value).collect()
    }
}

impl Change {
    fn write(&self, mut members: Members<'_>) -> Result<()> {
        if let Some(after) = &self.after {
            members.value("after", after)?;
        }
        if let Some(before) = &self.before {
            members.value("before", before)?;
        }
        members.text("cause", &self.cause);
        members.text("op", self.operation);
        members.text("path", &self.path);
        members.end();
        Ok(())
    }
}

impl Draw {
    pub(crate) fn value(&self) -> Value {
        object([
            ("stream", Value::from(&*self.stream)),
            ("turn", count(self.turn)),
            ("index", count(self.index)),
            ("value", Value::from(format!("{:016x}", self.value))),
        ])
    }
}

impl Failure {
    /// Create the failure of a rule from an error.
    pub(crate) fn from_error(error: &Error, place: fmt::Arguments<'_>) -> Self {
        Self {
            code: error.code(),
            rule: format!("{place}{}", error.path()),
            message: error.message().to_owned(),
        }
    }

    pub(crate) fn value(&self) -> Value {
        object([
            ("code", Value::from(self.code.as_str())),
            ("rule", Value::from(self.rule.as_str())),
            ("message", Value::from(self.message.as_str())),
        ])
    }
}
