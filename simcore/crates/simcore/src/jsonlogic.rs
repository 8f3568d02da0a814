//! JSONLogic: a compiler and an evaluator with fuel.
//!
//! # Design
//!
//! An expression is compiled once into a tree with resolved operators and split paths (`expression`).
//! Constant parts are folded (`folding`). The evaluator (`evaluation`, `operators`) borrows values from the
//! expression and the data where possible. The dialect is defined by the test suites of the community. If
//! they are silent, the table in docs/reference/semantics.md decides.
//!
//! # Invariants
//!
//! - Both cores return the same value or the same error for each expression and each data.
//! - Both cores charge the same fuel in the same order. The order determines which error occurs first.
//! - A folded constant costs the fuel of its evaluation. Folding is not observable.
//! - An invalid expression is an error only if it is evaluated.
//! - Every evaluation is bounded: [`FUEL`] steps, [`OUTPUT_LIMIT`] characters and items, and the nesting of
//!   documents.
//!
//! # Rejected alternatives
//!
//! - Errors at compile time: the reference evaluates lazily, so an invalid branch that is never reached is
//!   legal.
//! - Wall-clock limits: they differ between machines, so a run would not be reproducible.

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

/// Maximum steps of an evaluation.
pub const FUEL: u32 = 10_000;
/// Maximum characters and items that an evaluation may create.
pub const OUTPUT_LIMIT: usize = 1 << 16;

/// A call pays one step for this number of created things, and for this number of values in the result.
const THINGS_PER_STEP: u64 = 16;

/// A compiled expression. An invalid part is an error only if it is evaluated.
#[derive(Clone, Debug)]
pub struct Rule(Expression);

/// The data that an expression reads.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// A value.
    Value(&'a Value),
    /// An object given as its members.
    Members(&'a [(&'static str, &'a Value)]),
}

impl Rule {
    /// Compile an expression that [`crate::strict_json::parse`] returned.
    #[must_use]
    pub fn new(logic: &Value) -> Self {
        Self::compile(logic, &mut Fields::default())
    }

    /// Compile an expression from any JSON tree.
    pub(crate) fn compile<'v>(logic: &'v impl Json, fields: &mut Fields<'v>) -> Self {
        let mut expression = Expression::new(logic, fields);
        folding::fold(&mut expression);
        Self(expression)
    }

    /// Evaluate the expression.
    ///
    /// # Errors
    ///
    /// `UNKNOWN_OPERATOR`, `INVALID_ARGUMENTS`, `NOT_A_NUMBER`, `DIVISION_BY_ZERO`, `NUMERIC_RANGE` or
    /// `FUEL_EXHAUSTED`.
    pub fn evaluate(&self, data: Data<'_>) -> Result<Value> {
        self.evaluate_metered(data, &mut 0)
    }

    /// As [`Rule::evaluate`]. The value is borrowed if it is part of the expression or of the data.
    ///
    /// # Errors
    ///
    /// As [`Rule::evaluate`].
    pub fn evaluate_borrowed<'a>(&'a self, data: Data<'a>) -> Result<Cow<'a, Value>> {
        self.evaluate_cow(data, &mut 0)
    }

    /// As [`Rule::evaluate`]. The steps are added to `spent`, even if it fails.
    ///
    /// # Errors
    ///
    /// As [`Rule::evaluate`].
    pub fn evaluate_metered(&self, data: Data<'_>, spent: &mut u64) -> Result<Value> {
        self.evaluate_cow(data, spent).map(Cow::into_owned)
    }

    /// Return the truth of the expression.
    ///
    /// # Errors
    ///
    /// As [`Rule::evaluate`].
    pub fn holds(&self, data: Data<'_>) -> Result<bool> {
        self.holds_metered(data, &mut 0)
    }

    /// As [`Rule::holds`]. The steps are added to `spent`, even if it fails.
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

/// Evaluate an expression over data.
///
/// # Errors
///
/// As [`Rule::evaluate`].
pub fn evaluate(logic: &Value, data: &Value) -> Result<Value> {
    Rule::new(logic).evaluate(Data::Value(data))
}

impl Relation {
    /// Return True if the relation holds between two values, with the fuel of one evaluation.
    ///
    /// # Errors
    ///
    /// `NOT_A_NUMBER` or `FUEL_EXHAUSTED`.
    pub(crate) fn holds(self, a: &Value, b: &Value) -> Result<bool> {
        Evaluation::new().holds(self, a, b)
    }
}

/// Return the truth of a value. False are: false, null, 0, "" and []. All other values are true, including
/// {}.
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

/// Check that a result may enter a state: it is finite, and −0 becomes 0.
///
/// # Errors
///
/// `NUMERIC_RANGE` for infinities and NaN.
pub fn finite(value: f64) -> Result<f64> {
    if value.is_finite() {
        Ok(value + 0.0)
    } else {
        Err(Error::new(Code::NumericRange, "the result does not fit binary64"))
    }
}

impl<'a> Data<'a> {
    /// Return all data as one value.
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
    fn steps_are_added_on_success_and_on_failure() {
        assert_eq!(steps(r#"{"+":{"var":"a"}}"#), (5, true));
        assert_eq!(steps(r#"{"+":[1,"x"]}"#), (3, false));
        let endless = r#"{"map":[[1,2,3,4,5,6,7,8,9,10],"#.repeat(5) + "1" + &"]}".repeat(5);
        // All of its fuel, and 18,100 items.
        assert_eq!(steps(&endless), (u64::from(FUEL) + 1131, false));
    }
}
