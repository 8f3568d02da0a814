//! Lowering of rules, and the maximum cost of a turn.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "a path to a method fixes the lifetime of its scope"
)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::bounds::clamp;
use crate::change_log::TURN_LIMIT;
use crate::effects::Due as When;
use crate::jsonlogic::FUEL;
use crate::paths::{Segment, format_path, parse_path};
use crate::program::Program;
use crate::state::{MAX_PENDING, MAX_STATE_NODES, MAX_STATE_TEXT, Scheduled, Size, State};
use crate::turn::PARAM_TRIES;
use crate::value::{Object, Value};
use crate::variants::{self, list_variants};

use super::expressions::{Names, Scope, Typed, steps};
use super::fallback::{self, Interpreted};
use super::initial_state::Deal;
use super::layout::{Layout, Target, Texts};
use super::types::{Condition, Consequence, Kind, Mutation, Operation, Relation, Scalar, Site, Write};
use super::{Action, Domain, Event, InitialState, Param, Plan, Variant};

/// Maximum output of an expression, in characters and items, with a margin below the limit.
const MOST_MADE: u64 = 60_000;

impl Plan {
    /// Build the plan of a program for runs from a state, or return `None`.
    pub(crate) fn new(program: &Program, state: &State) -> Option<Self> {
        let spec = program.spec().as_object()?;
        let pending: Vec<_> =
            state.scheduled.iter().map(|entry| entry.effect_sources()).collect::<Option<_>>()?;
        let texts = Texts::of(spec, &state.tree, &pending);
        let mut layout = Layout::new(&state.tree, texts)?;
        let variants = list_variants(spec.members()).ok()?;
        let variants_of = |index| variants.get(index).map_or(&[][..], Vec::as_slice);
        let whole = rules(spec, "actions")?.iter().enumerate();
        let whole = whole.filter(|(index, _)| variants_of(*index).is_empty()).map(|(_, action)| action);
        let expanded = variants.iter().flatten().map(|variant| &variant.action);
        for rule in whole.chain(expanded).chain(rules(spec, "random_events")?) {
            let rule = rule.as_object()?;
            infer_element_kinds(
                &mut layout,
                list(rule, "effects")?,
                rule.get("derives").and_then(Value::as_object),
            )?;
        }
        let turn = layout.slots.len();
        let mut builder = Builder {
            program,
            tree: &state.tree,
            layout: &layout,
            turn,
            columns: turn + 1,
            sites: Vec::new(),
            names: BTreeMap::new(),
            scheduled: Size::default(),
            budget: Budget::default(),
        };
        let actions = rules(spec, "actions")?
            .iter()
            .enumerate()
            .map(|(index, action)| builder.action(action.as_object()?, variants_of(index)));
        let actions = actions.collect::<Option<_>>()?;
        let events = rules(spec, "random_events")?.iter().zip(&program.events);
        let events = events.map(|(event, compiled)| {
            let event = event.as_object()?;
            let when = builder.condition(event.get("when")?, &Names::new())?;
            let consequence = builder.consequence(event, &Names::new())?;
            Some(Event { weight: compiled.weight, turns: compiled.turns, when, consequence })
        });
        let events = events.collect::<Option<Vec<_>>>()?;
        let start = InitialState::new(state, &mut builder, &events)?;
        let losses = builder.conditions(rules(spec, "loss_conditions")?)?;
        let wins = builder.conditions(rules(spec, "win_conditions")?)?;
        let mut decay = builder.decay(spec)?;
        let mut masked_decay = None;
        if program.ends_early {
            let mutations = decay
                .drain(..)
                .map(|(slot, amount)| builder.bounded_write(slot, Write::Subtract, Scalar::Constant(amount)));
            masked_decay = Some(Consequence { derives: Vec::new(), mutations: mutations.collect() });
        }
        let distances = builder.distances();
        let most_elements = builder.most_elements()?;
        let (columns, sites) = (builder.columns, builder.sites);
        Some(Self {
            layout,
            start,
            turn,
            columns,
            actions,
            events,
            losses,
            wins,
            decay,
            masked_decay,
            ends_early: program.ends_early,
            sites,
            distances,
            most_elements,
        })
    }
}

/// The maximum cost of all rules together.
#[derive(Default)]
struct Budget {
    /// Steps with empty arrays, and steps for each element.
    steps: u64,
    steps_per_element: u64,
    /// Maximum elements for which each single expression stays within its fuel.
    elements: Option<u64>,
}

impl Budget {
    /// Add an expression that is evaluated up to `times` times in a turn.
    fn expression(&mut self, logic: &Value, per_element: u64, times: u64) -> Option<()> {
        let (fuel, once) = (u64::from(FUEL), steps(logic));
        let made = Size::measure(logic);
        let room = fuel.checked_sub(once)?;
        ((made.nodes + made.text) as u64 <= MOST_MADE).then_some(())?;
        if let Some(elements) = room.checked_div(per_element) {
            self.elements = Some(self.elements.map_or(elements, |least| least.min(elements)));
        }
        self.steps += once * times;
        self.steps_per_element += per_element * times;
        Some(())
    }

    /// Add changes of values of a size. Each value is counted before and after the change.
    fn changes(&mut self, number: u64, longest_text: usize) {
        self.steps += number * (3 + 2 * (longest_text as u64 / 1024 + 1));
    }
}

/// A schedule whose effects are lowered, with the columns of its derived values.
#[derive(Default)]
struct DeferredEffects {
    frozen_columns: BTreeMap<usize, usize>,
    frozen: Vec<(usize, Scalar)>,
}

pub(super) struct Builder<'a> {
    pub(super) program: &'a Program,
    /// The state in which the runs begin.
    tree: &'a Value,
    layout: &'a Layout,
    turn: usize,
    columns: usize,
    sites: Vec<Site>,
    /// The names of scheduled entries.
    names: BTreeMap<Arc<str>, usize>,
    /// Maximum size of all pending entries.
    scheduled: Size,
    budget: Budget,
}

impl Builder<'_> {
    fn action(&mut self, action: &Object, variants: &[variants::Variant]) -> Option<Action> {
        let mut names = Names::new();
        let mut params = Vec::new();
        for (name, schema) in action.get("params")?.as_object()?.iter() {
            let (kind, domain) = self.domain(schema.as_object()?)?;
            names.insert(Arc::clone(name), (self.columns, kind));
            params.push(Param { column: self.columns, kind, domain });
            self.columns += 1;
        }
        if !variants.is_empty() {
            let variants: Vec<Variant> =
                variants.iter().map(|variant| self.variant(variant, &names)).collect::<Option<_>>()?;
            let legal = variants.iter().map(|variant| {
                let fixed = variant.values.iter().map(|(column, value)| {
                    Condition::Compare(Relation::Equal, Scalar::Column(*column), Scalar::Constant(*value))
                });
                Condition::All(fixed.chain([variant.legal.clone()]).collect())
            });
            let legal = Condition::Any(legal.collect());
            let consequence = Consequence { derives: Vec::new(), mutations: Vec::new() };
            return Some(Action { params, depends_on_params: true, legal, consequence, variants });
        }
        let legal = self.preconditions(action, &names)?;
        let depends_on_params =
            !params.is_empty() && fallback::may_read(action.get("preconditions")?, "params");
        let consequence = self.consequence(action, &names)?;
        Some(Action { params, depends_on_params, legal, consequence, variants: Vec::new() })
    }

    fn variant(&mut self, variant: &variants::Variant, names: &Names) -> Option<Variant> {
        let action = variant.action.as_object()?;
        let values = variant.values.iter().map(|(name, value)| {
            let (_, number) = self.layout.scalar(&Value::from(value))?;
            Some((names.get(name)?.0, number))
        });
        Some(Variant {
            values: values.collect::<Option<_>>()?,
            legal: self.preconditions(action, names)?,
            consequence: self.consequence(action, names)?,
        })
    }

    fn preconditions(&mut self, action: &Object, names: &Names) -> Option<Condition> {
        let logic = action.get("preconditions")?;
        let tries = if names.is_empty() { 2 } else { PARAM_TRIES as u64 + 1 };
        self.expression(
            logic,
            names,
            &Names::new(),
            tries,
            |scope, logic| scope.condition(logic),
            interpreted_condition,
        )
    }

    fn domain(&self, schema: &Object) -> Option<(Kind, Domain)> {
        let kind = match schema.get("type")?.as_text()? {
            "boolean" => Kind::Bool,
            "string" => Kind::Text,
            _ => Kind::Number,
        };
        if let Some(options) = schema.get("enum") {
            let (of, options) = self.layout.items(options.as_array()?)?;
            return (of == Some(kind)).then_some((kind, Domain::Options(options)));
        }
        let bound = |name| schema.get(name).and_then(Value::as_number);
        let domain = match schema.get("type")?.as_text()? {
            "boolean" => Domain::Options(vec![0.0, 1.0]),
            "string" => Domain::Only(0.0),
            "integer" => {
                let (low, high) = (bound("minimum")?, bound("maximum")?);
                let count = high - low + 1.0;
                (1.0..=f64::from(u32::MAX)).contains(&count).then_some(())?;
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 32 bits")]
                Domain::Integers { low, count: count as u64 }
            }
            _ => Domain::Numbers { low: bound("minimum")?, high: bound("maximum")? },
        };
        Some((kind, domain))
    }

    fn condition(&mut self, logic: &Value, params: &Names) -> Option<Condition> {
        self.expression(
            logic,
            params,
            &Names::new(),
            1,
            |scope, logic| scope.condition(logic),
            interpreted_condition,
        )
    }

    fn conditions(&mut self, ends: &[Value]) -> Option<Vec<Condition>> {
        let times = if self.program.ends_early { 2 } else { 1 };
        let conditions = ends.iter().map(|end| {
            let when = end.as_object()?.get("when")?;
            let names = Names::new();
            let lower = |scope: &Scope<'_>, logic: &Value| scope.condition(logic);
            self.expression(when, &names, &names, times, lower, interpreted_condition)
        });
        conditions.collect()
    }

    pub(super) fn expression<T>(
        &mut self,
        logic: &Value,
        params: &Names,
        derives: &Names,
        times: u64,
        lower: impl Fn(&Scope<'_>, &Value) -> Option<T>,
        interpret: impl Fn(&Scope<'_>, &Value) -> Option<T>,
    ) -> Option<T> {
        let steps_per_element = Cell::new(0);
        let scope = Scope {
            layout: self.layout,
            turn: self.turn,
            params,
            derives,
            entities: &self.program.entities,
            element: None,
            accumulator: None,
            steps_per_element: &steps_per_element,
        };
        // The budget is checked again at the end. This early check ends the work on expensive programs.
        (self.budget.steps <= TURN_LIMIT).then_some(())?;
        if steps(logic) <= u64::from(FUEL)
            && let Some(lowered) = lower(&scope, logic)
            && self.budget.expression(logic, steps_per_element.get(), times).is_some()
        {
            return Some(lowered);
        }
        self.budget.steps += fallback::MOST_STEPS * times;
        interpret(&scope, logic)
    }

    /// Lower the derived values and effects of an action or event.
    fn consequence(&mut self, rule: &Object, params: &Names) -> Option<Consequence> {
        let mut derives = Names::new();
        let mut computed = Vec::new();
        if let Some(expressions) = rule.get("derives") {
            let expressions = expressions.as_object()?;
            for name in crate::program::derive_order(expressions.members()).ok()? {
                let logic = expressions.get(name)?;
                let value = self.expression(
                    logic,
                    params,
                    &derives,
                    2,
                    |scope, logic| scope.value(logic),
                    interpreted_value,
                )?;
                derives.insert(name.into(), (self.columns, value.kind));
                computed.push((self.columns, value.scalar));
                self.columns += 1;
            }
        }
        let mutations = self.mutations(list(rule, "effects")?, &derives, &mut Vec::new())?;
        Some(Consequence { derives: computed, mutations })
    }

    fn mutations(
        &mut self,
        effects: &[Value],
        derives: &Names,
        later: &mut Vec<DeferredEffects>,
    ) -> Option<Vec<Mutation>> {
        let mut mutations = Vec::new();
        for effect in effects {
            let effect = effect.as_object()?;
            match effect.get("op")?.as_text()? {
                "addlog" => {}
                "schedule" => {
                    let site = self.site(effect, derives, later)?;
                    mutations.push(Mutation::Schedule { site });
                }
                operation => self.write(operation, effect, derives, later, &mut mutations)?,
            }
        }
        Some(mutations)
    }

    fn write(
        &mut self,
        operation: &str,
        effect: &Object,
        derives: &Names,
        later: &mut [DeferredEffects],
        mutations: &mut Vec<Mutation>,
    ) -> Option<()> {
        let path = parse_path(effect.get("path")?.as_text()?).ok()?;
        let target = self.layout.find(path.get(1..)?)?;
        let value = effect.get("value").unwrap_or(&Value::Null);
        let before = mutations.len();
        match (operation, target) {
            ("patch", Target::Object(members)) => {
                for (key, value) in value.as_object()?.iter() {
                    let super::layout::Place::Slot(slot) = members.get(key)? else { return None };
                    let (kind, number) = self.layout.scalar(value)?;
                    (kind == self.layout.slots.get(*slot)?.kind).then_some(())?;
                    mutations.push(self.bounded_write(*slot, Write::Set, Scalar::Constant(number)));
                }
            }
            ("push", Target::List(list)) => {
                let value = self.resolve(value, derives, later)?;
                (value.kind == self.element(list)?).then_some(())?;
                mutations.push(Mutation::Push { list, value: value.scalar });
            }
            ("pop", Target::List(list)) => mutations.push(Mutation::Pop { list }),
            ("set", Target::List(list)) => {
                let (kind, items) = self.layout.items(value.as_array()?)?;
                (kind.is_none() || kind == Some(self.element(list)?)).then_some(())?;
                self.budget.steps_per_element += 1 + self.layout.texts.longest() as u64 / 1024;
                self.budget.steps += Size::measure(value).steps();
                mutations.push(Mutation::Assign { list, items });
            }
            (_, Target::Slot(slot)) => {
                let value = self.resolve(value, derives, later)?;
                let write = write_for(operation, self.layout.slots.get(slot)?.kind, value.kind)?;
                mutations.push(self.bounded_write(slot, write, value.scalar));
            }
            (_, Target::Item(list, index)) => {
                let value = self.resolve(value, derives, later)?;
                let write = write_for(operation, self.element(list)?, value.kind)?;
                mutations.push(Mutation::WriteItem { list, index, write, value: value.scalar });
            }
            _ => return None,
        }
        self.budget.changes((mutations.len() - before) as u64, self.layout.texts.longest());
        Some(())
    }

    /// Return a write to a slot. A bounded one sets what the bounds leave of the result.
    fn bounded_write(&self, slot: usize, write: Write, value: Scalar) -> Mutation {
        let Some((low, high)) = self.limits(slot) else { return Mutation::Write { slot, write, value } };
        let calculate = |operation, first, second| Scalar::Calculation {
            operation,
            first: Box::new(first),
            rest: vec![second],
        };
        let mut result = match write {
            Write::Set => value,
            Write::Add => calculate(Operation::Add, Scalar::Column(slot), value),
            Write::Subtract => calculate(Operation::Subtract, Scalar::Column(slot), value),
            Write::Multiply => calculate(Operation::Multiply, Scalar::Column(slot), value),
        };
        if low.is_finite() {
            result = calculate(Operation::Greatest, result, Scalar::Constant(low));
        }
        if high.is_finite() {
            result = calculate(Operation::Least, result, Scalar::Constant(high));
        }
        Mutation::Write { slot, write: Write::Set, value: result }
    }

    /// Return the bounds of a slot.
    fn limits(&self, slot: usize) -> Option<(f64, f64)> {
        let mut path = vec![Segment::Key("state".into())];
        path.extend(self.layout.slots.get(slot)?.path.iter().cloned());
        self.program.bounds.limits(&format_path(&path))
    }

    /// Return the slots that are dealt, or `None` if something else is.
    pub(super) fn deals(&self) -> Option<Vec<Deal>> {
        let spec = self.program.spec().as_object()?;
        let dealt = rules(spec, "deal")?.iter().zip(&self.program.deals).map(|(deal, compiled)| {
            let deal = deal.as_object()?;
            let path = parse_path(deal.get("path")?.as_text()?).ok()?;
            let Target::Slot(slot) = self.layout.find(path.get(1..)?)? else { return None };
            let values = list(deal, "values")?.iter().map(|value| {
                let (kind, number) = self.layout.scalar(value)?;
                (kind == self.layout.slots.get(slot)?.kind).then_some(())?;
                Some(self.limits(slot).map_or(number, |(low, high)| clamp(number, low, high)))
            });
            Some(Deal { slot, key: compiled.key, values: values.collect::<Option<_>>()? })
        });
        dealt.collect()
    }

    fn element(&self, list: usize) -> Option<Kind> {
        Some(self.layout.lists.get(list)?.element())
    }

    /// Lower a literal or a derived value. Scheduled effects use the derived value at the time of scheduling.
    fn resolve(&mut self, value: &Value, derives: &Names, later: &mut [DeferredEffects]) -> Option<Typed> {
        let Some((source, kind)) = value.as_text().and_then(|name| derives.get(name)) else {
            let (kind, number) = self.layout.scalar(value)?;
            return Some(Typed { kind, scalar: Scalar::Constant(number) });
        };
        let mut column = *source;
        for schedule in later {
            let next = self.columns;
            column = *schedule.frozen_columns.entry(*source).or_insert_with(|| {
                schedule.frozen.push((next, Scalar::Column(column)));
                next
            });
            self.columns = self.columns.max(column + 1);
        }
        Some(Typed { kind: *kind, scalar: Scalar::Column(column) })
    }

    fn site(&mut self, effect: &Object, derives: &Names, later: &mut Vec<DeferredEffects>) -> Option<usize> {
        // Names in pending entries are already replaced by values.
        let mut size = Size::measure(&Value::from(effect.clone()));
        size.text += self.layout.texts.longest() * size.nodes;
        self.scheduled.nodes += size.nodes;
        self.scheduled.text += size.text;
        self.budget.steps += 1 + size.steps();
        let name = self.name(effect.get("id")?.as_text()?.into());
        let when = When::new(effect.members(), self.program.turn_minutes).ok()?;
        later.push(DeferredEffects::default());
        let mutations = self.mutations(list(effect, "effects")?, derives, later)?;
        let DeferredEffects { frozen, .. } = later.pop()?;
        Some(self.add_site(name, when, mutations, frozen))
    }

    /// Return the site of an entry that is pending at the start. It is never scheduled again.
    pub(super) fn pending(&mut self, entry: &Scheduled) -> Option<usize> {
        let size = entry.size();
        self.scheduled.nodes += size.nodes;
        self.scheduled.text += size.text;
        let name = self.name(Arc::clone(&entry.id));
        let mutations = self.mutations(entry.effect_sources()?, &Names::new(), &mut Vec::new())?;
        Some(self.add_site(name, When::At(entry.due), mutations, Vec::new()))
    }

    fn name(&mut self, id: Arc<str>) -> usize {
        let next = self.names.len();
        *self.names.entry(id).or_insert(next)
    }

    fn add_site(
        &mut self,
        name: usize,
        when: When,
        mutations: Vec<Mutation>,
        frozen: Vec<(usize, Scalar)>,
    ) -> usize {
        let (due, order) = (self.columns, self.columns + 1);
        self.columns += 2;
        self.sites.push(Site { name, when, due, order, mutations, frozen });
        self.sites.len() - 1
    }

    fn decay(&mut self, spec: &Object) -> Option<Vec<(usize, f64)>> {
        let Some(paths) = spec.get("negativity_budget")?.as_object()?.get("decay_per_turn") else {
            return Some(Vec::new());
        };
        let paths = paths.as_object()?;
        self.budget.changes(paths.len() as u64, 0);
        let decays = paths.iter().map(|(path, amount)| {
            let path = parse_path(path).ok()?;
            let Target::Slot(slot) = self.layout.find(path.get(1..)?)? else { return None };
            (self.layout.slots.get(slot)?.kind == Kind::Number).then_some((slot, amount.as_number()?))
        });
        decays.collect()
    }

    /// Return the maximum elements of an array for which all budgets suffice, or `None` if one never
    /// suffices.
    fn most_elements(&self) -> Option<usize> {
        let lists = self.layout.lists.len();
        let texts = self.layout.slots.iter().filter(|slot| slot.kind == Kind::Text).count();
        let longest = self.layout.texts.longest();
        let initial = Size::measure(self.tree);
        let nodes = MAX_STATE_NODES.checked_sub(initial.nodes + self.scheduled.nodes + 1)?;
        let text = initial.text + self.scheduled.text + texts * longest;
        let text = MAX_STATE_TEXT.checked_sub(text)?;
        let steps = TURN_LIMIT.checked_sub(self.budget.steps)?;
        (self.names.len() <= MAX_PENDING).then_some(())?;
        let most = [
            self.budget.elements,
            steps.checked_div(self.budget.steps_per_element),
            nodes.checked_div(lists).map(|nodes| nodes as u64),
            text.checked_div(lists * longest).map(|elements| elements as u64),
        ];
        let most = most.into_iter().flatten().min().unwrap_or(0);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        self.layout.lists.iter().all(|list| list.initial.len() <= most).then_some(most)
    }
}

fn interpreted_condition(scope: &Scope<'_>, logic: &Value) -> Option<Condition> {
    Some(Condition::Interpreted(Arc::new(Interpreted::new(logic, scope, None)?)))
}

fn interpreted_value(scope: &Scope<'_>, logic: &Value) -> Option<Typed> {
    let kind = scope.kind(logic)?;
    let interpreted = Interpreted::new(logic, scope, Some(kind))?;
    Some(Typed { kind, scalar: Scalar::Interpreted(Arc::new(interpreted)) })
}

/// Return the write of an operation if it is legal: arithmetic needs numbers, and a value replaces one of its
/// kind.
fn write_for(operation: &str, place: Kind, value: Kind) -> Option<Write> {
    let write = match operation {
        "set" => Write::Set,
        "inc" => Write::Add,
        "dec" => Write::Subtract,
        "mul" => Write::Multiply,
        _ => return None,
    };
    let fits = place == value && (write == Write::Set || place == Kind::Number);
    fits.then_some(write)
}

fn rules<'a>(spec: &'a Object, section: &str) -> Option<&'a [Value]> {
    crate::document::list_or_empty(spec.members(), section).ok()
}

fn list<'a>(object: &'a Object, key: &str) -> Option<&'a [Value]> {
    object.get(key)?.as_array().map(|items| items.as_slice())
}

/// Infer the element kinds of arrays from the literals that effects add.
fn infer_element_kinds(layout: &mut Layout, effects: &[Value], derives: Option<&Object>) -> Option<()> {
    for effect in effects {
        let effect = effect.as_object()?;
        if let Some(later) = effect.get("effects") {
            infer_element_kinds(layout, later.as_array()?, derives)?;
        }
        let (Some(path), Some(value)) = (effect.get("path"), effect.get("value")) else { continue };
        let path = parse_path(path.as_text()?).ok()?;
        let is_name =
            value.as_text().is_some_and(|name| derives.is_some_and(|names| names.contains_key(name)));
        let (Some(Target::List(list) | Target::Item(list, _)), false) = (layout.find(below(&path)), is_name)
        else {
            continue;
        };
        let kind = match value {
            Value::Array(items) => layout.items(items)?.0,
            scalar => Some(layout.scalar(scalar)?.0),
        };
        if let Some(kind) = kind {
            layout.admit(list, kind).then_some(())?;
        }
    }
    Some(())
}

fn below(path: &[Segment]) -> &[Segment] {
    path.get(1..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::examples::{plan_of, program};

    fn plan(state: &str, effects: &str) -> Option<Plan> {
        let actions =
            format!(r#"[{{"id": "x", "params": {{}}, "preconditions": {{}}, "effects": {effects}}}]"#);
        plan_of(&program(state, &[("actions", &actions)]))
    }

    #[test]
    fn a_state_with_a_variable_shape_has_no_plan() {
        assert!(plan(r#"{"n": 1, "list": [1]}"#, "[]").is_some());
        for (state, effect) in [
            (r#"{"n": null}"#, ""),
            (r#"{"list": [1, "x"]}"#, ""),
            (r#"{"n": 1}"#, r#"{"op": "set", "path": "state.n", "value": "x"}"#),
            (r#"{"n": 1}"#, r#"{"op": "set", "path": "state.m", "value": 1}"#),
            (r#"{"n": 1}"#, r#"{"op": "patch", "path": "state", "value": {"m": 1}}"#),
            (r#"{"list": [1]}"#, r#"{"op": "push", "path": "state.list", "value": "x"}"#),
            (r#"{"list": [1]}"#, r#"{"op": "set", "path": "state.list", "value": [true]}"#),
            (r#"{"n": 1}"#, r#"{"op": "push", "path": "state.n", "value": 1}"#),
        ] {
            assert!(plan(state, &format!("[{effect}]")).is_none(), "{state} {effect}");
        }
    }

    #[test]
    fn arrays_may_grow_almost_to_the_limits_of_the_state() {
        let most = plan(r#"{"list": [], "other": []}"#, "[]").unwrap().most_elements;
        assert!((4_900..5_000).contains(&most), "{most}");
    }

    #[test]
    fn pending_entries_count_towards_steps_and_size() {
        let line = r#"{"op": "addlog", "message": "m"}"#;
        let later = |lines: usize| {
            let lines = vec![line; lines].join(",");
            plan("{}", &format!(r#"[{{"op": "schedule", "id": "s", "after": 1, "effects": [{lines}]}}]"#))
        };
        assert!(later(3_000).is_some());
        assert!(later(4_000).is_none());
    }

    #[test]
    fn sites_with_one_name_share_an_entry() {
        let one =
            r#"{"op": "schedule", "id": "s", "after": 1, "effects": [{"op": "addlog", "message": "m"}]}"#;
        let sites = plan("{}", &format!("[{one}, {one}]")).unwrap().sites;
        assert_eq!(sites.iter().map(|site| site.name).collect::<Vec<_>>(), [0, 0]);
        assert_ne!(sites[0].due, sites[1].due);
    }

    #[test]
    fn only_rules_that_read_parameters_depend_on_them() {
        let depends = |preconditions: &str| {
            let action = format!(
                r#"[{{"id": "x", "params": {{"p": {{"type": "boolean"}}}}, "effects": [],
                     "preconditions": {preconditions}}}]"#
            );
            plan_of(&program(r#"{"n": 1, "list": [1]}"#, &[("actions", &action)])).unwrap().actions[0]
                .depends_on_params
        };
        for reading in [
            r#"{"var": "params.p"}"#,
            r#"{"!": [{"var": "params[\"p\"]"}]}"#,
            r#"{"var": {"cat": ["par", "ams.p"]}}"#,
            r#"{"some": [[{"var": ""}], {"var": {"cat": ["par", "ams.p"]}}]}"#,
        ] {
            assert!(depends(reading), "{reading}");
        }
        for other in
            [r#"{"var": "state.n"}"#, r#"{"some": [{"var": "state.list"}, {">": [{"var": ""}, 0]}]}"#]
        {
            assert!(!depends(other), "{other}");
        }
    }
}
