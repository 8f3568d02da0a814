//! The interpreter. The order in which it burns fuel is part of what it means: it decides which error comes first.

use std::borrow::Cow;

use crate::canonical::number_text;
use crate::error::{Code, Error, Result};
use crate::paths::{Segment, lookup, split_variable};
use crate::value::{Array, Object, Value};

use super::convert::{append_text, check_depth, number};
use super::expression::{
    Arguments, Arithmetic, Expression, Extreme, Iteration, IterationKind, Pair, Relation, VariablePath,
};
use super::{Data, FUEL, OUTPUT_LIMIT, finite, truthy};

const CHARACTERS_PER_STEP: usize = 1024;

/// The values of a [`Pair`].
type Evaluated<'a> = (Cow<'a, Value>, Cow<'a, Value>, Vec<Cow<'a, Value>>);

/// One evaluation and what it may still spend.
pub(super) struct Evaluation {
    fuel: u32,
    output: usize,
}

impl Evaluation {
    pub(super) fn new() -> Self {
        Self { fuel: FUEL, output: OUTPUT_LIMIT }
    }

    /// The steps taken so far; all of them once they ran out.
    pub(super) fn spent(&self) -> u32 {
        FUEL - self.fuel
    }

    /// The value of an expression, borrowed where it stands in the expression or in the data.
    pub(super) fn value<'a>(&mut self, expression: &'a Expression, data: Data<'a>) -> Result<Cow<'a, Value>> {
        self.burn(1)?;
        let made = match expression {
            Expression::Literal(value) => return Ok(Cow::Borrowed(value)),
            Expression::Variable { path, others } => return self.variable(path, others, data),
            Expression::If(items) => return self.choose(items, data),
            Expression::Connective { stops_at, items } => return self.connective(*stops_at, items, data),
            Expression::Refused(error) => return Err(error.clone()),
            Expression::List(items) => self.list(items, data),
            Expression::Missing(arguments) => self.missing(arguments, data),
            Expression::MissingSome(pair) => self.missing_some(pair, data),
            Expression::Truth { negated, arguments } => self.truth(*negated, arguments, data),
            Expression::Chain { relation, first, rest } => self.chain(*relation, first, rest, data),
            Expression::Arithmetic { operation, arguments } => self.arithmetic(*operation, arguments, data),
            Expression::Extreme { extreme, arguments } => self.extreme(*extreme, arguments, data),
            Expression::Iteration(iteration) => self.iterate(iteration, data),
            Expression::Merge(arguments) => self.merge(arguments, data),
            Expression::In(pair) => self.contains(pair, data),
            Expression::Cat(arguments) => self.cat(arguments, data),
            Expression::Substr(pair) => self.substr(pair, data),
        };
        made.map(Cow::Owned)
    }

    fn burn(&mut self, amount: usize) -> Result<()> {
        let left = u32::try_from(amount).ok().and_then(|amount| self.fuel.checked_sub(amount));
        self.fuel = left.unwrap_or(0);
        if left.is_some() {
            Ok(())
        } else {
            Err(Error::new(Code::FuelExhausted, format!("the expression needs more than {FUEL} steps")))
        }
    }

    fn produce(&mut self, amount: usize) -> Result<()> {
        self.output = self.output.checked_sub(amount).ok_or_else(|| {
            let message = format!("the expression makes more than {OUTPUT_LIMIT} characters or items");
            Error::new(Code::FuelExhausted, message)
        })?;
        Ok(())
    }

    /// Charge a new array for everything in it: each item, each character, all the way down.
    fn made(&mut self, items: Vec<Value>) -> Result<Value> {
        let mut pending: Vec<&Value> = items.iter().collect();
        while let Some(item) = pending.pop() {
            self.produce(1 + item.as_text().map_or(0, length))?;
            match item {
                Value::Array(items) => pending.extend(items.iter()),
                Value::Object(members) => pending.extend(members.values()),
                _ => {}
            }
        }
        Ok(items.into())
    }

    fn values<'a>(&mut self, expressions: &'a [Expression], data: Data<'a>) -> Result<Vec<Cow<'a, Value>>> {
        expressions.iter().map(|expression| self.value(expression, data)).collect()
    }

    fn owned(&mut self, expression: &Expression, data: Data<'_>) -> Result<Value> {
        self.value(expression, data).map(Cow::into_owned)
    }

    fn is_true(&mut self, condition: &Expression, data: Data<'_>) -> Result<bool> {
        self.value(condition, data).map(|value| truthy(&value))
    }

    fn list(&mut self, items: &[Expression], data: Data<'_>) -> Result<Value> {
        let items = items.iter().map(|item| self.owned(item, data)).collect::<Result<_>>()?;
        self.made(items)
    }

    /// All arguments, evaluated; an operand that is not a list is the only argument.
    fn arguments<'a>(&mut self, arguments: &'a Arguments, data: Data<'a>) -> Result<Vec<Cow<'a, Value>>> {
        match arguments {
            Arguments::List(items) => self.values(items, data),
            Arguments::Single(item) => Ok(vec![self.value(item, data)?]),
        }
    }

    /// As `arguments`, but an operation that yields an array provides them all.
    fn spread<'a>(&mut self, arguments: &'a Arguments, data: Data<'a>) -> Result<Vec<Cow<'a, Value>>> {
        let values = self.arguments(arguments, data)?;
        Ok(match (arguments, values.as_slice()) {
            (Arguments::Single(_), [Cow::Borrowed(Value::Array(items))]) => {
                self.burn(items.len())?;
                items.iter().map(Cow::Borrowed).collect()
            }
            (Arguments::Single(_), [Cow::Owned(Value::Array(items))]) => {
                self.burn(items.len())?;
                items.iter().cloned().map(Cow::Owned).collect()
            }
            _ => values,
        })
    }

    fn pair<'a>(&mut self, pair: &'a Pair, data: Data<'a>) -> Result<Evaluated<'a>> {
        let first = self.value(&pair.first, data)?;
        let second = self.value(&pair.second, data)?;
        Ok((first, second, self.values(&pair.others, data)?))
    }

    // --- data ---

    fn variable<'a>(
        &mut self,
        path: &'a VariablePath,
        others: &'a [Expression],
        data: Data<'a>,
    ) -> Result<Cow<'a, Value>> {
        let (found, default) = match path {
            VariablePath::Nowhere => (Some(data.whole()), None),
            VariablePath::Fixed(segments) => {
                self.burn(1)?;
                let default = self.default(others, data)?;
                (data.find(segments), default)
            }
            VariablePath::Computed(path) => {
                let path = self.value(path, data)?;
                let default = self.default(others, data)?;
                (data.find_computed(&path)?, default)
            }
        };
        Ok(found.or(default).unwrap_or(Cow::Owned(Value::Null)))
    }

    /// What a variable is where there is nothing: its second argument; further ones are evaluated, too.
    fn default<'a>(&mut self, others: &'a [Expression], data: Data<'a>) -> Result<Option<Cow<'a, Value>>> {
        let Some((first, rest)) = others.split_first() else { return Ok(None) };
        let default = self.value(first, data)?;
        self.values(rest, data)?;
        Ok(Some(default))
    }

    fn missing(&mut self, arguments: &Arguments, data: Data<'_>) -> Result<Value> {
        let values = self.arguments(arguments, data)?;
        let absent = if let Some(paths) = values.first().and_then(|first| first.as_array()) {
            self.burn(paths.len())?;
            data.absent(paths.iter())
        } else {
            self.burn(values.len())?;
            data.absent(values.iter().map(|value| &**value))
        };
        absent.map(Value::from)
    }

    fn missing_some(&mut self, pair: &Pair, data: Data<'_>) -> Result<Value> {
        let (needed, paths, _) = self.pair(pair, data)?;
        let (Value::Number(needed), Value::Array(paths)) = (&*needed, &*paths) else {
            let message = "'missing_some' needs a number and a list of paths";
            return Err(Error::new(Code::InvalidArguments, message));
        };
        self.burn(paths.len())?;
        let absent = data.absent(paths.iter())?;
        Ok(if count(paths.len() - absent.len()) >= *needed { Vec::new() } else { absent }.into())
    }

    // --- control ---

    fn choose<'a>(&mut self, items: &'a [Expression], data: Data<'a>) -> Result<Cow<'a, Value>> {
        for clause in items.chunks(2) {
            match clause {
                [condition, then] if self.is_true(condition, data)? => return self.value(then, data),
                [otherwise] => return self.value(otherwise, data),
                _ => {}
            }
        }
        Ok(Cow::Owned(Value::Null))
    }

    fn connective<'a>(
        &mut self,
        stops_at: bool,
        items: &'a [Expression],
        data: Data<'a>,
    ) -> Result<Cow<'a, Value>> {
        let mut value = Cow::Owned(Value::Bool(false));
        for item in items {
            value = self.value(item, data)?;
            if truthy(&value) == stops_at {
                break;
            }
        }
        Ok(value)
    }

    fn truth(&mut self, negated: bool, arguments: &Arguments, data: Data<'_>) -> Result<Value> {
        let values = self.arguments(arguments, data)?;
        Ok(Value::Bool(values.first().is_some_and(|value| truthy(value)) != negated))
    }

    // --- comparison ---

    fn chain(
        &mut self,
        relation: Relation,
        first: &Expression,
        rest: &[Expression],
        data: Data<'_>,
    ) -> Result<Value> {
        let mut previous = self.value(first, data)?;
        for item in rest {
            let value = self.value(item, data)?;
            if !self.holds(relation, &previous, &value)? {
                return Ok(Value::Bool(false));
            }
            previous = value;
        }
        Ok(Value::Bool(true))
    }

    fn holds(&mut self, relation: Relation, a: &Value, b: &Value) -> Result<bool> {
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

    /// Strict, structural equality.
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

    fn arithmetic(&mut self, operation: Arithmetic, arguments: &Arguments, data: Data<'_>) -> Result<Value> {
        let values = self.spread(arguments, data)?;
        let numbers: Vec<f64> = values.iter().map(|value| number(value)).collect::<Result<_>>()?;
        let result = match operation {
            Arithmetic::Sum => finite(numbers.iter().fold(0.0, |total, value| total + value)),
            Arithmetic::Product => finite(numbers.iter().fold(1.0, |total, value| total * value)),
            Arithmetic::Difference => difference(&numbers),
            Arithmetic::Quotient => quotient(&numbers),
            Arithmetic::Remainder => remainder(&numbers),
        };
        Ok(Value::Number(result?))
    }

    fn extreme(&mut self, extreme: Extreme, arguments: &Arguments, data: Data<'_>) -> Result<Value> {
        let values = self.spread(arguments, data)?;
        let numbers: Option<Vec<f64>> = values.iter().map(|value| value.as_number()).collect();
        let best = numbers.and_then(|numbers| {
            numbers.into_iter().reduce(|best, value| match extreme {
                Extreme::Least => {
                    if value < best {
                        value
                    } else {
                        best
                    }
                }
                Extreme::Greatest => {
                    if value > best {
                        value
                    } else {
                        best
                    }
                }
            })
        });
        best.map(Value::Number).ok_or_else(|| {
            let name = match extreme {
                Extreme::Least => "min",
                Extreme::Greatest => "max",
            };
            Error::new(Code::InvalidArguments, format!("'{name}' needs numbers, at least one"))
        })
    }

    // --- arrays ---

    fn iterate(&mut self, iteration: &Iteration, data: Data<'_>) -> Result<Value> {
        let source = self.value(&iteration.source, data)?;
        let elements = elements(iteration, &source)?;
        let body = &iteration.body;
        match iteration.kind {
            IterationKind::Map => {
                let items = elements.iter().map(|element| self.owned(body, Data::Value(element)));
                let items = items.collect::<Result<_>>()?;
                self.made(items)
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
        let mut kept = Vec::new();
        for element in elements {
            if self.is_true(body, Data::Value(element))? {
                self.produce(1)?;
                kept.push(element.clone());
            }
        }
        Ok(kept.into())
    }

    fn reduce(&mut self, elements: &[Value], iteration: &Iteration, data: Data<'_>) -> Result<Value> {
        let mut elements = elements.iter();
        let mut total = match &iteration.start {
            Some(start) => self.owned(start, data)?,
            None => elements.next().cloned().unwrap_or(Value::Null),
        };
        for element in elements {
            total =
                self.owned(&iteration.body, Data::Members(&[("current", element), ("accumulator", &total)]))?;
        }
        Ok(total)
    }

    /// Whether the truth of the body is as wanted for any element; it stops at the first.
    fn any(&mut self, elements: &[Value], body: &Expression, wanted: bool) -> Result<bool> {
        for element in elements {
            if self.is_true(body, Data::Value(element))? == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn merge(&mut self, arguments: &Arguments, data: Data<'_>) -> Result<Value> {
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
        self.made(merged)
    }

    // --- text ---

    fn contains(&mut self, pair: &Pair, data: Data<'_>) -> Result<Value> {
        let (needle, haystack, _) = self.pair(pair, data)?;
        let found = match (&*needle, &*haystack) {
            (needle, Value::Array(items)) => {
                for item in items.iter() {
                    if self.equal(needle, item, 0)? {
                        return Ok(Value::Bool(true));
                    }
                }
                false
            }
            (Value::Text(needle), Value::Text(haystack)) => {
                self.burn(length(haystack) / CHARACTERS_PER_STEP)?;
                haystack.contains(&**needle)
            }
            _ => false,
        };
        Ok(Value::Bool(found))
    }

    fn cat(&mut self, arguments: &Arguments, data: Data<'_>) -> Result<Value> {
        let mut text = String::new();
        for value in self.spread(arguments, data)? {
            let start = text.len();
            append_text(&mut text, &value, 0)?;
            self.produce(length(text.get(start..).unwrap_or_default()))?;
        }
        Ok(text.into())
    }

    fn substr(&mut self, pair: &Pair, data: Data<'_>) -> Result<Value> {
        let (source, start, others) = self.pair(pair, data)?;
        let mut text = String::new();
        append_text(&mut text, &source, 0)?;
        let size = length(&text);
        self.burn(size / CHARACTERS_PER_STEP)?;
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let start = whole(&start)?;
        let start = if start < 0 { (size + start).max(0) } else { start.min(size) };
        let end = match others.first() {
            None => size,
            Some(length) => match &**length {
                Value::Null => size,
                length => match whole(length)? {
                    length if length >= 0 => start + length,
                    length => size + length,
                },
            },
        };
        let kept = usize::try_from(end.min(size) - start).unwrap_or(0);
        self.produce(kept)?;
        let part: String = text.chars().skip(usize::try_from(start).unwrap_or(0)).take(kept).collect();
        Ok(part.into())
    }
}

/// What an iterator goes through.
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

impl<'a> Data<'a> {
    fn find(self, path: &[Segment]) -> Option<Cow<'a, Value>> {
        match (self, path) {
            (_, []) => Some(self.whole()),
            (Self::Value(value), path) => lookup(value, path).map(Cow::Borrowed),
            (Self::Members(members), [first, rest @ ..]) => {
                let Segment::Key(name) = first else { return None };
                let (_, value) = members.iter().find(|(member, _)| *member == &**name)?;
                lookup(value, rest).map(Cow::Borrowed)
            }
        }
    }

    fn find_computed(self, path: &Value) -> Result<Option<Cow<'a, Value>>> {
        match path {
            Value::Null => Ok(Some(self.whole())),
            Value::Text(text) => Ok(self.find(&split_variable(text))),
            Value::Number(number) => Ok(self.find(&split_variable(&number_text(*number)))),
            _ => Err(Error::new(Code::InvalidArguments, "'var' needs a path")),
        }
    }

    /// Those of the paths at which there is nothing, null or "".
    fn absent<'p>(self, paths: impl Iterator<Item = &'p Value>) -> Result<Vec<Value>> {
        let mut absent = Vec::new();
        for path in paths {
            let found = self.find_computed(path)?;
            let is_there = match found.as_deref() {
                None | Some(Value::Null) => false,
                Some(Value::Text(text)) => !text.is_empty(),
                Some(_) => true,
            };
            if !is_there {
                absent.push(path.clone());
            }
        }
        Ok(absent)
    }
}

fn loosely_equal(a: &Value, b: &Value) -> Result<bool> {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => Ok(a == b),
        _ => Ok(number(a)? == number(b)?),
    }
}

fn less(a: &Value, b: &Value) -> Result<bool> {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => Ok(a < b),
        _ => Ok(number(a)? < number(b)?),
    }
}

fn difference(numbers: &[f64]) -> Result<f64> {
    match numbers {
        [] => Err(too_few("-", 1)),
        [only] => finite(-only),
        [first, rest @ ..] => finite(rest.iter().fold(*first, |total, value| total - value)),
    }
}

fn quotient(numbers: &[f64]) -> Result<f64> {
    match numbers {
        [] => Err(too_few("/", 1)),
        [only] => finite(1.0 / divisor(*only)?),
        [first, rest @ ..] => rest.iter().try_fold(*first, |total, value| finite(total / divisor(*value)?)),
    }
}

fn remainder(numbers: &[f64]) -> Result<f64> {
    match numbers {
        [] | [_] => Err(too_few("%", 2)),
        [first, rest @ ..] => rest.iter().try_fold(*first, |total, value| finite(total % divisor(*value)?)),
    }
}

fn too_few(name: &str, least: usize) -> Error {
    Error::new(Code::InvalidArguments, format!("'{name}' needs at least {least} arguments"))
}

fn divisor(value: f64) -> Result<f64> {
    if value == 0.0 { Err(Error::new(Code::DivisionByZero, "division by zero")) } else { Ok(value) }
}

#[expect(clippy::cast_possible_truncation, reason = "clamped to 32 bits before")]
fn whole(value: &Value) -> Result<i64> {
    let limit = f64::from(1_u32 << 31);
    Ok(number(value)?.clamp(-limit, limit) as i64)
}

/// The length of a text in code points.
fn length(text: &str) -> usize {
    text.chars().count()
}

#[expect(clippy::cast_precision_loss, reason = "no array has 2^53 items")]
fn count(items: usize) -> f64 {
    items as f64
}
