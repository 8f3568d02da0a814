//! State of one run: the tree, and the engine's own data beside it.

mod snapshot;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::canonical_json;
use crate::effects::Effect;
use crate::error::Result;
use crate::program::{Condition, Program};
use crate::value::{Value, count, object};

pub(crate) use crate::limits::{MAX_LOG_LINES, MAX_PENDING, MAX_STATE_NODES, MAX_STATE_TEXT, Size};

/// Maximum rolls of one turn, of all kinds together.
pub(crate) const MAX_ROLLS: u64 = 256;

/// The state of one run. A clone shares all unchanged values.
#[derive(Clone, Debug)]
pub struct State {
    pub(crate) seed: u64,
    pub(crate) tree: Value,
    /// Number of values in the tree and in the pending entries.
    pub(crate) nodes: usize,
    /// Bytes of their text, with keys.
    pub(crate) text: usize,
    /// Number of complete turns.
    pub(crate) turn: u64,
    /// True if the scheduled effects of the current turn have been applied.
    pub(crate) opened: bool,
    pub(crate) scheduled: Arc<Vec<Arc<Scheduled>>>,
    pub(crate) lasting: Vec<Lasting>,
    pub(crate) log: Arc<VecDeque<Arc<LogLine>>>,
    pub(crate) status: Status,
    /// Number of rolls of each stream in the current turn.
    pub(crate) rolls: BTreeMap<Arc<str>, u64>,
    /// False in the state of the document, before the deal.
    pub(crate) is_dealt: bool,
}

/// A pending entry: effects for a later turn.
#[derive(Debug)]
pub(crate) struct Scheduled {
    pub(crate) id: Arc<str>,
    pub(crate) due: u64,
    pub(crate) effects: Vec<Effect>,
    /// The source document of the entry, for snapshots.
    source: Value,
    size: Size,
}

/// A lasting event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lasting {
    /// The index of the event.
    pub(crate) event: usize,
    /// The last turn in which it applies its effects.
    pub(crate) until: u64,
}

/// A line of the log.
#[derive(Debug)]
pub(crate) struct LogLine {
    pub(crate) turn: u64,
    pub(crate) message: Arc<str>,
    pub(crate) cause: Arc<str>,
}

/// The status of a run, with the index of the condition that ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ongoing,
    /// The loss condition of this index holds.
    Lost(usize),
    /// The win condition of this index holds.
    Won(usize),
}

impl State {
    /// Return the state of the document, before the deal.
    pub(crate) fn undealt(program: &Program, seed: u64) -> Self {
        Self {
            seed,
            tree: program.initial.clone(),
            nodes: program.initial_size.nodes,
            text: program.initial_size.text,
            turn: 0,
            opened: false,
            scheduled: Arc::default(),
            lasting: Vec::new(),
            log: Arc::default(),
            status: Status::Ongoing,
            rolls: BTreeMap::new(),
            is_dealt: false,
        }
    }

    /// Return the state tree as canonical JSON.
    ///
    /// # Errors
    ///
    /// `TOO_DEEP` if it cannot be written.
    pub fn tree_json(&self) -> Result<String> {
        canonical_json::text(&self.tree)
    }

    /// Return the SHA-256 of the canonical state tree in lower-case hexadecimal digits.
    ///
    /// # Errors
    ///
    /// `TOO_DEEP` if it cannot be written.
    pub fn hash(&self) -> Result<String> {
        Ok(canonical_json::sha256_hex(self.tree_json()?.as_bytes()))
    }

    /// Return the number of complete turns.
    #[must_use]
    pub fn turn(&self) -> u64 {
        self.turn
    }

    /// Return the status as JSON.
    ///
    /// # Errors
    ///
    /// None: a status can always be written.
    pub fn status_json(&self, program: &Program) -> Result<String> {
        canonical_json::text(&self.status.value(program))
    }

    /// Return True if opening the turn would apply scheduled effects.
    pub(crate) fn is_due(&self) -> bool {
        self.scheduled.iter().any(|entry| entry.due <= self.turn + 1)
    }

    /// Remove the due entries and return them by turn, then in the order of scheduling.
    pub(crate) fn take_due(&mut self) -> Vec<Arc<Scheduled>> {
        if !self.is_due() {
            return Vec::new();
        }
        let now = self.turn + 1;
        let mut due = self.unschedule(|entry| entry.due <= now);
        due.sort_by_key(|entry| entry.due);
        due
    }

    /// Remove the selected pending entries and return them in the order of scheduling.
    pub(crate) fn unschedule(&mut self, chosen: impl Fn(&Scheduled) -> bool) -> Vec<Arc<Scheduled>> {
        let entries = self.scheduled.iter().cloned();
        let (removed, remaining) = entries.partition::<Vec<_>, _>(|entry| chosen(entry));
        if !removed.is_empty() {
            self.scheduled = Arc::new(remaining);
        }
        for entry in &removed {
            self.nodes -= entry.size.nodes;
            self.text -= entry.size.text;
        }
        removed
    }

    /// Add a pending entry.
    pub(crate) fn schedule(&mut self, entry: Scheduled) {
        self.nodes += entry.size.nodes;
        self.text += entry.size.text;
        Arc::make_mut(&mut self.scheduled).push(Arc::new(entry));
    }
}

impl Scheduled {
    /// Create an entry. If its size needs more than `most_steps`, the size is only a lower bound.
    pub(crate) fn new(id: Arc<str>, due: u64, effects: Vec<Effect>, most_steps: u64) -> Self {
        let source =
            object([("id", Value::from(&id)), ("due", count(due)), ("effects", Effect::sources(&effects))]);
        let size = Size::measure_within(&source, most_steps);
        Self { id, due, effects, source, size }
    }

    /// Return the source documents of its effects.
    pub(crate) fn effect_sources(&self) -> Option<&[Value]> {
        self.source.as_object()?.get("effects")?.as_array().map(|effects| effects.as_slice())
    }

    /// Return the size of the entry.
    pub(crate) fn size(&self) -> Size {
        self.size
    }

    fn list(entries: &[Arc<Self>]) -> Value {
        entries.iter().map(|entry| entry.source.clone()).collect()
    }
}

impl LogLine {
    pub(crate) fn value(&self) -> Value {
        object([
            ("turn", count(self.turn)),
            ("message", Value::from(&self.message)),
            ("cause", Value::from(&self.cause)),
        ])
    }
}

impl Status {
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Ongoing => "ongoing",
            Self::Lost(_) => "lost",
            Self::Won(_) => "won",
        }
    }

    pub(crate) fn value(self, program: &Program) -> Value {
        let kind = Value::from(self.kind());
        match self.condition(program) {
            None => object([("kind", kind)]),
            Some(condition) => object([
                ("kind", kind),
                ("condition", Value::from(&condition.id)),
                ("message", condition.message.clone()),
            ]),
        }
    }

    fn condition(self, program: &Program) -> Option<&Condition> {
        match self {
            Self::Ongoing => None,
            Self::Lost(index) => program.losses.get(index),
            Self::Won(index) => program.wins.get(index),
        }
    }
}
