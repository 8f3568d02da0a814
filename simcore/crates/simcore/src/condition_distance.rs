//! Distance of a state from the conditions that end a run: the heuristic of the personas with lookahead.
//!
//! A condition is split at its connectives and comparisons. The remaining operands are separate expressions:
//! each fails alone, and their evaluation is not charged.

use crate::jsonlogic::{Data, Relation, Rule};
use crate::program::Program;
use crate::state::State;
use crate::turn::with_root;
use crate::value::{EMPTY_OBJECT, Value};

/// Upper limit of gaps and scales.
pub(crate) const MOST: f64 = 1e300;
/// Lower limit of a scale. Parts of a smaller scale would be 0.
const LEAST: f64 = 1e-300;
/// The smallest distance of a false comparison is the scale divided by this number.
const LEAST_PART: f64 = 1024.0;

/// The distances of all loss and win conditions of a scenario.
#[derive(Debug)]
pub(crate) struct Distances {
    pub(crate) losses: Vec<Distance>,
    pub(crate) wins: Vec<Distance>,
}

/// Distance of a condition: 0 if it holds, otherwise greater than 0 and at most 1.
#[derive(Debug)]
pub(crate) enum Distance {
    /// The maximum of its parts.
    Greatest(Vec<Distance>),
    /// The minimum of its parts.
    Least(Vec<Distance>),
    Compared(Box<Comparison>),
    Whole(Box<Whole>),
}

/// A condition that is not split further, or its opposite.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) logic: Value,
    rule: Rule,
    pub(crate) opposite: bool,
}

/// A comparison of two operands.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) relation: Relation,
    pub(crate) operands: [Value; 2],
    rules: [Rule; 2],
    /// The initial gap of the operands; 1 if the initial state has none.
    pub(crate) scale: f64,
}

impl Distances {
    /// Build the distances of a program. The initial state defines the scales.
    pub(crate) fn new(program: &Program) -> Self {
        let builder = Builder { program, initial: State::undealt(program, 0) };
        let spec = program.spec().as_object();
        let each = |section| {
            let conditions = spec.and_then(|spec| spec.get(section)).and_then(Value::as_array);
            let logic = |condition: &Value| condition.as_object()?.get("when").cloned();
            let all = conditions.into_iter().flat_map(|conditions| conditions.iter());
            all.filter_map(logic).map(|logic| builder.distance(&logic, false)).collect()
        };
        Self { losses: each("loss_conditions"), wins: each("win_conditions") }
    }

    /// Return the heuristic value of an unfinished run: the distance of the nearest loss minus that of the
    /// nearest win.
    pub(crate) fn value(&self, program: &Program, state: &State) -> f64 {
        with_root(program, state, &EMPTY_OBJECT, &EMPTY_OBJECT, |root| {
            least(&self.losses, root) - if self.wins.is_empty() { 0.0 } else { least(&self.wins, root) }
        })
    }
}

fn least(distances: &[Distance], root: Data<'_>) -> f64 {
    distances.iter().map(|distance| distance.value(root)).fold(1.0, f64::min)
}

impl Distance {
    fn value(&self, root: Data<'_>) -> f64 {
        match self {
            Self::Greatest(parts) => parts.iter().map(|part| part.value(root)).fold(0.0, f64::max),
            Self::Least(parts) => least(parts, root),
            Self::Compared(comparison) => comparison.value(root),
            Self::Whole(whole) => whole.value(root),
        }
    }
}

impl Whole {
    fn new(logic: Value, opposite: bool) -> Self {
        Self { rule: Rule::new(&logic), logic, opposite }
    }

    /// Return 0 if the condition holds. Return 1 if it does not hold or cannot be evaluated.
    fn value(&self, root: Data<'_>) -> f64 {
        let is_so = self.rule.holds(root).is_ok_and(|holds| holds != self.opposite);
        if is_so { 0.0 } else { 1.0 }
    }
}

impl Comparison {
    /// Return the values of both operands, or `None` if one fails.
    fn values(&self, root: Data<'_>) -> Option<[Value; 2]> {
        let [a, b] = self.rules.each_ref().map(|rule| rule.evaluate(root).ok());
        Some([a?, b?])
    }

    fn value(&self, root: Data<'_>) -> f64 {
        let Some([a, b]) = self.values(root) else { return 1.0 };
        match (self.relation.holds(&a, &b), a, b) {
            (Ok(true), ..) => 0.0,
            (_, Value::Number(a), Value::Number(b)) => self.graded(a, b),
            _ => 1.0,
        }
    }

    /// Return the distance of two numbers for which the relation is false.
    fn graded(&self, a: f64, b: f64) -> f64 {
        let gap = match self.relation {
            Relation::Less | Relation::AtMost => a - b,
            Relation::Greater | Relation::AtLeast => b - a,
            Relation::Equal | Relation::StrictlyEqual => gap(a, b),
            Relation::NotEqual | Relation::NotStrictlyEqual => return 1.0,
        };
        let distance = gap.min(MOST) + self.least();
        distance / (distance + self.scale)
    }

    /// Return the offset that is added to each gap, so that only a true comparison has distance 0.
    pub(crate) fn least(&self) -> f64 {
        self.scale / LEAST_PART
    }
}

/// Return the gap of two numbers.
fn gap(a: f64, b: f64) -> f64 {
    (a - b).max(b - a)
}

/// Splits conditions into distances.
struct Builder<'a> {
    program: &'a Program,
    initial: State,
}

impl Builder<'_> {
    /// Return the distance of a condition or of its opposite.
    fn distance(&self, logic: &Value, opposite: bool) -> Distance {
        let whole = || Distance::Whole(Box::new(Whole::new(logic.clone(), opposite)));
        let Some((name, arguments)) = operation(logic) else { return whole() };
        match (name, arguments) {
            ("!!", [item]) => self.distance(item, opposite),
            ("!", [item]) => self.distance(item, !opposite),
            ("and" | "or", items @ [_, ..]) => {
                let parts = items.iter().map(|item| self.distance(item, opposite)).collect();
                join_distances((name == "and") != opposite, parts)
            }
            (_, items @ [_, _, ..]) if let Some(relation) = Relation::from_name(name) => {
                let relation = if opposite { relation.opposite() } else { relation };
                let pairs = items.iter().zip(items.iter().skip(1));
                let pairs = pairs.map(|(a, b)| self.comparison(relation, a, b));
                join_distances(!opposite, pairs.collect())
            }
            _ => whole(),
        }
    }

    fn comparison(&self, relation: Relation, a: &Value, b: &Value) -> Distance {
        let operands = [a.clone(), b.clone()];
        let rules = operands.each_ref().map(Rule::new);
        let mut comparison = Comparison { relation, operands, rules, scale: 1.0 };
        let initial = |root: Data<'_>| comparison.values(root);
        if let Some([Value::Number(a), Value::Number(b)]) =
            with_root(self.program, &self.initial, &EMPTY_OBJECT, &EMPTY_OBJECT, initial)
        {
            let scale = gap(a, b).min(MOST);
            comparison.scale = if scale < LEAST { 1.0 } else { scale };
        }
        Distance::Compared(Box::new(comparison))
    }
}

/// Combine distances: of all conditions, or of any of them.
fn join_distances(all: bool, mut parts: Vec<Distance>) -> Distance {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            if all { Distance::Greatest(parts) } else { Distance::Least(parts) }
        }
    }
}

/// Return operator and arguments of an operation if the interpreter accepts their form.
fn operation(logic: &Value) -> Option<(&str, &[Value])> {
    let members = logic.as_object().filter(|members| members.len() == 1)?;
    let (name, operand) = members.iter().next()?;
    match operand {
        Value::Array(items) => Some((name, items)),
        single if matches!(&**name, "!" | "!!") => Some((name, std::slice::from_ref(single))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::examples::program;

    /// Return the distance of the only loss in the initial state after `a` and `b` have been replaced.
    fn distance(condition: &str, a: f64, b: f64) -> f64 {
        let losses = format!(r#"[{{"id": "x", "when": {condition}}}]"#);
        let program = program(r#"{"a": 10, "b": 2, "text": "t"}"#, &[("loss_conditions", &losses)]);
        let mut state = State::undealt(&program, 0);
        if let Value::Object(members) = &mut state.tree {
            let members = std::sync::Arc::make_mut(members);
            members.insert("a".into(), a.into());
            members.insert("b".into(), b.into());
        }
        program.distances().value(&program, &state)
    }

    fn at(gap: f64, scale: f64) -> f64 {
        let distance = gap + scale / 1024.0;
        distance / (distance + scale)
    }

    const A: &str = r#"{"var": "state.a"}"#;
    const B: &str = r#"{"var": "state.b"}"#;

    #[test]
    fn the_distance_of_a_comparison_is_its_gap_over_its_scale() {
        for (condition, a, expected) in [
            (format!(r#"{{"<=": [{A}, 0]}}"#), 10.0, at(10.0, 10.0)),
            (format!(r#"{{"<=": [{A}, 0]}}"#), 5.0, at(5.0, 10.0)),
            (format!(r#"{{"<=": [{A}, 0]}}"#), 0.0, 0.0),
            (format!(r#"{{"<": [{A}, 0]}}"#), 0.0, at(0.0, 10.0)),
            (format!(r#"{{">": [{A}, 15]}}"#), 12.0, at(3.0, 5.0)),
            (format!(r#"{{"==": [{A}, 10]}}"#), 8.0, at(2.0, 1.0)),
            (format!(r#"{{"!=": [{A}, 8]}}"#), 8.0, 1.0),
            (format!(r#"{{"<": [{A}, -1e308]}}"#), 1e308, at(1e300, 1e300)),
        ] {
            assert_eq!(distance(&condition, a, 2.0), expected, "{condition}");
        }
    }

    #[test]
    fn connectives_use_the_maximum_or_the_minimum() {
        let (low, high) = (format!(r#"{{"<": [{A}, 0]}}"#), format!(r#"{{">": [{B}, 4]}}"#));
        let (far, near) = (at(7.0, 10.0), at(1.0, 2.0));
        for (condition, expected) in [
            (format!(r#"{{"and": [{low}, {high}]}}"#), far),
            (format!(r#"{{"or": [{low}, {high}]}}"#), near),
            (format!(r#"{{"!!": [{{"or": [{low}, {high}]}}]}}"#), near),
            (format!(r#"{{"<": [{A}, 0, {B}]}}"#), far),
            (format!(r#"{{"!": {{"or": [{{">=": [{A}, 0]}}, {{"<=": [{B}, 4]}}]}}}}"#), far),
            (format!(r#"{{"!": {{"and": [{{">=": [{A}, 0]}}, {{"<=": [{B}, 4]}}]}}}}"#), near),
            (format!(r#"{{"!": {{">=": [{A}, 0, 9]}}}}"#), 0.0),
            (r#"{"and": []}"#.to_owned(), 1.0),
            (r#"{"!": {"and": []}}"#.to_owned(), 0.0),
        ] {
            assert_eq!(distance(&condition, 7.0, 3.0), expected, "{condition}");
        }
    }

    #[test]
    fn other_conditions_have_distance_zero_or_one() {
        for (condition, expected) in [
            (r#"{"==": [{"var": "state.text"}, "t"]}"#, 0.0),
            (r#"{"==": [{"var": "state.text"}, "u"]}"#, 1.0),
            (r#"{"<": [{"var": "state.text"}, 1]}"#, 1.0),
            (r#"{"!": {"<": [{"var": "state.text"}, 1]}}"#, 1.0),
            (r#"{"in": ["x", {"var": "state.text"}]}"#, 1.0),
            (r#"{"!": {"in": ["x", {"var": "state.text"}]}}"#, 0.0),
            (r#"{"<": [1, {"/": [1, 0]}]}"#, 1.0),
            ("{}", 0.0),
        ] {
            assert_eq!(distance(condition, 10.0, 2.0), expected, "{condition}");
        }
    }
}
