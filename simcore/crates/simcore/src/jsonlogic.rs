//! JSONLogic: compiled once, evaluated often.
//!
//! The dialect is the community's test suites; where those are silent it is the table in docs/semantics.md. Every
//! evaluation is bounded by fuel, so that no rule can cost more than its budget.

mod coercion;
mod evaluation;
mod expression;
mod folding;
mod operators;

use std::borrow::Cow;

use crate::error::{Code, Error, Result};
use crate::json_node::Json;
use crate::value::{Object, Value};
use evaluation::Evaluation;
use expression::Expression;

pub(crate) use expression::{Fields, Relation, is_operator};

/// How many steps an evaluation may take.
pub const FUEL: u32 = 10_000;
/// How many characters and items an evaluation may make.
pub const OUTPUT_LIMIT: usize = 1 << 16;

/// How many of the things that it makes, and of the values in what it gives, cost a call a step.
const THINGS_PER_STEP: u64 = 16;

/// A compiled expression. What is wrong with it is an error only when, and if, that part is evaluated.
#[derive(Clone, Debug)]
pub struct Rule(Expression);

/// What an expression reads from.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// A value.
    Value(&'a Value),
    /// An object that exists only as its members.
    Members(&'a [(&'static str, &'a Value)]),
}

impl Rule {
    /// Compile an expression, as [`crate::strict_json::parse`] read it.
    #[must_use]
    pub fn new(logic: &Value) -> Self {
        Self::compile(logic, &mut Fields::default())
    }

    /// Compile an expression, however it is kept.
    pub(crate) fn compile<'v>(logic: &'v impl Json, fields: &mut Fields<'v>) -> Self {
        let mut expression = Expression::new(logic, fields);
        folding::fold(&mut expression);
        Self(expression)
    }

    /// The value of the expression.
    ///
    /// # Errors
    ///
    /// `UNKNOWN_OPERATOR`, `INVALID_ARGUMENTS`, `NOT_A_NUMBER`, `DIVISION_BY_ZERO`, `NUMERIC_RANGE` or
    /// `FUEL_EXHAUSTED`.
    pub fn evaluate(&self, data: Data<'_>) -> Result<Value> {
        self.evaluate_metered(data, &mut 0)
    }

    /// As [`Rule::evaluate`], borrowed where the value stands in the expression or in the data.
    ///
    /// # Errors
    ///
    /// As [`Rule::evaluate`].
    pub fn evaluate_borrowed<'a>(&'a self, data: Data<'a>) -> Result<Cow<'a, Value>> {
        self.evaluate_cow(data, &mut 0)
    }

    /// As [`Rule::evaluate`]; the steps taken are added to `spent`, also when it fails.
    ///
    /// # Errors
    ///
    /// As [`Rule::evaluate`].
    pub fn evaluate_metered(&self, data: Data<'_>, spent: &mut u64) -> Result<Value> {
        self.evaluate_cow(data, spent).map(Cow::into_owned)
    }

    /// Whether the expression, as a condition, holds.
    ///
    /// # Errors
    ///
    /// As [`Rule::evaluate`].
    pub fn holds(&self, data: Data<'_>) -> Result<bool> {
        self.holds_metered(data, &mut 0)
    }

    /// As [`Rule::holds`]; the steps taken are added to `spent`, also when it fails.
    ///
    /// # Errors
    ///
    /// As [`Rule::evaluate`].
    pub fn holds_metered(&self, data: Data<'_>, spent: &mut u64) -> Result<bool> {
        self.evaluate_cow(data, spent).map(|value| truthy(&value))
    }

    fn evaluate_cow<'a>(&'a self, data: Data<'a>, spent: &mut u64) -> Result<Cow<'a, Value>> {
        let mut evaluation = Evaluation::new();
        let value = evaluation.value(&self.0, data);
        *spent += evaluation.steps();
        let value = value?;
        *spent += coercion::check_nesting(&value)? / THINGS_PER_STEP;
        Ok(value)
    }
}

/// The value of an expression over data.
///
/// # Errors
///
/// As [`Rule::evaluate`].
pub fn evaluate(logic: &Value, data: &Value) -> Result<Value> {
    Rule::new(logic).evaluate(Data::Value(data))
}

impl Relation {
    /// Whether it holds between two values, with the fuel of an evaluation.
    ///
    /// # Errors
    ///
    /// `NOT_A_NUMBER` or `FUEL_EXHAUSTED`.
    pub(crate) fn holds(self, a: &Value, b: &Value) -> Result<bool> {
        Evaluation::new().holds(self, a, b)
    }
}

/// JSONLogic's truth: false, null, 0, "" and [] are false; everything else, {} included, is true.
#[must_use]
pub fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => *number != 0.0,
        Value::Text(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(_) => true,
    }
}

/// A result that may enter a state: finite, and 0 for −0.
///
/// # Errors
///
/// `NUMERIC_RANGE` for infinities and for what is not a number.
pub fn finite(value: f64) -> Result<f64> {
    if value.is_finite() {
        Ok(value + 0.0)
    } else {
        Err(Error::new(Code::NumericRange, "the result does not fit binary64"))
    }
}

impl<'a> Data<'a> {
    /// All of the data.
    fn to_value(self) -> Cow<'a, Value> {
        match self {
            Self::Value(value) => Cow::Borrowed(value),
            Self::Members(members) => {
                let mut object = Object::default();
                for (name, value) in members {
                    object.insert((*name).into(), (*value).clone());
                }
                Cow::Owned(object.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strict_json;

    fn steps(logic: &str) -> (u64, bool) {
        let rule = Rule::new(&strict_json::parse(logic.as_bytes()).unwrap());
        let data = strict_json::parse(br#"{"a":[1,2]}"#).unwrap();
        let mut spent = 5;
        let succeeded = rule.evaluate_metered(Data::Value(&data), &mut spent).is_ok();
        (spent - 5, succeeded)
    }

    #[test]
    fn steps_are_added_whether_a_rule_succeeds_or_fails() {
        assert_eq!(steps(r#"{"+":{"var":"a"}}"#), (5, true));
        assert_eq!(steps(r#"{"+":[1,"x"]}"#), (3, false));
        let endless = r#"{"map":[[1,2,3,4,5,6,7,8,9,10],"#.repeat(5) + "1" + &"]}".repeat(5);
        // All of its fuel, and 18,100 items.
        assert_eq!(steps(&endless), (u64::from(FUEL) + 1131, false));
    }
}
