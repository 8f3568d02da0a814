//! Lowering of JSONLogic to typed expressions. `None` leaves an expression to the interpreter, which supports
//! all of JSONLogic.
//!
//! A lowered expression has the same value as under the interpreter in every run. If the interpreter would
//! fail, the lowered form is known to fail too (see `simd`), and the interpreter plays the run again.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::paths::{Segment, split_variable};
use crate::value::Value;

use super::layout::{Layout, Target};
use super::types::{Condition, Fold, Kind, Operation, Relation, Scalar, Source, Stage};

/// A lowered value and its kind.
pub(super) struct Typed {
    pub(super) kind: Kind,
    pub(super) scalar: Scalar,
}

/// Columns and kinds of the names of a rule.
pub(super) type Names = BTreeMap<Arc<str>, (usize, Kind)>;

/// Names that an expression may read.
pub(super) struct Scope<'a> {
    pub(super) layout: &'a Layout,
    pub(super) turn: usize,
    pub(super) params: &'a Names,
    pub(super) derives: &'a Names,
    pub(super) entities: &'a Value,
    /// Inside an iteration: the kind of the elements.
    pub(super) element: Option<Kind>,
    /// Inside a fold: the kind of its result.
    pub(super) accumulator: Option<Kind>,
    /// Fuel for each further element of the arrays.
    pub(super) steps_per_element: &'a std::cell::Cell<u64>,
}

/// Operators that return true or false.
const TRUTHS: [&str; 14] =
    ["!", "!!", "==", "!=", "===", "!==", "<", "<=", ">", ">=", "in", "some", "none", "all"];
/// Operators that accept a single argument without a list.
const TAKE_ONE: [&str; 11] = ["var", "missing", "!", "!!", "+", "-", "*", "/", "%", "min", "max"];

/// Maximum size of an operand that is duplicated: each nesting level would double it again.
const MOST_REPEATED: usize = 32;
/// Maximum arguments of an expression that is lowered to nested choices, because they are processed
/// recursively.
const MOST_CHOICES: usize = 24;
/// Maximum number of texts for comparisons instead of a search.
const MOST_TEXTS: usize = 64;

/// Return the maximum steps of an expression, with empty iterations: its fuel, and one step for 16 things
/// that it creates.
pub(super) fn steps(logic: &Value) -> u64 {
    match logic {
        Value::Array(items) => {
            items.iter().map(|item| 1 + steps(item)).sum::<u64>() + items.len().div_ceil(16) as u64 + 1
        }
        // A search costs a step for 1,024 characters of at most 65,536; a new text costs a step for 16.
        Value::Object(members) => {
            members.values().map(steps).sum::<u64>() + 1 + 64 * u64::from(members.contains_key("in"))
        }
        Value::Text(text) => 2 + text.len() as u64 / 16,
        _ => 1,
    }
}

impl Scope<'_> {
    /// Lower an expression as a condition.
    pub(super) fn condition(&self, logic: &Value) -> Option<Condition> {
        let Some((name, operand)) = operation(logic) else {
            return match logic {
                Value::Object(members) if members.is_empty() => Some(Condition::Constant(true)),
                Value::Array(_) | Value::Object(_) => None,
                scalar => Some(Condition::Constant(crate::jsonlogic::truthy(scalar))),
            };
        };
        match (name, arguments(name, operand)?) {
            ("and" | "or", []) => Some(Condition::Constant(false)),
            ("and", items) => Some(Condition::All(self.conditions(items)?)),
            ("or", items) => Some(Condition::Any(self.conditions(items)?)),
            ("!!", [item]) => self.condition(item),
            ("!", [item]) => Some(Condition::Not(Box::new(self.condition(item)?))),
            ("if" | "?:", items) => self.branches(items),
            ("==" | "!=" | "===" | "!==" | "<" | "<=" | ">" | ">=", items @ [_, _, ..]) => {
                self.chain(name, items)
            }
            ("in", [needle, haystack]) => self.contains(needle, haystack),
            ("some", [source, condition]) => {
                let (source, condition) = self.each(source, condition)?;
                Some(Condition::Some { source, condition })
            }
            ("none", [source, condition]) => {
                let (source, condition) = self.each(source, condition)?;
                Some(Condition::Not(Box::new(Condition::Some { source, condition })))
            }
            ("all", [source, condition]) => {
                let (source, condition) = self.each(source, condition)?;
                Some(Condition::Every { source, condition })
            }
            ("missing", paths) => self.missing(paths),
            ("var", [path]) if let Some(list) = self.list(path) => {
                self.iterates(1); // the result of an expression is charged too
                Some(Condition::NotEmpty(list))
            }
            _ if TRUTHS.contains(&name) => None,
            _ => self.value(logic).map(|value| Condition::True(value.scalar)),
        }
    }

    /// Lower `missing` as a condition: True if a path leads to null, to "" or nowhere.
    fn missing(&self, paths: &[Value]) -> Option<Condition> {
        let absent = |path: &Value| match split_variable(path.as_text()?).as_slice() {
            [Segment::Key(root), below @ ..] if &**root == "state" && self.element.is_none() => {
                match self.layout.find(below) {
                    None => Some(Condition::Constant(true)),
                    Some(Target::Item(..)) => None,
                    Some(Target::List(_) | Target::Object(_)) => Some(Condition::Constant(false)),
                    Some(Target::Slot(_)) => {
                        let value = self.variable(path)?;
                        Some(match value.kind {
                            Kind::Text => any_of(&value.scalar, std::iter::once(0.0)),
                            Kind::Number | Kind::Bool => Condition::Constant(false),
                        })
                    }
                }
            }
            _ => None,
        };
        Some(Condition::Any(paths.iter().map(absent).collect::<Option<_>>()?))
    }

    fn conditions(&self, items: &[Value]) -> Option<Vec<Condition>> {
        items.iter().map(|item| self.condition(item)).collect()
    }

    fn branches(&self, items: &[Value]) -> Option<Condition> {
        (items.len() <= MOST_CHOICES).then_some(())?;
        match items {
            [] => Some(Condition::Constant(false)),
            [otherwise] => self.condition(otherwise),
            [condition, then, rest @ ..] => {
                let condition = self.condition(condition)?;
                (condition.size() <= MOST_REPEATED).then_some(())?;
                let not = Condition::Not(Box::new(condition.clone()));
                Some(Condition::Any(vec![
                    Condition::All(vec![condition, self.condition(then)?]),
                    Condition::All(vec![not, self.branches(rest)?]),
                ]))
            }
        }
    }

    fn chain(&self, name: &str, items: &[Value]) -> Option<Condition> {
        let items: Vec<Typed> = items.iter().map(|item| self.value(item)).collect::<Option<_>>()?;
        let between = items.get(1..items.len() - 1).unwrap_or_default();
        between.iter().all(|item| item.scalar.size() <= MOST_REPEATED).then_some(())?;
        let pairs: Vec<Condition> = items
            .windows(2)
            .map(|pair| match pair {
                [a, b] => compare(name, a, b),
                _ => None,
            })
            .collect::<Option<_>>()?;
        Some(if pairs.len() == 1 { pairs.into_iter().next()? } else { Condition::All(pairs) })
    }

    fn contains(&self, needle: &Value, haystack: &Value) -> Option<Condition> {
        let needle = self.value(needle)?;
        if let Value::Array(items) = haystack {
            if !needle.scalar.is_simple() {
                return None; // it may fail in every comparison
            }
            let same = items.iter().map(|item| self.layout.scalar(item)).collect::<Option<Vec<_>>>()?;
            let same = same.into_iter().filter(|(kind, _)| *kind == needle.kind);
            return Some(any_of(&needle.scalar, same.map(|(_, number)| number)));
        }
        if let Some(list) = self.list_of(haystack) {
            self.iterates(1);
            let never = self.layout.lists.get(list)?.element() != needle.kind;
            return match (never, needle.scalar.is_simple()) {
                (true, true) => Some(Condition::Constant(false)),
                (true, false) => None,
                (false, _) => Some(Condition::Contains { list, needle: needle.scalar }),
            };
        }
        let haystack = self.value(haystack)?;
        if needle.kind != Kind::Text || haystack.kind != Kind::Text {
            return None;
        }
        let texts = &self.layout.texts;
        match (&needle.scalar, &haystack.scalar) {
            (Scalar::Constant(part), whole) if whole.is_simple() => {
                let part = texts.text(*part)?;
                any_text(whole, texts.numbers_where(|whole| whole.contains(&**part)))
            }
            (part, Scalar::Constant(whole)) if part.is_simple() => {
                let whole = texts.text(*whole)?;
                any_text(part, texts.numbers_where(|part| whole.contains(part)))
            }
            _ => None,
        }
    }

    /// Lower an expression as a value.
    pub(super) fn value(&self, logic: &Value) -> Option<Typed> {
        let Some((name, operand)) = operation(logic) else {
            let (kind, number) = self.layout.scalar(logic)?;
            return Some(Typed { kind, scalar: Scalar::Constant(number) });
        };
        match (name, arguments(name, operand)?) {
            ("var", [path]) => self.variable(path),
            // A literal default has no effect, because the variable always exists.
            ("var", [path, default]) if operation(default).is_none() && !is_container(default) => {
                self.variable(path)
            }
            ("if" | "?:", items) => self.choice(items),
            ("and", items) => self.connective(items, false),
            ("or", items) => self.connective(items, true),
            ("+", items) => self.calculation(Operation::Add, items),
            ("*", items) => self.calculation(Operation::Multiply, items),
            ("-", [item]) => Some(number(Scalar::Negative(Box::new(self.number(item, false)?)))),
            ("-", items) => self.calculation(Operation::Subtract, items),
            ("/", items @ [_, _, ..]) => self.calculation(Operation::Divide, items),
            ("%", items @ [_, _, ..]) => self.calculation(Operation::Remainder, items),
            ("min", items) => self.calculation(Operation::Least, items),
            ("max", items) => self.calculation(Operation::Greatest, items),
            ("reduce", [source, body, start]) => self.fold(source, body, start),
            _ if TRUTHS.contains(&name) => {
                let condition = self.condition(logic)?;
                Some(Typed { kind: Kind::Bool, scalar: Scalar::Truth(Box::new(condition)) })
            }
            _ => None,
        }
    }

    /// Return the kind of an expression's value if it is known without lowering.
    pub(super) fn kind(&self, logic: &Value) -> Option<Kind> {
        let Some((name, operand)) = operation(logic) else { return Some(self.layout.scalar(logic)?.0) };
        match (name, operand) {
            ("+" | "-" | "*" | "/" | "%" | "min" | "max", _) => Some(Kind::Number),
            ("cat" | "substr", _) => Some(Kind::Text),
            ("and" | "or", Value::Array(items)) => self.common_kind(items.iter()),
            ("if" | "?:", Value::Array(items)) => {
                let (last, _) = items.split_last()?;
                let then = items.iter().skip(1).step_by(2);
                self.common_kind(then.chain(std::iter::once(last)))
            }
            _ if TRUTHS.contains(&name) => Some(Kind::Bool),
            _ => self.value(logic).map(|value| value.kind),
        }
    }

    fn common_kind<'v>(&self, mut items: impl Iterator<Item = &'v Value>) -> Option<Kind> {
        let first = self.kind(items.next()?)?;
        items.all(|item| self.kind(item) == Some(first)).then_some(first)
    }

    fn variable(&self, path: &Value) -> Option<Typed> {
        let path = split_variable(path.as_text()?);
        if let Some(kind) = self.element {
            let (kind, scalar) = match (path.as_slice(), self.accumulator) {
                ([], None) => (kind, Scalar::Element),
                ([Segment::Key(name)], Some(_)) if &**name == "current" => (kind, Scalar::Element),
                ([Segment::Key(name)], Some(kind)) if &**name == "accumulator" => (kind, Scalar::Accumulator),
                _ => return None,
            };
            return Some(Typed { kind, scalar });
        }
        let (kind, column) = match path.as_slice() {
            [Segment::Key(root), below @ ..] if &**root == "state" => match self.layout.find(below)? {
                Target::Slot(slot) => (self.layout.slots.get(slot)?.kind, slot),
                _ => return None,
            },
            [Segment::Key(root)] if &**root == "turn" => (Kind::Number, self.turn),
            [Segment::Key(root), Segment::Key(name)] => {
                let names = match &**root {
                    "params" => self.params,
                    "derives" => self.derives,
                    _ => return None,
                };
                let (column, kind) = *names.get(name)?;
                (kind, column)
            }
            _ => return None,
        };
        Some(Typed { kind, scalar: Scalar::Column(column) })
    }

    fn choice(&self, items: &[Value]) -> Option<Typed> {
        (items.len() <= MOST_CHOICES).then_some(())?;
        match items {
            [otherwise] => self.value(otherwise),
            [condition, then, rest @ ..] => {
                let (then, otherwise) = (self.value(then)?, self.choice(rest)?);
                (then.kind == otherwise.kind).then_some(())?;
                Some(either(self.condition(condition)?, then, otherwise))
            }
            [] => None,
        }
    }

    /// `and` returns the first false value, `or` the first true one. Otherwise both return the last value.
    fn connective(&self, items: &[Value], stops_at: bool) -> Option<Typed> {
        (items.len() <= MOST_CHOICES).then_some(())?;
        let (last, others) = items.split_last()?;
        let mut result = self.value(last)?;
        for item in others.iter().rev() {
            let value = self.value(item)?;
            // The interpreter evaluates it once and the lowered form twice, so it must be small.
            (value.kind == result.kind && value.scalar.size() <= MOST_REPEATED).then_some(())?;
            let condition = Condition::True(value.scalar.clone());
            result =
                if stops_at { either(condition, value, result) } else { either(condition, result, value) };
        }
        Some(result)
    }

    fn calculation(&self, operation: Operation, items: &[Value]) -> Option<Typed> {
        let strictly = matches!(operation, Operation::Least | Operation::Greatest);
        let mut items = items.iter().map(|item| self.number(item, strictly));
        let first = Box::new(items.next()??);
        let rest = items.collect::<Option<_>>()?;
        Some(number(Scalar::Calculation { operation, first, rest }))
    }

    /// Lower a number, or a boolean that counts as a number.
    fn number(&self, logic: &Value, strictly: bool) -> Option<Scalar> {
        let value = self.value(logic)?;
        let fits = value.kind == Kind::Number || (value.kind == Kind::Bool && !strictly);
        fits.then_some(value.scalar)
    }

    fn fold(&self, source: &Value, body: &Value, start: &Value) -> Option<Typed> {
        let (source, element) = self.source(source)?;
        self.iterates(steps(body));
        let start = self.value(start)?;
        let body = self.inside(element, Some(start.kind)).value(body)?;
        (body.kind == start.kind).then_some(())?;
        let fold = Fold { source, start: start.scalar, body: body.scalar };
        Some(Typed { kind: start.kind, scalar: Scalar::Fold(Box::new(fold)) })
    }

    fn each(&self, source: &Value, condition: &Value) -> Option<(Source, Box<Condition>)> {
        let (source, element) = self.source(source)?;
        self.iterates(steps(condition));
        Some((source, Box::new(self.inside(element, None).condition(condition)?)))
    }

    fn source(&self, logic: &Value) -> Option<(Source, Kind)> {
        if let Some(list) = self.list_of(logic) {
            let kind = self.layout.lists.get(list)?.element();
            return Some((Source { list, stages: Vec::new() }, kind));
        }
        let (name, operand) = operation(logic)?;
        let [source, body] = arguments(name, operand)? else { return None };
        let (mut source, element) = self.source(source)?;
        self.iterates(steps(body) + 1);
        let inside = self.inside(element, None);
        match name {
            "filter" if !matches!(body, Value::Null) => {
                source.stages.push(Stage::Filter(inside.condition(body)?));
                Some((source, element))
            }
            "map" => {
                let value = inside.value(body)?;
                // Texts count towards the output limit by their length.
                (value.kind != Kind::Text).then_some(())?;
                source.stages.push(Stage::Map(value.scalar));
                Some((source, value.kind))
            }
            _ => None,
        }
    }

    fn list_of(&self, logic: &Value) -> Option<usize> {
        match operation(logic)? {
            (name @ "var", path) => match arguments(name, path)? {
                [path] => self.list(path),
                _ => None,
            },
            _ => None,
        }
    }

    /// Return the array of a variable outside of iterations.
    fn list(&self, path: &Value) -> Option<usize> {
        if self.element.is_some() {
            return None;
        }
        match split_variable(path.as_text()?).as_slice() {
            [Segment::Key(root), below @ ..] if &**root == "state" => match self.layout.find(below)? {
                Target::List(list) => Some(list),
                _ => None,
            },
            _ => None,
        }
    }

    fn inside(&self, element: Kind, accumulator: Option<Kind>) -> Self {
        Self { element: Some(element), accumulator, ..*self }
    }

    fn iterates(&self, steps: u64) {
        self.steps_per_element.set(self.steps_per_element.get() + steps);
    }
}

/// Return operator and operand of an operation.
fn operation(logic: &Value) -> Option<(&str, &Value)> {
    let members = logic.as_object()?;
    let (name, operand) = members.iter().next()?;
    (members.len() == 1).then_some((&**name, operand))
}

/// Return the arguments of an operation. Some operators require a list.
fn arguments<'a>(name: &str, operand: &'a Value) -> Option<&'a [Value]> {
    match operand {
        Value::Array(items) => Some(items),
        single if TAKE_ONE.contains(&name) => Some(std::slice::from_ref(single)),
        _ => None,
    }
}

fn is_container(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

fn number(scalar: Scalar) -> Typed {
    Typed { kind: Kind::Number, scalar }
}

fn either(condition: Condition, then: Typed, otherwise: Typed) -> Typed {
    Typed {
        kind: then.kind,
        scalar: Scalar::Choice {
            condition: Box::new(condition),
            then: Box::new(then.scalar),
            otherwise: Box::new(otherwise.scalar),
        },
    }
}

fn any_of(value: &Scalar, numbers: impl Iterator<Item = f64>) -> Condition {
    let equal = |number| Condition::Compare(Relation::Equal, value.clone(), Scalar::Constant(number));
    Condition::Any(numbers.map(equal).collect())
}

/// Return the condition that a text is one of others, unless there are too many.
fn any_text(value: &Scalar, numbers: Vec<f64>) -> Option<Condition> {
    (numbers.len() <= MOST_TEXTS).then(|| any_of(value, numbers.into_iter()))
}

fn compare(name: &str, a: &Typed, b: &Typed) -> Option<Condition> {
    let strict = matches!(name, "===" | "!==");
    if a.kind != b.kind && (strict || a.kind == Kind::Text || b.kind == Kind::Text) {
        // They are never strictly equal. A text equals a number only if it looks like one.
        let harmless = strict && a.scalar.is_simple() && b.scalar.is_simple();
        return harmless.then_some(Condition::Constant(name == "!=="));
    }
    let (a, b) = (a.scalar.clone(), b.scalar.clone());
    Some(match name {
        "==" | "===" => Condition::Compare(Relation::Equal, a, b),
        "!=" | "!==" => Condition::Compare(Relation::Unequal, a, b),
        "<" => Condition::Compare(Relation::Less, a, b),
        "<=" => Condition::Compare(Relation::AtMost, a, b),
        ">" => Condition::Compare(Relation::Less, b, a),
        _ => Condition::Compare(Relation::AtMost, b, a),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::examples::{plan_of, program};
    use crate::jsonlogic::{Data, Rule};
    use crate::strict_json;

    fn value(text: &str) -> Value {
        strict_json::parse(text.as_bytes()).unwrap()
    }

    /// Lower the condition of the only loss.
    fn lower(state: &str, condition: &str) -> Option<Condition> {
        let losses = format!(r#"[{{"id": "x", "when": {condition}}}]"#);
        let plan = plan_of(&program(state, &[("loss_conditions", &losses)]))?;
        plan.losses.into_iter().next().filter(|condition| !matches!(condition, Condition::Interpreted(_)))
    }

    #[test]
    fn no_expression_exceeds_its_estimated_steps() {
        let texts: Vec<String> = (0..1_000).map(|number| format!("\"{number:015}\"")).collect();
        let numbers: Vec<String> = (0..4_000).map(|number| number.to_string()).collect();
        for logic in [
            "1".to_owned(),
            "{}".to_owned(),
            r#"{"missing": "a"}"#.to_owned(),
            r#"{"missing": ["a", "b", "c"]}"#.to_owned(),
            r#"{"var": ["a", 1]}"#.to_owned(),
            r#"{"<": [{"var": "a"}, {"var": "b"}, 3]}"#.to_owned(),
            r#"{"===": [{"var": "a"}, 1, 1]}"#.to_owned(),
            r#"{"if": [{"!": {"var": "a"}}, 1, {"or": [{"var": "b"}, 2]}]}"#.to_owned(),
            format!(r#"{{"in": ["x", [{}]]}}"#, texts.join(",")),
            format!(r#"{{"in": [-1, [{}]]}}"#, numbers.join(",")),
            format!(r#"{{"missing": [{}]}}"#, texts.join(",")),
        ] {
            let logic = value(&logic);
            let mut spent = 0;
            let data = value(r#"{"a": 1, "b": 2}"#);
            Rule::new(&logic).evaluate_metered(Data::Value(&data), &mut spent).unwrap();
            assert!(spent <= steps(&logic), "{spent} > {}", steps(&logic));
        }
    }

    #[test]
    fn expressions_with_other_results_are_not_lowered() {
        let state = r#"{"n": 1, "t": "x", "f": true, "list": [], "tree": {"k": 1}}"#;
        for condition in [
            r#"{"==": [{"var": "state.n"}, {"var": "state.t"}]}"#,
            r#"{"max": [{"var": "state.f"}, 1]}"#,
            r#"{"!": []}"#,
            r#"{"/": [{"var": "state.n"}]}"#,
            r#"{"var": "state.tree"}"#,
            r#"{"some": [{"var": "state.list"}, {"var": "state.n"}]}"#,
            r#"{"filter": [{"var": "state.list"}, null]}"#,
        ] {
            assert!(lower(state, condition).is_none(), "{condition}");
        }
    }

    #[test]
    fn an_array_of_derived_values_has_numbers() {
        let condition = r#"{"in": [{"var": "state.t"}, {"var": "state.list"}]}"#;
        let found = lower(r#"{"t": "x", "list": []}"#, condition);
        assert!(matches!(found, Some(Condition::Constant(false))), "{found:?}");
    }

    #[test]
    fn nested_conditions_grow_linearly() {
        let mut condition = r#"{"var": "state.f"}"#.to_owned();
        for _ in 0..25 {
            condition = format!(r#"{{"if": [{condition}, {{"<": [{{"var": "state.n"}}, 3]}}, false]}}"#);
        }
        let size = lower(r#"{"f": true, "n": 1}"#, &condition).map_or(0, |condition| condition.size());
        assert!(size < 1_000, "{size}");
    }

    #[test]
    fn the_deepest_choices_need_little_stack() {
        let clauses = r#"{"<": [{"var": "state.n"}, 3]}, {"var": "state.f"}, "#.repeat(11);
        let mut condition = r#"{"var": "state.f"}"#.to_owned();
        for _ in 0..26 {
            condition = format!(r#"{{"if": [{clauses}{condition}]}}"#);
        }
        let condition = lower(r#"{"f": true, "n": 1}"#, &condition).unwrap();
        assert!(condition.size() > 1_000);
        crate::simd::tests::compile(&condition);
    }
}
