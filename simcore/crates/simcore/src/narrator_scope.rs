//! Narrator scope: the changes that the narrator may make. The scenario grants them, or its own rules are
//! precedents.

use std::collections::{BTreeMap, BTreeSet};

use crate::bounds::Bounds;
use crate::canonical_json;
use crate::change_log::Failure;
use crate::document;
use crate::error::{Code, Error, Result};
use crate::json_node::Members;
use crate::limits::{forbidden_key, looks_like_code};
use crate::paths::{Segment, format_path, parse_path, parse_state_path, split_variable};
use crate::value::{Value, object};
use crate::variants::list_variants;

const MAX_CHANGES: usize = 64;
const OPERATIONS: [&str; 7] = ["set", "inc", "dec", "mul", "patch", "push", "pop"];
const MEMBERS: [&str; 3] = ["op", "path", "value"];
/// Maximum number of values in scope that a message lists.
const SHOWN_VALUES: usize = 8;
const SHOWN_VALUE: usize = 60;
const SHOWN_PATH: usize = 80;

/// The narrator's scope in a scenario.
#[derive(Debug)]
pub(crate) enum Scope {
    /// The entries of `narrator_scope`. A change is in scope if one entry permits it.
    Grants(Vec<Grant>),
    /// The default: writes of actions and events with the same path and operation.
    ///
    /// Only literals are precedents, because the result of a derived value is unknown.
    Precedents(BTreeMap<String, Precedent>),
}

/// A grant of the scenario for a path and all paths below it.
#[derive(Debug)]
pub(crate) struct Grant {
    path: Vec<Segment>,
    operations: BTreeSet<&'static str>,
    limit: Option<f64>,
}

/// The writes of rules to a path.
#[derive(Debug, Default)]
pub(crate) struct Precedent {
    /// The largest number that is added or subtracted.
    amount: Option<f64>,
    /// Written values by operation, in canonical form.
    values: BTreeMap<&'static str, BTreeSet<String>>,
}

/// A change that passed the basic checks.
struct Change<'a> {
    operation: &'static str,
    path: Vec<Segment>,
    /// The canonical text of the path.
    text: String,
    /// Null if absent.
    value: &'a Value,
}

impl Scope {
    pub(crate) fn new(spec: Members<'_, Value>) -> Result<Self> {
        match spec.get("narrator_scope") {
            Some(entries) => {
                Ok(Self::Grants(document::list(entries)?.iter().map(Grant::new).collect::<Result<_>>()?))
            }
            None => Ok(Self::Precedents(precedents(spec)?)),
        }
    }

    /// Return a scope without permissions.
    pub(crate) fn empty() -> Self {
        Self::Grants(Vec::new())
    }

    /// Return a failure for each change that is not permitted. The list is empty if all are.
    pub(crate) fn find_violations(&self, changes: &Value, bounds: &Bounds) -> Vec<Failure> {
        let Some(changes) = changes.as_array().filter(|changes| changes.len() <= MAX_CHANGES) else {
            let message = format!("state_changes is a list of at most {MAX_CHANGES} changes");
            return vec![Failure::from_error(&invalid(&message), format_args!("/state_changes"))];
        };
        // Paths that an earlier change of the list calculates.
        let mut calculated = BTreeSet::new();
        let mut reasons = Vec::new();
        for (index, change) in changes.iter().enumerate() {
            if let Err(error) = self.check(change, bounds, &mut calculated) {
                reasons.push(Failure::from_error(&error, format_args!("/state_changes/{index}")));
            }
        }
        reasons
    }

    /// Check that a change is well formed, harmless and in scope.
    fn check(&self, change: &Value, bounds: &Bounds, calculated: &mut BTreeSet<String>) -> Result<()> {
        let change = Change::parse(change)?;
        check_bounds(bounds, &change).map_err(|error| invalid(error.message()))?;
        match self {
            Self::Grants(grants) => check_grants(grants, &change)?,
            Self::Precedents(precedents) => check_precedents(precedents, &change)?,
        }
        if is_arithmetic(change.operation) && !calculated.insert(change.text.clone()) {
            // Without this check many small changes could add up to a large one that is out of scope.
            let message = "may change once in a list; combine its changes into one";
            return Err(out_of_scope(format!("the number {} {message}", change.display_path())));
        }
        Ok(())
    }
}

/// Reject a value that is not a number at a bounded path, and one that replaces bounded numbers.
fn check_bounds(bounds: &Bounds, change: &Change<'_>) -> Result<()> {
    match (change.operation, change.value) {
        ("set", value) => bounds.clamp(&change.text, value).map(drop),
        ("patch", Value::Object(members)) => members.iter().try_for_each(|(key, value)| {
            let mut member = change.path.clone();
            member.push(Segment::Key(key.clone()));
            bounds.clamp(&format_path(&member), value).map(drop)
        }),
        _ => Ok(()),
    }
}

// --- grants of the scenario ---

impl Grant {
    fn new(entry: &Value) -> Result<Self> {
        let entry = document::object(entry)?;
        let operations = document::list(document::field(entry, "ops")?)?;
        Ok(Self {
            path: parse_path(document::text(document::field(entry, "path")?)?)?,
            operations: operations
                .iter()
                .map(|name| operation_from_name(document::text(name)?).ok_or_else(unknown_operation))
                .collect::<Result<_>>()?,
            limit: entry.get("max_magnitude").map(document::number).transpose()?,
        })
    }
}

fn check_grants(grants: &[Grant], change: &Change<'_>) -> Result<()> {
    let covering = || grants.iter().filter(|grant| change.path.starts_with(&grant.path));
    let done = change.effective_operation();
    let allowing: Vec<&Grant> = covering().filter(|grant| grant.operations.contains(done)).collect();
    if allowing.is_empty() {
        let operations = covering().flat_map(|grant| grant.operations.iter().copied()).collect();
        return Err(not_among(&operations, done, change));
    }
    let limits: Option<Vec<f64>> = allowing.iter().map(|grant| grant.limit).collect();
    match limits {
        Some(limits) => check_magnitude(change, limits.into_iter().fold(0.0, f64::max)),
        None => Ok(()),
    }
}

// --- precedents in the rules of the scenario ---

fn precedents(spec: Members<'_, Value>) -> Result<BTreeMap<String, Precedent>> {
    let mut known = BTreeMap::new();
    let decisive = end_reads(spec)?;
    let variants = list_variants(spec)?;
    for section in ["actions", "random_events"] {
        let rules = document::list_or_empty(spec, section)?.iter().enumerate().flat_map(|(index, rule)| {
            let own = variants.get(index).filter(|own| section == "actions" && !own.is_empty());
            own.map_or_else(|| vec![rule], |own| own.iter().map(|variant| &variant.action).collect())
        });
        for rule in rules {
            let rule = document::object(rule)?;
            let derives = rule.get("derives").map(document::object).transpose()?;
            let mut pending: Vec<&Value> =
                document::list(document::field(rule, "effects")?)?.iter().collect();
            while let Some(effect) = pending.pop() {
                let effect = document::object(effect)?;
                pending.extend(document::list_or_empty(effect, "effects")?);
                note_precedent(effect, derives, &decisive, &mut known)?;
            }
        }
    }
    Ok(known)
}

/// Return the paths below the state that the end conditions read, as texts; an empty one is all of it.
///
/// Before version 1.1, they are in scope as any other path.
fn end_reads(spec: Members<'_, Value>) -> Result<Vec<Vec<String>>> {
    let mut found = Vec::new();
    if spec.get("spec_version").map(document::text).transpose()? == Some("1.1") {
        for section in ["loss_conditions", "win_conditions"] {
            for end in document::list_or_empty(spec, section)? {
                note_reads(document::field(document::object(end)?, "when")?, &mut found);
            }
        }
    }
    Ok(found)
}

/// Add the variables of the state that an expression reads or tests for.
fn note_reads(logic: &Value, found: &mut Vec<Vec<String>>) {
    match logic {
        Value::Array(items) => items.iter().for_each(|item| note_reads(item, found)),
        Value::Object(members) => {
            for (operator, operand) in members.iter() {
                note_reads(operand, found);
                match &**operator {
                    "var" => {
                        let name = operand.as_array().map_or(Some(operand), |items| items.first());
                        found.extend(name.and_then(Value::as_text).and_then(below_state));
                    }
                    "missing" | "missing_some" => note_texts(operand, found),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Add the variables of the state among the texts of an operand.
fn note_texts(operand: &Value, found: &mut Vec<Vec<String>>) {
    match operand {
        Value::Array(items) => items.iter().for_each(|item| note_texts(item, found)),
        operand => found.extend(operand.as_text().and_then(below_state)),
    }
}

/// Return the segments of a variable below the state; `None` if it is another variable.
fn below_state(variable: &str) -> Option<Vec<String>> {
    match split_variable(variable).as_slice() {
        [] => Some(Vec::new()),
        [Segment::Key(root), below @ ..] if &**root == "state" => Some(segment_texts(below)),
        _ => None,
    }
}

fn segment_texts(path: &[Segment]) -> Vec<String> {
    let text = |segment: &Segment| match segment {
        Segment::Key(name) | Segment::Digits(name, _) => name.to_string(),
        Segment::Index(index) => index.to_string(),
    };
    path.iter().map(text).collect()
}

/// Return true if a path is one of some others, above one or below one.
fn overlaps_any(path: &[Segment], others: &[Vec<String>]) -> bool {
    let own = segment_texts(path.get(1..).unwrap_or_default());
    others.iter().any(|other| own.iter().zip(other).all(|(one, another)| one == another))
}

/// Record the write of an effect if its value is known, and no end condition reads its path.
fn note_precedent(
    effect: Members<'_, Value>,
    derives: Option<Members<'_, Value>>,
    decisive: &[Vec<String>],
    known: &mut BTreeMap<String, Precedent>,
) -> Result<()> {
    let Some(path) = effect.get("path") else { return Ok(()) };
    let value = effect.get("value").unwrap_or(&Value::Null);
    let is_derived =
        value.as_text().is_some_and(|name| derives.is_some_and(|rules| rules.get(name).is_some()));
    let path = parse_path(document::text(path)?)?;
    if is_derived || overlaps_any(&path, decisive) {
        return Ok(());
    }
    let operation =
        operation_from_name(document::text(document::field(effect, "op")?)?).ok_or_else(unknown_operation)?;
    let precedent = known.entry(format_path(&path)).or_default();
    if is_additive(operation) {
        let amount = document::number(value)?.abs();
        precedent.amount = Some(precedent.amount.map_or(amount, |largest| largest.max(amount)));
    } else {
        precedent.values.entry(operation).or_default().extend(required_values(operation, value)?);
    }
    Ok(())
}

fn check_precedents(precedents: &BTreeMap<String, Precedent>, change: &Change<'_>) -> Result<()> {
    let nothing = Precedent::default();
    let precedent = precedents.get(&change.text).unwrap_or(&nothing);
    if let Some(amount) = precedent.amount.filter(|_| is_additive(change.operation)) {
        return check_magnitude(change, amount);
    }
    let Some(known) = precedent.values.get(change.operation) else {
        let counting = precedent.amount.iter().flat_map(|_| ["inc", "dec"]);
        let operations = precedent.values.keys().copied().chain(counting).collect();
        return Err(not_among(&operations, change.operation, change));
    };
    if required_values(change.operation, change.value)?.is_subset(known) {
        return Ok(());
    }
    let (operation, path, listed) = (change.operation, change.display_path(), format_list(known));
    let message = format!("the narrator may {operation} {path} only with what the scenario does: {listed}");
    Err(out_of_scope(message))
}

/// Return the values that need a precedent: each member of a patch, or the value. `pop` needs none.
fn required_values(operation: &str, value: &Value) -> Result<BTreeSet<String>> {
    match value {
        _ if operation == "pop" => Ok(BTreeSet::new()),
        Value::Object(members) if operation == "patch" && !members.is_empty() => {
            members.iter().map(|(key, item)| canonical_json::text(&object([(key, item.clone())]))).collect()
        }
        value => Ok(BTreeSet::from([canonical_json::text(value)?])),
    }
}

// --- changes ---

impl<'a> Change<'a> {
    fn parse(change: &'a Value) -> Result<Self> {
        let members = change
            .as_object()
            .filter(|members| members.keys().all(|key| MEMBERS.contains(&&**key)))
            .ok_or_else(|| invalid("a change is an object of op, path and value"))?;
        let operation = members
            .get("op")
            .and_then(Value::as_text)
            .and_then(operation_from_name)
            .ok_or_else(|| invalid(&format!("op must be one of {}", OPERATIONS.join(", "))))?;
        let text = members
            .get("path")
            .and_then(Value::as_text)
            .ok_or_else(|| invalid("path must be a string, such as state.a"))?;
        let path = parse_state_path(text)?;
        if operation == "set" && path.len() == 1 {
            let message = "the whole state cannot be set; name a key of it, such as state.a";
            return Err(Error::new(Code::BadPath, message));
        }
        let value = members.get("value");
        check_kind(operation, value)?;
        let value = value.unwrap_or(&Value::Null);
        if let Some(key) = forbidden_key(value) {
            let message =
                format!("the key '{key}' is dangerous to clients in other languages; choose another");
            return Err(Error::new(Code::ForbiddenKey, message));
        }
        if looks_like_code(value) {
            let message = "values are literals; an operation or a template is none";
            return Err(Error::new(Code::CodeInValue, message));
        }
        Ok(Self { operation, text: format_path(&path), path, value })
    }

    /// Return the effective operation: adding a negative number is a subtraction.
    fn effective_operation(&self) -> &'static str {
        match (self.operation, self.value) {
            ("inc", Value::Number(amount)) if *amount < 0.0 => "dec",
            ("dec", Value::Number(amount)) if *amount < 0.0 => "inc",
            (operation, _) => operation,
        }
    }

    fn display_path(&self) -> String {
        let shown: String = self.text.chars().take(SHOWN_PATH).collect();
        format!("'{shown}'")
    }
}

fn check_kind(operation: &str, value: Option<&Value>) -> Result<()> {
    match (operation, value) {
        ("pop", None | Some(Value::Null)) => Ok(()),
        ("pop", Some(_)) => Err(invalid("pop takes no value")),
        (_, None) => Err(invalid(&format!("{operation} needs a value"))),
        (_, Some(value)) if is_arithmetic(operation) && value.as_number().is_none() => {
            Err(invalid(&format!("the value of {operation} must be a number")))
        }
        ("patch", Some(value)) if value.as_object().is_none() => {
            Err(invalid("the value of patch must be an object"))
        }
        _ => Ok(()),
    }
}

fn operation_from_name(name: &str) -> Option<&'static str> {
    OPERATIONS.into_iter().find(|operation| *operation == name)
}

/// Return True if an operation adds to a number or subtracts from it.
fn is_additive(operation: &str) -> bool {
    matches!(operation, "inc" | "dec")
}

/// Return True if an operation calculates a number from the old one.
fn is_arithmetic(operation: &str) -> bool {
    is_additive(operation) || operation == "mul"
}

fn unknown_operation() -> Error {
    document::invalid("an effect has an unknown op")
}

fn invalid(message: &str) -> Error {
    Error::new(Code::ChangeInvalid, message)
}

// --- messages ---

fn out_of_scope(message: String) -> Error {
    Error::new(Code::OutOfScope, message)
}

fn not_among(operations: &BTreeSet<&str>, operation: &str, change: &Change<'_>) -> Error {
    let allowed: Vec<&str> = OPERATIONS.into_iter().filter(|name| operations.contains(name)).collect();
    let mend = if allowed.is_empty() {
        "leave this change out".into()
    } else {
        format!("it may: {}", allowed.join(", "))
    };
    out_of_scope(format!("the narrator may not {operation} {}; {mend}", change.display_path()))
}

fn check_magnitude(change: &Change<'_>, limit: f64) -> Result<()> {
    if magnitude(change.value) <= limit {
        return Ok(());
    }
    let (operation, path, limit) =
        (change.operation, change.display_path(), canonical_json::number_text(limit));
    Err(out_of_scope(format!("the narrator may {operation} {path} with numbers within ±{limit} only")))
}

/// Return the largest absolute number in a value.
fn magnitude(value: &Value) -> f64 {
    match value {
        Value::Number(number) => number.abs(),
        Value::Array(items) => items.iter().map(magnitude).fold(0.0, f64::max),
        Value::Object(members) => members.values().map(magnitude).fold(0.0, f64::max),
        Value::Null | Value::Bool(_) | Value::Text(_) => 0.0,
    }
}

fn format_list(values: &BTreeSet<String>) -> String {
    let mut shown: Vec<String> = values.iter().take(SHOWN_VALUES).map(|text| shorten(text)).collect();
    if values.len() > SHOWN_VALUES {
        shown.push("…".into());
    }
    shown.join(", ")
}

fn shorten(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_VALUE).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
