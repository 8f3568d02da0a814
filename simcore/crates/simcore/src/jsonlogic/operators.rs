//! Operators of JSONLogic: comparison, arithmetic, arrays and text.

use crate::error::{Code, Error, Result};
use crate::paths::lookup;
use crate::value::{Array, Object, Value};

use super::coercion::{append_text, check_depth, number, text_of};
use super::evaluation::{CHARACTERS_PER_STEP, Evaluation, NULL, immediate, length};
use super::expression::{
    Arguments, Arithmetic, Expression, Extreme, Iteration, IterationKind, Pair, Relation,
};
use super::{Data, OUTPUT_LIMIT, finite};

/// Steps of a comparison of a variable with a literal: the comparison, the variable, its path and the
/// literal.
const COMPARISON: u32 = 4;
/// A shorter text is searched faster without a prepared search.
const SHORT_TEXT: usize = 64;
/// Initial capacity of the result of `cat`; most results fit.
const USUAL_TEXT: usize = 64;

impl Evaluation {
    // --- comparison ---

    #[inline]
    pub(super) fn chain(
        &mut self,
        relation: Relation,
        first: &Expression,
        rest: &[Expression],
        data: Data<'_>,
    ) -> Result<bool> {
        if let [second] = rest
            && let (Some((a, cost_a)), Some((b, cost_b))) = (immediate(first, data), immediate(second, data))
        {
            self.burn(cost_a + cost_b)?;
            return self.holds(relation, a, b);
        }
        self.long_chain(relation, first, rest, data)
    }

    fn long_chain(
        &mut self,
        relation: Relation,
        first: &Expression,
        rest: &[Expression],
        data: Data<'_>,
    ) -> Result<bool> {
        let mut previous = self.value(first, data)?;
        for item in rest {
            let value = self.value(item, data)?;
            if !self.holds(relation, &previous, &value)? {
                return Ok(false);
            }
            previous = value;
        }
        Ok(true)
    }

    #[expect(clippy::inline_always, reason = "measured: the call costs more than the body")]
    #[inline(always)]
    pub(super) fn holds(&mut self, relation: Relation, a: &Value, b: &Value) -> Result<bool> {
        match relation {
            Relation::Equal => loosely_equal(a, b),
            Relation::NotEqual => Ok(!loosely_equal(a, b)?),
            Relation::StrictlyEqual => self.equal(a, b, 0),
            Relation::NotStrictlyEqual => Ok(!self.equal(a, b, 0)?),
            Relation::Less => less(a, b),
            Relation::AtMost => Ok(!less(b, a)?),
            Relation::Greater => less(b, a),
            Relation::AtLeast => Ok(!less(a, b)?),
        }
    }

    /// Compare two values: strict, structural equality.
    fn equal(&mut self, a: &Value, b: &Value, depth: usize) -> Result<bool> {
        self.burn(1)?;
        check_depth(depth)?;
        Ok(match (a, b) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Number(a), Value::Number(b)) => a == b,
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::Array(a), Value::Array(b)) => a.len() == b.len() && self.all_equal(a, b, depth + 1)?,
            (Value::Object(a), Value::Object(b)) => {
                a.len() == b.len() && self.members_equal(a, b, depth + 1)?
            }
            _ => false,
        })
    }

    fn all_equal(&mut self, a: &Array, b: &Array, depth: usize) -> Result<bool> {
        for (a, b) in a.iter().zip(b.iter()) {
            if !self.equal(a, b, depth)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn members_equal(&mut self, a: &Object, b: &Object, depth: usize) -> Result<bool> {
        for (key, a) in a.iter() {
            let Some(b) = b.get(key) else { return Ok(false) };
            if !self.equal(a, b, depth)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    // --- arithmetic ---

    pub(super) fn arithmetic(
        &mut self,
        operation: Arithmetic,
        arguments: &Arguments,
        data: Data<'_>,
    ) -> Result<f64> {
        if let Arguments::List(items) = arguments
            && let [first, second] = items.as_slice()
            && let (Some((Value::Number(a), cost_a)), Some((Value::Number(b), cost_b))) =
                (immediate(first, data), immediate(second, data))
        {
            self.burn(cost_a + cost_b)?;
            return operation.apply(*a, *b);
        }
        let mut fold = Fold::new(operation);
        match arguments {
            Arguments::List(items) => {
                for item in items {
                    if let Expression::Arithmetic { operation, arguments } = item {
                        self.burn(1)?;
                        fold.add(Ok(self.arithmetic(*operation, arguments, data)?));
                    } else {
                        fold.add(number(&*self.value(item, data)?));
                    }
                }
            }
            Arguments::Single(_) => self.spread(arguments, data, |value| fold.add(number(value)))?,
        }
        fold.finish()
    }

    #[inline(never)]
    pub(super) fn extreme(&mut self, extreme: Extreme, arguments: &Arguments, data: Data<'_>) -> Result<f64> {
        let mut best = None;
        let mut all_numbers = true;
        self.spread(arguments, data, |value| match (value, best) {
            (Value::Number(value), None) => best = Some(*value),
            (Value::Number(value), Some(so_far)) => {
                let better = match extreme {
                    Extreme::Least => *value < so_far,
                    Extreme::Greatest => *value > so_far,
                };
                best = Some(if better { *value } else { so_far });
            }
            _ => all_numbers = false,
        })?;
        best.filter(|_| all_numbers).ok_or_else(|| {
            let name = match extreme {
                Extreme::Least => "min",
                Extreme::Greatest => "max",
            };
            Error::new(Code::InvalidArguments, format!("'{name}' needs numbers, at least one"))
        })
    }

    // --- arrays ---

    #[inline(never)]
    pub(super) fn iterate(&mut self, iteration: &Iteration, data: Data<'_>) -> Result<Value> {
        let source = self.value(&iteration.source, data)?;
        let elements = elements(iteration, &source)?;
        let body = &iteration.body;
        match iteration.kind {
            IterationKind::Map => {
                let mut items = Vec::with_capacity(elements.len());
                if let Expression::Arithmetic { operation, arguments } = body {
                    for element in elements {
                        self.burn(1)?;
                        items.push(self.arithmetic(*operation, arguments, Data::Value(element))?.into());
                    }
                } else {
                    for element in elements {
                        items.push(self.evaluate_owned(body, Data::Value(element))?);
                    }
                }
                self.charge_array(items)
            }
            IterationKind::Filter => self.filter(elements, body),
            IterationKind::Reduce => self.reduce(elements, iteration, data),
            IterationKind::All => {
                let fails = self.any(elements, body, false)?;
                Ok(Value::Bool(!elements.is_empty() && !fails))
            }
            IterationKind::Some => Ok(Value::Bool(self.any(elements, body, true)?)),
            IterationKind::None => Ok(Value::Bool(!self.any(elements, body, true)?)),
        }
    }

    fn filter(&mut self, elements: &[Value], body: &Expression) -> Result<Value> {
        if body.is_null() {
            return Err(Error::new(Code::InvalidArguments, "'filter' needs a condition"));
        }
        let mut selected = Vec::new();
        for element in elements {
            if self.is_true(body, Data::Value(element))? {
                self.produce(1)?;
                selected.push(element.clone());
            }
        }
        Ok(selected.into())
    }

    fn reduce(&mut self, elements: &[Value], iteration: &Iteration, data: Data<'_>) -> Result<Value> {
        let mut elements = elements.iter();
        let mut total = match &iteration.start {
            Some(start) => self.evaluate_owned(start, data)?,
            None => elements.next().cloned().unwrap_or(Value::Null),
        };
        for element in elements {
            let members = [("current", element), ("accumulator", &total)];
            total = match &iteration.body {
                Expression::Arithmetic { operation, arguments } => {
                    self.burn(1)?;
                    self.arithmetic(*operation, arguments, Data::Members(&members))?.into()
                }
                body => self.evaluate_owned(body, Data::Members(&members))?,
            };
        }
        Ok(total)
    }

    /// Return True if the truth of the body equals `wanted` for any element. Stop at the first one.
    fn any(&mut self, elements: &[Value], body: &Expression, wanted: bool) -> Result<bool> {
        if let Expression::Chain { relation, first, rest } = body
            && let (Expression::Field(path), [Expression::Literal(bound)]) = (&**first, rest.as_slice())
        {
            for element in elements {
                self.burn(COMPARISON)?;
                let value = lookup(element, path).unwrap_or(&NULL);
                if self.holds(*relation, value, bound)? == wanted {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        for element in elements {
            if self.is_true(body, Data::Value(element))? == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[inline(never)]
    pub(super) fn merge(&mut self, arguments: &Arguments, data: Data<'_>) -> Result<Value> {
        let values = self.arguments(arguments, data)?;
        let size = values.iter().map(|value| value.as_array().map_or(1, |items| items.len())).sum();
        if size > self.output {
            self.produce(size)?; // refused before it takes memory
        }
        let mut merged = Vec::with_capacity(size);
        for value in values {
            match &*value {
                Value::Array(items) => merged.extend(items.iter().cloned()),
                _ => merged.push(value.into_owned()),
            }
        }
        self.charge_array(merged)
    }

    // --- text ---

    #[inline(never)]
    pub(super) fn contains(&mut self, pair: &Pair, data: Data<'_>) -> Result<bool> {
        let (needle, haystack, _) = self.pair(pair, data)?;
        let found = match (&*needle, &*haystack) {
            (needle, Value::Array(items)) => {
                for item in items.iter() {
                    if self.equal(needle, item, 0)? {
                        return Ok(true);
                    }
                }
                false
            }
            (Value::Text(needle), Value::Text(haystack)) => {
                self.burn_each(length(haystack) / CHARACTERS_PER_STEP)?;
                contains(haystack, needle)
            }
            _ => false,
        };
        Ok(found)
    }

    #[inline(never)]
    pub(super) fn cat(&mut self, arguments: &Arguments, data: Data<'_>) -> Result<Value> {
        let mut text = String::with_capacity(USUAL_TEXT);
        let mut size = 0;
        let mut failure = None;
        self.spread(arguments, data, |value| {
            // A text over the limit is rejected below.
            if failure.is_none() && size <= OUTPUT_LIMIT {
                let start = text.len();
                match append_text(&mut text, value, 0) {
                    Ok(()) => size += length(text.get(start..).unwrap_or_default()),
                    Err(error) => failure = Some(error),
                }
            }
        })?;
        self.produce(size)?;
        failure.map_or_else(|| Ok(text.into()), Err)
    }

    #[inline(never)]
    pub(super) fn substr(&mut self, pair: &Pair, data: Data<'_>) -> Result<Value> {
        let (source, start, others) = self.pair(pair, data)?;
        let text = text_of(&source)?;
        let size = length(&text);
        self.burn_each(size / CHARACTERS_PER_STEP)?;
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let start = to_integer(&start)?;
        let start = if start < 0 { (size + start).max(0) } else { start.min(size) };
        let end = match others.first() {
            None => size,
            Some(length) => match &**length {
                Value::Null => size,
                length => match to_integer(length)? {
                    length if length >= 0 => start + length,
                    length => size + length,
                },
            },
        };
        let selected = usize::try_from(end.min(size) - start).unwrap_or(0);
        self.produce(selected)?;
        Ok(substring(&text, usize::try_from(start).unwrap_or(0), selected).into())
    }
}

/// Return the elements of an iteration.
fn elements<'a>(iteration: &Iteration, source: &'a Value) -> Result<&'a [Value]> {
    let may_be_missing =
        matches!(iteration.kind, IterationKind::Map | IterationKind::Filter | IterationKind::Reduce);
    match source {
        Value::Array(items) => Ok(items),
        Value::Null if may_be_missing && !iteration.source.is_null() => Ok(&[]),
        _ => {
            let message = format!("'{}' needs an array to go through", iteration.kind.name());
            Err(Error::new(Code::InvalidArguments, message))
        }
    }
}

fn contains(haystack: &str, needle: &str) -> bool {
    if haystack.len() > SHORT_TEXT || needle.is_empty() {
        return haystack.contains(needle);
    }
    haystack.as_bytes().windows(needle.len()).any(|part| part == needle.as_bytes())
}

/// Return a substring by code points.
fn substring(text: &str, start: usize, length: usize) -> &str {
    let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
    let end = start + length;
    let bytes = if text.is_ascii() { start..end } else { byte(start)..byte(end) };
    text.get(bytes).unwrap_or_default()
}

#[inline]
fn loosely_equal(a: &Value, b: &Value) -> Result<bool> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Ok(a == b),
        (Value::Text(a), Value::Text(b)) => Ok(a == b),
        _ => Ok(number(a)? == number(b)?),
    }
}

#[inline]
fn less(a: &Value, b: &Value) -> Result<bool> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Ok(a < b),
        (Value::Text(a), Value::Text(b)) => Ok(a < b),
        _ => Ok(number(a)? < number(b)?),
    }
}

impl Arithmetic {
    /// Apply the operation to two numbers, as [`Fold`] does.
    #[inline]
    fn apply(self, a: f64, b: f64) -> Result<f64> {
        finite(match self {
            Self::Sum => a + b,
            Self::Product => a * b,
            Self::Difference => a - b,
            Self::Quotient => a / divisor(b)?,
            Self::Remainder => a % divisor(b)?,
        })
    }
}

/// An arithmetic operation in progress.
///
/// The order of errors is: an argument that is not a number, too few arguments, then errors of the numbers.
struct Fold {
    operation: Arithmetic,
    total: f64,
    arguments: usize,
    not_a_number: Option<Error>,
    error: Option<Error>,
}

impl Fold {
    fn new(operation: Arithmetic) -> Self {
        let total = if matches!(operation, Arithmetic::Product) { 1.0 } else { 0.0 };
        Self { operation, total, arguments: 0, not_a_number: None, error: None }
    }

    #[inline]
    fn add(&mut self, value: Result<f64>) {
        match value {
            Ok(value) => match self.operation {
                Arithmetic::Sum => self.total += value,
                Arithmetic::Product => self.total *= value,
                _ if self.arguments == 0 => self.total = value,
                Arithmetic::Difference => self.total -= value,
                Arithmetic::Quotient => self.divide(|total, divisor| total / divisor, value),
                Arithmetic::Remainder => self.divide(|total, divisor| total % divisor, value),
            },
            Err(error) => {
                self.not_a_number.get_or_insert(error);
            }
        }
        self.arguments += 1;
    }

    fn divide(&mut self, operation: impl FnOnce(f64, f64) -> f64, value: f64) {
        if self.error.is_none() {
            match divisor(value).and_then(|divisor| finite(operation(self.total, divisor))) {
                Ok(total) => self.total = total,
                Err(error) => self.error = Some(error),
            }
        }
    }

    fn finish(self) -> Result<f64> {
        if let Some(error) = self.not_a_number {
            return Err(error);
        }
        let total = match (self.operation, self.arguments) {
            (Arithmetic::Difference, 0) => return Err(too_few_arguments("-", 1)),
            (Arithmetic::Quotient, 0) => return Err(too_few_arguments("/", 1)),
            (Arithmetic::Remainder, 0 | 1) => return Err(too_few_arguments("%", 2)),
            (Arithmetic::Difference, 1) => -self.total,
            (Arithmetic::Quotient, 1) => 1.0 / divisor(self.total)?,
            _ => self.total,
        };
        self.error.map_or_else(|| finite(total), Err)
    }
}

fn too_few_arguments(name: &str, least: usize) -> Error {
    Error::new(Code::InvalidArguments, format!("'{name}' needs at least {least} arguments"))
}

fn divisor(value: f64) -> Result<f64> {
    if value == 0.0 { Err(Error::new(Code::DivisionByZero, "division by zero")) } else { Ok(value) }
}

#[expect(clippy::cast_possible_truncation, reason = "clamped to 32 bits before")]
fn to_integer(value: &Value) -> Result<i64> {
    let limit = f64::from(1_u32 << 31);
    Ok(number(value)?.clamp(-limit, limit) as i64)
}
