//! A compiled scenario: everything that a turn needs, resolved once.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use crate::border;
use crate::distances::Distances;
use crate::durations;
use crate::effects::Effect;
use crate::error::Result;
use crate::lanes::Machine;
use crate::logic::Rule;
use crate::params::Params;
use crate::paths::{Segment, escaped, split_variable};
use crate::read;
use crate::scope::Scope;
use crate::state::Size;
use crate::value::{Object, Value};

const DEFAULT_HORIZON: u64 = 50;
/// Ordering derived values recurses along what they read, so their number is bounded.
const MAX_DERIVES: usize = 1024;

/// A scenario, ready to run. It never changes.
#[derive(Debug)]
pub struct Program {
    /// The document, for the plan.
    pub(crate) spec: Value,
    machine: OnceLock<Option<Machine>>,
    distances: OnceLock<Distances>,
    pub(crate) initial: Value,
    pub(crate) initial_size: Size,
    pub(crate) entities: Value,
    pub(crate) actions: Vec<Action>,
    pub(crate) events: Vec<Event>,
    pub(crate) losses: Vec<Condition>,
    pub(crate) wins: Vec<Condition>,
    /// One effect for each path that decays, in the order of the paths, with its place in the document.
    pub(crate) decay: Vec<(String, Effect)>,
    /// What the narrator may change.
    pub(crate) scope: Scope,
    pub(crate) horizon: u64,
    pub(crate) turn_minutes: u64,
}

/// Something that can be done.
#[derive(Debug)]
pub(crate) struct Action {
    pub(crate) id: Arc<str>,
    pub(crate) params: Params,
    pub(crate) preconditions: Rule,
    pub(crate) consequence: Consequence,
}

/// Something that may happen.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: Arc<str>,
    pub(crate) weight: f64,
    pub(crate) when: Rule,
    pub(crate) turns: u64,
    pub(crate) consequence: Consequence,
}

/// Something that ends a run.
#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) id: Arc<str>,
    /// The condition as the document has it.
    pub(crate) logic: Value,
    pub(crate) when: Rule,
    /// Text, or null.
    pub(crate) message: Value,
}

/// What an action or an event does.
#[derive(Debug)]
pub(crate) struct Consequence {
    /// Where it stands in the document: a JSON Pointer.
    pub(crate) place: String,
    pub(crate) cause: Arc<str>,
    /// Each after those that it reads, by name otherwise.
    pub(crate) derives: Vec<(Arc<str>, Rule)>,
    pub(crate) effects: Vec<Effect>,
}

impl Program {
    /// Compile a document that has been validated.
    ///
    /// # Errors
    ///
    /// `SPEC_INVALID`, or what the JSON border found, for one that has not.
    pub fn new(document: &[u8]) -> Result<Self> {
        let document = border::parse_canonical(document)?;
        let spec = read::object(&document)?;
        let turn_minutes = match spec.get("clock") {
            Some(clock) => durations::minutes(&read::text(read::field(read::object(clock)?, "turn")?)?)?,
            None => durations::DEFAULT_TURN_MINUTES,
        };
        let initial = read::field(spec, "state")?;
        read::object(initial)?;
        Ok(Self {
            machine: OnceLock::new(),
            distances: OnceLock::new(),
            initial: initial.clone(),
            initial_size: Size::of(initial),
            entities: spec.get("entities").cloned().unwrap_or_else(|| Vec::new().into()),
            actions: each(spec, "actions", |action, place| Action::new(action, place, turn_minutes))?,
            events: each(spec, "random_events", |event, place| Event::new(event, place, turn_minutes))?,
            losses: each(spec, "loss_conditions", |condition, _| Condition::new(condition))?,
            wins: each(spec, "win_conditions", |condition, _| Condition::new(condition))?,
            decay: decay(read::object(read::field(spec, "negativity_budget")?)?)?,
            scope: Scope::new(spec)?,
            horizon: spec.get("horizon").map_or(Ok(DEFAULT_HORIZON), read::count)?,
            turn_minutes,
            spec: document,
        })
    }

    /// What plays the program in lockstep, if it can be played so; made when it is first wanted.
    pub(crate) fn machine(&self) -> Option<&Machine> {
        self.machine.get_or_init(|| Machine::new(self)).as_ref()
    }

    /// How far the conditions that end a run are from holding; made when it is first wanted.
    pub(crate) fn distances(&self) -> &Distances {
        self.distances.get_or_init(|| Distances::new(self))
    }
}

impl Action {
    fn new(action: &Object, place: String, turn_minutes: u64) -> Result<Self> {
        let id = read::text(read::field(action, "id")?)?;
        Ok(Self {
            params: Params::new(read::field(action, "params")?)?,
            preconditions: Rule::new(read::field(action, "preconditions")?),
            consequence: Consequence::new(action, place, format!("action:{id}"), turn_minutes)?,
            id,
        })
    }
}

impl Event {
    fn new(event: &Object, place: String, turn_minutes: u64) -> Result<Self> {
        let id = read::text(read::field(event, "id")?)?;
        let turns = match event.get("duration") {
            Some(duration) => durations::turns(&read::text(duration)?, turn_minutes)?,
            None => 1,
        };
        Ok(Self {
            weight: read::number(read::field(event, "weight")?)?,
            when: Rule::new(read::field(event, "when")?),
            turns,
            consequence: Consequence::new(event, place, format!("event:{id}"), turn_minutes)?,
            id,
        })
    }
}

impl Condition {
    fn new(condition: &Object) -> Result<Self> {
        let logic = read::field(condition, "when")?;
        Ok(Self {
            id: read::text(read::field(condition, "id")?)?,
            when: Rule::new(logic),
            logic: logic.clone(),
            message: condition.get("message").cloned().unwrap_or(Value::Null),
        })
    }
}

impl Consequence {
    fn new(rule: &Object, place: String, cause: String, turn_minutes: u64) -> Result<Self> {
        let derives = match rule.get("derives") {
            Some(derives) => compiled_derives(read::object(derives)?)?,
            None => Vec::new(),
        };
        let effects = Effect::list(read::field(rule, "effects")?, turn_minutes)?;
        Ok(Self { place, cause: cause.into(), derives, effects })
    }
}

/// Compile each object of a list, which may be absent; the compiler is told its place in the document.
fn each<T>(spec: &Object, section: &str, compile: impl Fn(&Object, String) -> Result<T>) -> Result<Vec<T>> {
    let items = read::list_or_empty(spec, section)?.iter().enumerate();
    items.map(|(index, item)| compile(read::object(item)?, format!("/{section}/{index}"))).collect()
}

fn decay(budget: &Object) -> Result<Vec<(String, Effect)>> {
    let Some(paths) = budget.get("decay_per_turn") else { return Ok(Vec::new()) };
    let place = |path| format!("/negativity_budget/decay_per_turn/{}", escaped(path));
    read::object(paths)?
        .iter()
        .map(|(path, amount)| Ok((place(path), Effect::decay(path, amount)?)))
        .collect()
}

fn compiled_derives(expressions: &Object) -> Result<Vec<(Arc<str>, Rule)>> {
    let compiled = |name: Arc<str>| expressions.get(&name).map(|expression| (name, Rule::new(expression)));
    Ok(derive_order(expressions)?.into_iter().filter_map(compiled).collect())
}

/// The names of derived values in the order in which they are computed: each after those it reads, by name otherwise.
pub(crate) fn derive_order(expressions: &Object) -> Result<Vec<Arc<str>>> {
    if expressions.len() > MAX_DERIVES {
        return Err(read::invalid(&format!("a rule derives more than {MAX_DERIVES} values")));
    }
    let mut order = Order { expressions, visiting: BTreeSet::new(), done: Vec::new() };
    for name in expressions.keys() {
        order.visit(name)?;
    }
    Ok(order.done)
}

struct Order<'a> {
    expressions: &'a Object,
    visiting: BTreeSet<Arc<str>>,
    done: Vec<Arc<str>>,
}

impl Order<'_> {
    fn visit(&mut self, name: &Arc<str>) -> Result<()> {
        let Some(expression) = self.expressions.get(name) else { return Ok(()) };
        if self.done.contains(name) {
            return Ok(());
        }
        if !self.visiting.insert(Arc::clone(name)) {
            return Err(read::invalid("a derived value depends on itself"));
        }
        let mut names = BTreeSet::new();
        derive_names(expression, &mut names);
        for other in &names {
            self.visit(other)?;
        }
        self.done.push(Arc::clone(name));
        Ok(())
    }
}

/// The derived values that an expression reads.
fn derive_names(expression: &Value, names: &mut BTreeSet<Arc<str>>) {
    match expression {
        Value::Array(items) => items.iter().for_each(|item| derive_names(item, names)),
        Value::Object(members) => {
            members.values().for_each(|item| derive_names(item, names));
            names.extend(members.get("var").and_then(variable).and_then(derive_name));
            let sought = ["missing", "missing_some"].into_iter().filter_map(|name| members.get(name));
            sought.for_each(|operand| sought_names(operand, names));
        }
        _ => {}
    }
}

/// The derived values among the paths that `missing` or `missing_some` looks for.
fn sought_names(operand: &Value, names: &mut BTreeSet<Arc<str>>) {
    match operand {
        Value::Text(path) => names.extend(derive_name(path)),
        Value::Array(items) => items.iter().for_each(|item| sought_names(item, names)),
        _ => {}
    }
}

fn variable(operand: &Value) -> Option<&str> {
    match operand {
        Value::Array(items) => items.first()?.as_text(),
        operand => operand.as_text(),
    }
}

fn derive_name(path: &str) -> Option<Arc<str>> {
    match split_variable(path).as_slice() {
        [Segment::Key(root), name, ..] if &**root == "derives" => Some(match name {
            Segment::Key(name) | Segment::Digits(name, _) => Arc::clone(name),
            Segment::Index(index) => index.to_string().into(),
        }),
        _ => None,
    }
}
