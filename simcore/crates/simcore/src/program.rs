//! Compiled scenario: everything that a turn needs, resolved once.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use bumpalo::Bump;

use crate::bounds::Bounds;
use crate::condition_distance::Distances;
use crate::document;
use crate::durations;
use crate::effects::{Compiling, Effect};
use crate::error::Result;
use crate::json_node::{Json, Members, View};
use crate::jsonlogic::{Fields, Rule};
use crate::narrator_scope::Scope;
use crate::params::Params;
use crate::paths::{Step, escape_pointer, variable_steps};
use crate::rng::{choose, draw, stream_key};
use crate::simd::Machine;
use crate::state::{Size, State};
use crate::strict_json;
use crate::value::{EMPTY_OBJECT, Value};
use crate::variants::{Values, Variant, list_variants};

const DEFAULT_HORIZON: u64 = 50;
/// Sorting of derived values is recursive, so their number is bounded.
const MAX_DERIVES: usize = 1024;
/// Texts of an entity that rules do not read.
const PORTRAYAL: [&str; 5] = ["voice", "manner", "wants", "knows", "secret"];

/// A compiled scenario. It is immutable.
#[derive(Debug)]
pub struct Program {
    /// The document in canonical form.
    text: Box<str>,
    spec: OnceLock<Value>,
    scope: OnceLock<Scope>,
    machine: OnceLock<Option<Machine>>,
    distances: OnceLock<Distances>,
    pub(crate) initial: Value,
    pub(crate) initial_size: Size,
    pub(crate) entities: Value,
    pub(crate) actions: Vec<Action>,
    pub(crate) events: Vec<Event>,
    pub(crate) losses: Vec<Condition>,
    pub(crate) wins: Vec<Condition>,
    /// Decay effects in the order of their paths, with their place in the document.
    pub(crate) decay: Vec<(String, Effect)>,
    pub(crate) horizon: u64,
    pub(crate) turn_minutes: u64,
    pub(crate) bounds: Arc<Bounds>,
    pub(crate) deals: Vec<Deal>,
    pub(crate) solutions: Vec<Solution>,
    /// True from version 1.1 on: end conditions are also tested before the random event.
    pub(crate) ends_early: bool,
}

/// A hidden truth that is drawn once for each run.
#[derive(Debug)]
pub(crate) struct Deal {
    pub(crate) cause: Arc<str>,
    /// The key of its stream.
    pub(crate) key: u64,
    /// An assignment for each value.
    pub(crate) outcomes: Vec<Effect>,
}

/// Steps that win, for the deals of a condition.
#[derive(Debug)]
pub(crate) struct Solution {
    pub(crate) when: Option<Rule>,
    pub(crate) steps: Vec<SolutionStep>,
}

/// A move of a solution, when it is made, and what to do while it is not legal.
#[derive(Debug)]
pub(crate) struct SolutionStep {
    pub(crate) when: Option<Rule>,
    pub(crate) action: Move,
    /// By default a step whose condition does not hold is skipped, and one that is not legal waits.
    pub(crate) otherwise: Option<Otherwise>,
}

/// The replacement of a step that is not legal or whose condition does not hold.
#[derive(Debug)]
pub(crate) enum Otherwise {
    Wait,
    Skip,
    Act(Move),
}

/// An action by its index, with parameters.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) index: usize,
    pub(crate) params: Value,
}

/// An action of the player.
#[derive(Debug)]
pub(crate) struct Action {
    pub(crate) id: Arc<str>,
    pub(crate) params: Params,
    /// The rule. Of an action with variants, that of the first one.
    pub(crate) rule: ActionRule,
    /// The rules for values of the parameters in paths and messages.
    pub(crate) variants: Vec<(Values, ActionRule)>,
}

/// The rule of an action.
#[derive(Debug)]
pub(crate) struct ActionRule {
    pub(crate) preconditions: Rule,
    pub(crate) consequence: Consequence,
}

/// A random event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: Arc<str>,
    pub(crate) weight: f64,
    pub(crate) when: Rule,
    pub(crate) turns: u64,
    pub(crate) consequence: Consequence,
}

/// A condition that ends a run.
#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) id: Arc<str>,
    pub(crate) when: Rule,
    /// Text, or null.
    pub(crate) message: Value,
}

/// The consequence of an action or an event.
#[derive(Debug)]
pub(crate) struct Consequence {
    /// Its place in the document: a JSON Pointer.
    pub(crate) place: String,
    pub(crate) cause: Arc<str>,
    /// Derived values in the order of their dependencies, otherwise by name.
    pub(crate) derives: Vec<(Arc<str>, Rule)>,
    pub(crate) effects: Vec<Effect>,
}

/// Caches that rules share during compilation.
struct Shared<'v> {
    fields: Fields<'v>,
    effects: Compiling<'v>,
}

impl Program {
    /// Compile a validated document.
    ///
    /// # Errors
    ///
    /// For an invalid document: `SPEC_INVALID`, or an error of the JSON parser.
    pub fn new(document: &[u8]) -> Result<Self> {
        let arena = Bump::new();
        let root = strict_json::borrow_canonical(document, &arena)?;
        let spec = document::object(&root)?;
        let turn_minutes = match spec.get("clock") {
            Some(clock) => {
                durations::minutes(document::text(document::field(document::object(clock)?, "turn")?)?)?
            }
            None => durations::DEFAULT_TURN_MINUTES,
        };
        let initial = document::field(spec, "state")?;
        document::object(initial)?;
        let initial = initial.to_value();
        let bounds = Arc::new(Bounds::new(spec)?);
        let variants = list_variants(spec)?;
        let mut shared =
            Shared { fields: Fields::of_scenario(), effects: Compiling::new(turn_minutes, &bounds) };
        let version = spec.get("spec_version").map(document::text).transpose()?;
        let actions = document::map_items(document::list_or_empty(spec, "actions")?, |index, action| {
            let variants = variants.get(index).map_or(&[][..], Vec::as_slice);
            Action::new(document::object(action)?, variants, &format!("/actions/{index}"), &mut shared)
        })?;
        Ok(Self {
            text: String::from_utf8_lossy(document).into(),
            spec: OnceLock::new(),
            scope: OnceLock::new(),
            machine: OnceLock::new(),
            distances: OnceLock::new(),
            initial_size: Size::measure(&initial),
            initial,
            entities: entities(spec)?,
            events: map_items(spec, "random_events", |event, place| {
                Event::new(event, place, turn_minutes, &mut shared)
            })?,
            losses: map_items(spec, "loss_conditions", |end, _| Condition::new(end, &mut shared))?,
            wins: map_items(spec, "win_conditions", |end, _| Condition::new(end, &mut shared))?,
            decay: decay(document::object(document::field(spec, "negativity_budget")?)?, &bounds)?,
            deals: document::map_items(document::list_or_empty(spec, "deal")?, |_, deal| {
                Deal::new(document::object(deal)?, &bounds)
            })?,
            solutions: map_items(spec, "solutions", |solution, _| {
                Solution::new(solution, &actions, &mut shared.fields)
            })?,
            actions,
            ends_early: version == Some("1.1"),
            horizon: spec.get("horizon").map_or(Ok(DEFAULT_HORIZON), document::count)?,
            turn_minutes,
            bounds,
        })
    }

    /// Return the parsed document. It is parsed again at the first use.
    pub(crate) fn spec(&self) -> &Value {
        self.spec.get_or_init(|| strict_json::parse_canonical(self.text.as_bytes()).unwrap_or(Value::Null))
    }

    /// Return the narrator's scope, built at the first use. An invalid scope permits nothing.
    pub(crate) fn scope(&self) -> &Scope {
        self.scope.get_or_init(|| {
            let spec = document::object(self.spec());
            spec.and_then(Scope::new).unwrap_or_else(|_| Scope::empty())
        })
    }

    /// Return the machine for vectorised runs from the initial state, if possible. It is built at the first
    /// use.
    pub(crate) fn machine(&self) -> Option<&Machine> {
        self.machine.get_or_init(|| Machine::new(self, &State::undealt(self, 0))).as_ref()
    }

    /// Return the distances of the loss and win conditions, built at the first use.
    pub(crate) fn distances(&self) -> &Distances {
        self.distances.get_or_init(|| Distances::new(self))
    }
}

impl Deal {
    fn new<T: Json>(deal: Members<'_, T>, bounds: &Arc<Bounds>) -> Result<Self> {
        let cause = format!("deal:{}", document::text(document::field(deal, "id")?)?);
        let path = document::text(document::field(deal, "path")?)?;
        let values = document::list(document::field(deal, "values")?)?;
        Ok(Self {
            key: stream_key(&cause),
            cause: cause.into(),
            outcomes: document::map_items(values, |_, value| Effect::set(path, value, bounds))?,
        })
    }

    /// Return the index of the outcome under a seed.
    pub(crate) fn drawn(&self, seed: u64) -> usize {
        usize::try_from(choose(draw(seed, self.key, 0, 0), self.outcomes.len() as u64)).unwrap_or(0)
    }
}

impl Solution {
    fn new<'v, T: Json>(
        solution: Members<'v, T>,
        actions: &[Action],
        fields: &mut Fields<'v>,
    ) -> Result<Self> {
        Ok(Self {
            when: solution.get("when").map(|when| Rule::compile(when, fields)),
            steps: document::map_items(document::list_or_empty(solution, "steps")?, |_, step| {
                let step = document::object(step)?;
                let otherwise = match step.get("otherwise").map(Json::view) {
                    None => None,
                    Some(View::Text("wait")) => Some(Otherwise::Wait),
                    Some(View::Text("skip")) => Some(Otherwise::Skip),
                    Some(View::Object(other)) => Some(Otherwise::Act(Move::new(other, actions)?)),
                    Some(_) => return Err(document::invalid("a step does something unknown instead")),
                };
                let when = step.get("when").map(|when| Rule::compile(when, fields));
                Ok(SolutionStep { when, action: Move::new(step, actions)?, otherwise })
            })?,
        })
    }
}

impl Move {
    fn new<T: Json>(given: Members<'_, T>, actions: &[Action]) -> Result<Self> {
        let id = document::text(document::field(given, "action")?)?;
        let index = actions.iter().position(|action| &*action.id == id);
        Ok(Self {
            index: index.ok_or_else(|| document::invalid("a step names no action"))?,
            params: given.get("params").map_or_else(|| EMPTY_OBJECT.clone(), Json::to_value),
        })
    }
}

impl Action {
    fn new<'v, T: Json>(
        action: Members<'v, T>,
        variants: &'v [Variant],
        place: &str,
        shared: &mut Shared<'v>,
    ) -> Result<Self> {
        let id = document::text(document::field(action, "id")?)?;
        let cause = format!("action:{id}");
        let rule = match variants.first() {
            Some(first) => ActionRule::new(document::object(&first.action)?, place, &cause, shared)?,
            None => ActionRule::new(action, place, &cause, shared)?,
        };
        let variants = document::map_items(variants, |_, variant| {
            let rule = ActionRule::new(document::object(&variant.action)?, place, &cause, shared)?;
            Ok((variant.values.clone(), rule))
        })?;
        Ok(Self { params: Params::new(document::field(action, "params")?)?, rule, variants, id: id.into() })
    }

    /// Return the rule for legal parameters.
    pub(crate) fn rule_for(&self, params: &Value) -> &ActionRule {
        let mut variants = self.variants.iter();
        let given = |name: &Arc<str>| params.as_object().and_then(|params| params.get(name)?.as_text());
        let fits = |values: &Values| values.iter().all(|(name, value)| given(name) == Some(&**value));
        variants.find(|(values, _)| fits(values)).map_or(&self.rule, |(_, rule)| rule)
    }
}

impl ActionRule {
    fn new<'v, T: Json>(
        action: Members<'v, T>,
        place: &str,
        cause: &str,
        shared: &mut Shared<'v>,
    ) -> Result<Self> {
        Ok(Self {
            preconditions: Rule::compile(document::field(action, "preconditions")?, &mut shared.fields),
            consequence: Consequence::new(action, place.into(), cause.into(), shared)?,
        })
    }
}

impl Event {
    fn new<'v, T: Json>(
        event: Members<'v, T>,
        place: String,
        turn_minutes: u64,
        shared: &mut Shared<'v>,
    ) -> Result<Self> {
        let id = document::text(document::field(event, "id")?)?;
        let turns = match event.get("duration") {
            Some(duration) => durations::turns(document::text(duration)?, turn_minutes)?,
            None => 1,
        };
        Ok(Self {
            weight: document::number(document::field(event, "weight")?)?,
            when: Rule::compile(document::field(event, "when")?, &mut shared.fields),
            turns,
            consequence: Consequence::new(event, place, format!("event:{id}"), shared)?,
            id: id.into(),
        })
    }
}

impl Condition {
    fn new<'v, T: Json>(condition: Members<'v, T>, shared: &mut Shared<'v>) -> Result<Self> {
        Ok(Self {
            id: document::text(document::field(condition, "id")?)?.into(),
            when: Rule::compile(document::field(condition, "when")?, &mut shared.fields),
            message: condition.get("message").map_or(Value::Null, Json::to_value),
        })
    }
}

impl Consequence {
    fn new<'v, T: Json>(
        rule: Members<'v, T>,
        place: String,
        cause: String,
        shared: &mut Shared<'v>,
    ) -> Result<Self> {
        let derives = match rule.get("derives") {
            Some(derives) => compile_derives(document::object(derives)?, &mut shared.fields)?,
            None => Vec::new(),
        };
        let effects = Effect::list(document::field(rule, "effects")?, &mut shared.effects)?;
        Ok(Self { place, cause: cause.into(), derives, effects })
    }
}

/// Compile each object of an optional list. The compiler gets the place in the document.
fn map_items<'v, T: Json, C>(
    spec: Members<'v, T>,
    section: &str,
    mut compile: impl FnMut(Members<'v, T>, String) -> Result<C>,
) -> Result<Vec<C>> {
    document::map_items(document::list_or_empty(spec, section)?, |index, item| {
        compile(document::object(item)?, format!("/{section}/{index}"))
    })
}

/// Return the entities as rules read them: without their texts of version 1.1.
fn entities<T: Json>(spec: Members<'_, T>) -> Result<Value> {
    let given = document::list_or_empty(spec, "entities")?;
    let entities = given.iter().map(|entity| {
        let members = document::object(entity)?.iter();
        let read = members.filter(|(key, _)| !PORTRAYAL.contains(key));
        Ok(read.map(|(key, value)| (Arc::from(key), value.to_value())).collect::<Value>())
    });
    entities.collect()
}

fn decay<T: Json>(budget: Members<'_, T>, bounds: &Arc<Bounds>) -> Result<Vec<(String, Effect)>> {
    let Some(paths) = budget.get("decay_per_turn") else { return Ok(Vec::new()) };
    let place = |path| format!("/negativity_budget/decay_per_turn/{}", escape_pointer(path));
    document::object(paths)?
        .iter()
        .map(|(path, amount)| Ok((place(path), Effect::decay(path, amount, bounds)?)))
        .collect()
}

fn compile_derives<'v, T: Json>(
    expressions: Members<'v, T>,
    fields: &mut Fields<'v>,
) -> Result<Vec<(Arc<str>, Rule)>> {
    let compiled = |name: &str| {
        expressions.get(name).map(|expression| (Arc::from(name), Rule::compile(expression, fields)))
    };
    Ok(derive_order(expressions)?.into_iter().filter_map(compiled).collect())
}

/// Return the names of derived values in the order of their dependencies, otherwise by name.
pub(crate) fn derive_order<T: Json>(expressions: Members<'_, T>) -> Result<Vec<&str>> {
    if expressions.len() > MAX_DERIVES {
        return Err(document::invalid(&format!("a rule derives more than {MAX_DERIVES} values")));
    }
    let mut order = Order { expressions, visiting: BTreeSet::new(), done: Vec::new() };
    for (name, expression) in expressions.iter() {
        order.visit(name, expression)?;
    }
    Ok(order.done)
}

struct Order<'v, T: Json> {
    expressions: Members<'v, T>,
    visiting: BTreeSet<&'v str>,
    done: Vec<&'v str>,
}

impl<'v, T: Json> Order<'v, T> {
    fn visit(&mut self, name: &'v str, expression: &'v T) -> Result<()> {
        if self.done.contains(&name) {
            return Ok(());
        }
        if !self.visiting.insert(name) {
            return Err(document::invalid("a derived value depends on itself"));
        }
        let mut names = BTreeSet::new();
        collect_derive_names(expression, &mut names);
        for other in &names {
            if let Some((other, expression)) = self.expressions.entry(other) {
                self.visit(other, expression)?;
            }
        }
        self.done.push(name);
        Ok(())
    }
}

/// Collect the derived values that an expression reads.
fn collect_derive_names<'v>(expression: &'v impl Json, names: &mut BTreeSet<Cow<'v, str>>) {
    match expression.view() {
        View::Array(items) => items.iter().for_each(|item| collect_derive_names(item, names)),
        View::Object(members) => {
            members.values().for_each(|item| collect_derive_names(item, names));
            names.extend(members.get("var").and_then(variable).and_then(derive_name));
            let sought = ["missing", "missing_some"].into_iter().filter_map(|name| members.get(name));
            sought.for_each(|operand| collect_missing_names(operand, names));
        }
        _ => {}
    }
}

/// Collect the derived values among the paths of `missing` or `missing_some`.
fn collect_missing_names<'v>(operand: &'v impl Json, names: &mut BTreeSet<Cow<'v, str>>) {
    match operand.view() {
        View::Text(path) => names.extend(derive_name(path)),
        View::Array(items) => items.iter().for_each(|item| collect_missing_names(item, names)),
        _ => {}
    }
}

fn variable(operand: &impl Json) -> Option<&str> {
    let path = if let View::Array(items) = operand.view() { items.first()? } else { operand };
    document::text(path).ok()
}

fn derive_name(path: &str) -> Option<Cow<'_, str>> {
    // A quick rejection of nearly all paths.
    if !path.starts_with("derives") {
        return None;
    }
    let mut steps = Vec::new();
    variable_steps(path, &mut steps);
    let mut steps = steps.into_iter();
    match (steps.next(), steps.next()) {
        (Some(Step::Name(root)), Some(name)) if root == "derives" => Some(match name {
            Step::Name(name) => name,
            Step::Index(index) => index.to_string().into(),
        }),
        _ => None,
    }
}
