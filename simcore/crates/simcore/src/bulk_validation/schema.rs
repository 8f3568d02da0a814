//! Handwritten validator for `scenario_spec.schema.json` and `scenario_spec_1_1.schema.json`.
//!
//! Actions with parameters in paths or messages are left to the reference.
//!
//! Keys of an object are distinct. The required members are complete if their count is complete.

use super::shapes::{
    boolean, duration, id, integer_within, list, name, number, number_within, object, object_of, path, prose,
    rate, seed, text,
};
use super::spec::{
    Bound, Condition, Deal, Due, Effect, Kind, Move, Operation, Param, Rule, Solution, Spec, Step, Viewers,
};
use crate::json_node::{Member, Node};

const MOST: usize = 512;
const MOST_EFFECTS: usize = 4096;
const MOST_TURNS: f64 = 1e6;
const MOST_HORIZON: f64 = 1000.0;
const LEAST_WEIGHT: f64 = 0.05;
const MOST_WEIGHT: f64 = 0.3;

/// Return the parts of a scenario if it fits the schema.
pub(super) fn spec<'a>(root: &Node<'a>) -> Option<Spec<'a>> {
    let mut spec = Spec::default();
    let mut required = 9;
    for (key, value) in object(root)? {
        required -= 1;
        match *key {
            "spec_version" => match text(value, 0, 3)? {
                "1.0" => {}
                "1.1" => spec.is_later = true,
                _ => return None,
            },
            "id" => drop(id(value)?),
            "name" => drop(name(value)?),
            "seed" => drop(seed(value)?),
            "state" => spec.state = object(value)?,
            "actions" => spec.actions = list(value, 1, MOST, action)?,
            "random_events" => spec.events = list(value, 0, MOST, event)?,
            "loss_conditions" => spec.losses = list(value, 2, MOST, condition)?,
            "negativity_budget" => budget(value, &mut spec)?,
            _ => {
                required += 1;
                optional(key, value, &mut spec)?;
            }
        }
    }
    (required == 0 && (spec.is_later || !spec.has_later_keys)).then_some(spec)
}

fn optional<'a>(key: &str, value: &'a Node<'a>, spec: &mut Spec<'a>) -> Option<()> {
    match key {
        "win_conditions" => spec.wins = list(value, 0, MOST, condition)?,
        "entities" => {
            let entities = list(value, 0, MOST, entity)?;
            spec.has_later_keys |= entities.iter().any(|(_, is_later)| *is_later);
            spec.entities = entities.into_iter().map(|(id, _)| id).collect();
        }
        "clock" => match object(value)? {
            [("turn", turn)] => spec.turn = Some(duration(turn)?),
            _ => return None,
        },
        "horizon" => drop(integer_within(value, 1.0, MOST_HORIZON)?),
        "visibility" => spec.visibility = list(value, 0, MOST, viewers)?,
        "narrator_scope" => spec.granted = list(value, 0, MOST, grant)?,
        _ => {
            spec.has_later_keys = true;
            later(key, value, spec)?;
        }
    }
    Some(())
}

/// Read a key of version 1.1.
fn later<'a>(key: &str, value: &'a Node<'a>, spec: &mut Spec<'a>) -> Option<()> {
    match key {
        "bounds" => {
            let bounds = object_of(value, MOST)?.iter();
            spec.bounds = bounds.map(|(path, limits)| bound(path, limits)).collect::<Option<_>>()?;
        }
        "deal" => spec.deals = list(value, 0, 64, deal)?,
        "premise" => premise(value)?,
        "opening" => drop(text(value, 1, 10_000)?),
        "epilogues" => {
            spec.epilogues = object_of(value, 2 * MOST)?;
            spec.epilogues.iter().try_for_each(|(_, epilogue)| text(epilogue, 1, 10_000).map(drop))?;
        }
        "labels" => {
            spec.labels = object_of(value, MOST)?;
            spec.labels.iter().try_for_each(|(_, value)| label(value))?;
        }
        "solutions" => spec.solutions = list(value, 1, 64, solution)?,
        _ => return None,
    }
    Some(())
}

fn solution<'a>(value: &Node<'a>) -> Option<Solution<'a>> {
    let (mut own_id, mut steps) = (None, None);
    let mut when: &[Member<'a>] = &[];
    for (key, value) in object(value)? {
        match *key {
            "id" => own_id = Some(id(value)?),
            "when" => when = object(value)?,
            "steps" => steps = Some(list(value, 1, MOST, step)?),
            _ => return None,
        }
    }
    Some(Solution { id: own_id?, when, steps: steps? })
}

fn step<'a>(value: &Node<'a>) -> Option<Step<'a>> {
    let members = object(value)?;
    let find = |name: &str| members.iter().find(|(key, _)| *key == name).map(|(_, value)| value);
    let (when, otherwise) = (find("when"), find("otherwise"));
    let others = usize::from(when.is_some()) + usize::from(otherwise.is_some());
    let mut moves = vec![move_of(members, others)?];
    match otherwise {
        None | Some(Node::Text("wait" | "skip")) => {}
        Some(other) => moves.push(move_of(object(other)?, 0)?),
    }
    let when: &[Member<'a>] = if let Some(when) = when { object(when)? } else { &[] };
    Some(Step { when, moves })
}

/// Return the move of an object with some other members.
fn move_of<'a>(members: &'a [Member<'a>], others: usize) -> Option<Move<'a>> {
    let (mut action, mut params, mut known): (_, &[Member<'a>], _) = (None, &[], others);
    for (key, value) in members {
        match *key {
            "action" => action = Some(id(value)?),
            "params" => params = object_of(value, 16)?,
            _ => continue,
        }
        known += 1;
    }
    let is_scalar =
        |(_, value): &Member<'_>| matches!(value, Node::Number(_) | Node::Text(_) | Node::Bool(_));
    (known == members.len() && params.iter().all(is_scalar)).then_some(Move { action: action?, params })
}

fn bound<'a>(path: &'a str, limits: &Node<'a>) -> Option<Bound<'a>> {
    let mut bound = Bound { path, least: f64::NEG_INFINITY, most: f64::INFINITY };
    let limits = object(limits)?;
    for (key, value) in limits {
        match *key {
            "min" => bound.least = number(value)?,
            "max" => bound.most = number(value)?,
            _ => return None,
        }
    }
    (!limits.is_empty()).then_some(bound)
}

fn deal<'a>(value: &'a Node<'a>) -> Option<Deal<'a>> {
    match object(value)? {
        [("id", own_id), ("path", target), ("values", Node::Array(values))]
            if (2..=64).contains(&values.len()) =>
        {
            Some(Deal { id: id(own_id)?, path: path(target)?, values })
        }
        _ => None,
    }
}

fn premise(value: &Node<'_>) -> Option<()> {
    let Node::Object(members) = value else { return text(value, 1, 2048).map(drop) };
    let mut has_text = false;
    for (key, value) in *members {
        match (*key, value) {
            ("text", value) => has_text = text(value, 1, 2048).is_some().then_some(true)?,
            ("tone", value) => drop(text(value, 1, 2000)?),
            ("person", Node::Text("first" | "second" | "third"))
            | ("tense", Node::Text("past" | "present")) => {}
            _ => return None,
        }
    }
    has_text.then_some(())
}

fn label(value: &Node<'_>) -> Option<()> {
    let mut has_name = false;
    for (key, value) in object(value)? {
        match *key {
            "name" => has_name = name(value).is_some().then_some(true)?,
            "unit" => drop(text(value, 1, 64)?),
            "bands" => drop(list(value, 1, 32, band)?),
            _ => return None,
        }
    }
    has_name.then_some(())
}

fn band(value: &Node<'_>) -> Option<()> {
    match object(value)? {
        [("upto", Node::Number(_)), ("word", word)] | [("word", word)] => text(word, 1, 64).map(drop),
        _ => None,
    }
}

fn budget<'a>(value: &Node<'a>, spec: &mut Spec<'a>) -> Option<()> {
    let mut least = None;
    for (key, value) in object(value)? {
        match *key {
            "min_fail_rate" => least = Some(rate(value)?),
            "max_fail_rate" => spec.rates.1 = Some(rate(value)?),
            "decay_per_turn" => {
                spec.decay = object_of(value, MOST)?;
                spec.decay.iter().try_for_each(|(_, amount)| number(amount).map(drop))?;
            }
            "max_positive_drift" => drop(number_within(value, 0.0, f64::MAX)?),
            _ => return None,
        }
    }
    spec.rates.0 = least?;
    Some(())
}

/// Return the id of an entity, and true if it has a key of version 1.1.
fn entity<'a>(value: &Node<'a>) -> Option<(&'a str, bool)> {
    let (mut own_id, mut is_later) = (None, false);
    for (key, value) in object(value)? {
        match *key {
            "id" => own_id = Some(id(value)?),
            "name" | "kind" => drop(name(value)?),
            "description" => drop(prose(value)?),
            "playable" => drop(boolean(value)?),
            "voice" | "manner" | "wants" | "knows" | "secret" => {
                is_later = text(value, 1, 2000).is_some().then_some(true)?;
            }
            _ => return None,
        }
    }
    Some((own_id?, is_later))
}

fn action<'a>(value: &Node<'a>) -> Option<Rule<'a>> {
    let (mut own_id, mut params, mut when, mut effects) = (None, None, None, None);
    let mut derives: &[Member<'a>] = &[];
    for (key, value) in object(value)? {
        match *key {
            "id" => own_id = Some(id(value)?),
            "name" => drop(name(value)?),
            "description" => drop(prose(value)?),
            "params" => {
                let named = object_of(value, 16)?.iter();
                params =
                    Some(named.map(|(name, value)| Some((*name, param(value)?))).collect::<Option<_>>()?);
            }
            "preconditions" => when = Some(object(value)?),
            "derives" => derives = object_of(value, 64)?,
            "effects" => effects = Some(effects_of(value, 0)?),
            _ => return None,
        }
    }
    Some(Rule { id: own_id?, params: params?, when: when?, derives, effects: effects?, duration: None })
}

fn event<'a>(value: &Node<'a>) -> Option<Rule<'a>> {
    let (mut own_id, mut when, mut effects, mut weight, mut lasts) = (None, None, None, None, None);
    let mut derives: &[Member<'a>] = &[];
    for (key, value) in object(value)? {
        match *key {
            "id" => own_id = Some(id(value)?),
            "name" => drop(name(value)?),
            "weight" => weight = Some(number_within(value, LEAST_WEIGHT, MOST_WEIGHT)?),
            "when" => when = Some(object(value)?),
            "derives" => derives = object_of(value, 64)?,
            "effects" => effects = Some(effects_of(value, 0)?),
            "duration" => lasts = Some(duration(value)?),
            _ => return None,
        }
    }
    weight?;
    Some(Rule { id: own_id?, params: Vec::new(), when: when?, derives, effects: effects?, duration: lasts })
}

fn condition<'a>(value: &Node<'a>) -> Option<Condition<'a>> {
    let (mut own_id, mut when) = (None, None);
    for (key, value) in object(value)? {
        match *key {
            "id" => own_id = Some(id(value)?),
            "when" => when = Some(object(value)?),
            "message" => drop(prose(value)?),
            _ => return None,
        }
    }
    Some(Condition { id: own_id?, when: when? })
}

fn param<'a>(value: &Node<'a>) -> Option<Param<'a>> {
    let mut kind = None;
    let (mut minimum, mut maximum, mut options, mut max_length) = (None, None, None, None);
    for (key, value) in object(value)? {
        match *key {
            "type" => kind = Some(self::kind(value)?),
            "minimum" => minimum = Some(number(value)?),
            "maximum" => maximum = Some(number(value)?),
            "enum" => {
                let Node::Array(items) = value else { return None };
                let scalar =
                    |item: &Node<'_>| matches!(item, Node::Number(_) | Node::Text(_) | Node::Bool(_));
                options =
                    Some(*items).filter(|_| (1..=256).contains(&items.len()) && items.iter().all(scalar));
                options?;
            }
            "maxLength" => max_length = Some(integer_within(value, 1.0, 1000.0)?),
            _ => return None,
        }
    }
    Some(Param { kind: kind?, minimum, maximum, options, max_length })
}

fn kind(value: &Node<'_>) -> Option<Kind> {
    match value {
        Node::Text("integer") => Some(Kind::Integer),
        Node::Text("number") => Some(Kind::Number),
        Node::Text("string") => Some(Kind::Text),
        Node::Text("boolean") => Some(Kind::Boolean),
        _ => None,
    }
}

fn effects_of<'a>(value: &Node<'a>, least: usize) -> Option<Vec<Effect<'a>>> {
    list(value, least, MOST_EFFECTS, effect)
}

fn effect<'a>(value: &Node<'a>) -> Option<Effect<'a>> {
    let (mut operator, mut target, mut written) = (None, None, None);
    let (mut message, mut own_id, mut at, mut after, mut effects) = (None, None, None, None, None);
    let members = object(value)?;
    for (key, value) in members {
        match (*key, value) {
            ("op", Node::Text(name)) => operator = Some(*name),
            ("path", value) => target = Some(path(value)?),
            ("value", value) => written = Some(value),
            ("message", value) => message = Some(text(value, 1, 4000)?),
            ("id", value) => own_id = Some(id(value)?),
            ("at", value) => at = Some(due(value)?),
            ("after", value) => after = Some(due(value)?),
            ("effects", value) => effects = Some(effects_of(value, 1)?),
            _ => return None,
        }
    }
    // The expected number of members, and each required member: other members cannot exist.
    match (operator?, members.len()) {
        ("addlog", 2) => message.map(|_| Effect::AddLog),
        ("schedule", _) => {
            let known = 3 + usize::from(at.is_some()) + usize::from(after.is_some());
            own_id.filter(|_| members.len() == known)?;
            Some(Effect::Schedule { at, after, effects: effects? })
        }
        ("pop", 2) => Some(Effect::Write { operation: Operation::Append, path: target?, value: None }),
        (name, 3) => {
            let operation = operation(name, written?)?;
            Some(Effect::Write { operation, path: target?, value: written })
        }
        _ => None,
    }
}

/// Return an operation if it accepts this value.
fn operation(name: &str, value: &Node<'_>) -> Option<Operation> {
    match (name, value) {
        ("set", _) => Some(Operation::Set),
        ("inc" | "dec" | "mul", Node::Number(_) | Node::Text(_)) => Some(Operation::Calculate),
        ("patch", Node::Object(_) | Node::Text(_)) => Some(Operation::Patch),
        ("push", _) => Some(Operation::Append),
        _ => None,
    }
}

fn due<'a>(value: &Node<'a>) -> Option<Due<'a>> {
    match value {
        Node::Text(_) => duration(value).map(Due::Duration),
        value => integer_within(value, 1.0, MOST_TURNS).map(|_| Due::Turns),
    }
}

fn viewers<'a>(value: &Node<'a>) -> Option<Viewers<'a>> {
    match object(value)? {
        [("path", seen), ("to", Node::Text(to @ ("public" | "hidden")))] => {
            Some(Viewers { path: path(seen)?, to: Vec::new(), is_public: *to == "public" })
        }
        [("path", seen), ("to", to)] => {
            Some(Viewers { path: path(seen)?, to: list(to, 1, 64, id)?, is_public: false })
        }
        _ => None,
    }
}

fn grant<'a>(value: &Node<'a>) -> Option<&'a str> {
    let (mut target, mut has_operations) = (None, false);
    for (key, value) in object(value)? {
        match *key {
            "path" => target = Some(path(value)?),
            "ops" => has_operations = list(value, 1, usize::MAX, writes).is_some().then_some(true)?,
            "max_magnitude" => drop(number_within(value, 0.0, f64::MAX)?),
            _ => return None,
        }
    }
    target.filter(|_| has_operations)
}

fn writes(value: &Node<'_>) -> Option<()> {
    matches!(value, Node::Text("set" | "inc" | "dec" | "mul" | "patch" | "push" | "pop")).then_some(())
}
