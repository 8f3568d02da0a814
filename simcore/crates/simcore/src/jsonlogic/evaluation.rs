//! The interpreter. The order in which it burns fuel is part of what it means: it decides which error comes first.

use std::borrow::Cow;

use crate::canonical_json::number_text;
use crate::error::{Code, Error, Result};
use crate::paths::{Segment, lookup, lookup_variable, split_variable};
use crate::value::{Array, Object, Value};

use super::coercion::{append_text, check_depth, number, text_of};
use super::expression::{
    Arguments, Arithmetic, Constant, Expression, Extreme, Iteration, IterationKind, Pair, Relation,
    VariablePath,
};
use super::{Data, FUEL, OUTPUT_LIMIT, THINGS_PER_STEP, finite, truthy};

const CHARACTERS_PER_STEP: usize = 1024;
/// To take a path apart costs more than to search a text.
const PATH_CHARACTERS_PER_STEP: usize = 64;
/// What it costs to compare a variable with a literal: the comparison, the variable and its path, the literal.
const COMPARISON: u32 = 4;
/// A text that is so short is searched faster without preparing the search.
const SHORT_TEXT: usize = 64;
/// Room for what most expressions join.
const USUAL_TEXT: usize = 64;

/// What a variable is where there is nothing.
static NULL: Value = Value::Null;

/// The values of a [`Pair`].
type Evaluated<'a> = (Cow<'a, Value>, Cow<'a, Value>, Vec<Cow<'a, Value>>);

/// One evaluation and what it may still spend.
#[derive(Clone)]
pub(super) struct Evaluation {
    fuel: u32,
    output: usize,
}

impl Evaluation {
    pub(super) fn new() -> Self {
        Self { fuel: FUEL, output: OUTPUT_LIMIT }
    }

    /// What a call pays for it so far: its fuel, and a step for every few things made.
    pub(super) fn steps(&self) -> u64 {
        u64::from(FUEL - self.fuel) + (OUTPUT_LIMIT - self.output) as u64 / THINGS_PER_STEP
    }

    /// The steps taken and the output made since an earlier moment.
    pub(super) fn usage_since(&self, earlier: &Self) -> (u32, usize) {
        (earlier.fuel - self.fuel, earlier.output - self.output)
    }

    /// The value of an expression, borrowed where it stands in the expression or in the data.
    #[inline]
    pub(super) fn value<'a>(&mut self, expression: &'a Expression, data: Data<'a>) -> Result<Cow<'a, Value>> {
        if let Some((value, steps)) = immediate(expression, data) {
            self.burn(steps)?;
            return Ok(Cow::Borrowed(value));
        }
        self.operation(expression, data)
    }

    fn operation<'a>(&mut self, expression: &'a Expression, data: Data<'a>) -> Result<Cow<'a, Value>> {
        if let Expression::Constant(constant) = expression {
            return self.constant(constant, data);
        }
        self.burn(1)?;
        let value = match expression {
            Expression::Literal(value) => return Ok(Cow::Borrowed(value)),
            Expression::Constant(constant) => return self.constant(constant, data),
            Expression::Field(path) => {
                self.burn(1)?;
                return Ok(data.find(path).unwrap_or(Cow::Borrowed(&NULL)));
            }
            Expression::Variable { path, others } => return self.variable(path, others, data),
            Expression::If(items) => return self.branch(items, data),
            Expression::Connective { stops_at, items } => return self.connective(*stops_at, items, data),
            Expression::Invalid(error) => return Err(error.clone()),
            Expression::Truth { negated, arguments } => {
                self.truth(*negated, arguments, data).map(Value::Bool)
            }
            Expression::Chain { relation, first, rest } => {
                self.chain(*relation, first, rest, data).map(Value::Bool)
            }
            Expression::Arithmetic { operation, arguments } => {
                self.arithmetic(*operation, arguments, data).map(Value::Number)
            }
            Expression::Extreme { extreme, arguments } => {
                self.extreme(*extreme, arguments, data).map(Value::Number)
            }
            Expression::In(pair) => self.contains(pair, data).map(Value::Bool),
            Expression::List(items) => self.list(items, data),
            Expression::Missing(arguments) => self.missing(arguments, data),
            Expression::MissingSome(pair) => self.missing_some(pair, data),
            Expression::Iteration(iteration) => self.iterate(iteration, data),
            Expression::Merge(arguments) => self.merge(arguments, data),
            Expression::Cat(arguments) => self.cat(arguments, data),
            Expression::Substr(pair) => self.substr(pair, data),
        };
        value.map(Cow::Owned)
    }

    /// What was evaluated before, for what it cost. When that is too much, evaluating it again tells what for.
    fn constant<'a>(&mut self, constant: &'a Constant, data: Data<'a>) -> Result<Cow<'a, Value>> {
        let fuel = self.fuel.checked_sub(constant.steps);
        let output = self.output.checked_sub(constant.output);
        let (Some(fuel), Some(output)) = (fuel, output) else {
            return self.operation(&constant.original, data);
        };
        (self.fuel, self.output) = (fuel, output);
        Ok(Cow::Borrowed(&constant.value))
    }

    #[inline]
    fn burn(&mut self, steps: u32) -> Result<()> {
        match self.fuel.checked_sub(steps) {
            Some(left) => {
                self.fuel = left;
                Ok(())
            }
            None => Err(self.fuel_exhausted()),
        }
    }

    /// One step for each of some things.
    fn burn_each(&mut self, things: usize) -> Result<()> {
        self.burn(u32::try_from(things).unwrap_or(u32::MAX))
    }

    #[cold]
    fn fuel_exhausted(&mut self) -> Error {
        self.fuel = 0;
        Error::new(Code::FuelExhausted, format!("the expression needs more than {FUEL} steps"))
    }

    fn produce(&mut self, amount: usize) -> Result<()> {
        let left = self.output.checked_sub(amount);
        self.output = left.unwrap_or(0);
        if left.is_some() {
            return Ok(());
        }
        let message = format!("the expression makes more than {OUTPUT_LIMIT} characters or items");
        Err(Error::new(Code::FuelExhausted, message))
    }

    /// Charge a new array for everything in it: each item, each character, all the way down.
    fn charge_array(&mut self, items: Vec<Value>) -> Result<Value> {
        let mut pending = Vec::new();
        for item in &items {
            self.charge(item, &mut pending)?;
        }
        while let Some(container) = pending.pop() {
            match container {
                Value::Array(items) => items.iter().try_for_each(|item| self.charge(item, &mut pending))?,
                Value::Object(members) => {
                    members.values().try_for_each(|item| self.charge(item, &mut pending))?;
                }
                _ => {}
            }
        }
        Ok(items.into())
    }

    /// Charge an item for itself; what it holds is yet to be charged.
    fn charge<'v>(&mut self, item: &'v Value, pending: &mut Vec<&'v Value>) -> Result<()> {
        match item {
            Value::Text(text) => return self.produce(1 + length(text)),
            Value::Array(_) | Value::Object(_) => pending.push(item),
            _ => {}
        }
        self.produce(1)
    }

    fn values<'a>(&mut self, expressions: &'a [Expression], data: Data<'a>) -> Result<Vec<Cow<'a, Value>>> {
        expressions.iter().map(|expression| self.value(expression, data)).collect()
    }

    fn owned(&mut self, expression: &Expression, data: Data<'_>) -> Result<Value> {
        self.value(expression, data).map(Cow::into_owned)
    }

    /// Whether the value of an expression is a true one; most conditions need no value to tell.
    fn is_true(&mut self, condition: &Expression, data: Data<'_>) -> Result<bool> {
        match condition {
            Expression::Chain { relation, first, rest } => {
                self.burn(1)?;
                self.chain(*relation, first, rest, data)
            }
            Expression::Truth { negated, arguments } => {
                self.burn(1)?;
                self.truth(*negated, arguments, data)
            }
            Expression::Connective { stops_at, items } => {
                self.burn(1)?;
                let mut holds = false;
                for item in items {
                    holds = self.is_true(item, data)?;
                    if holds == *stops_at {
                        break;
                    }
                }
                Ok(holds)
            }
            _ => self.value(condition, data).map(|value| truthy(&value)),
        }
    }

    #[inline(never)]
    fn list(&mut self, items: &[Expression], data: Data<'_>) -> Result<Value> {
        let items = items.iter().map(|item| self.owned(item, data)).collect::<Result<_>>()?;
        self.charge_array(items)
    }

    /// All arguments, evaluated; an operand that is not a list is the only argument.
    fn arguments<'a>(&mut self, arguments: &'a Arguments, data: Data<'a>) -> Result<Vec<Cow<'a, Value>>> {
        match arguments {
            Arguments::List(items) => self.values(items, data),
            Arguments::Single(item) => Ok(vec![self.value(item, data)?]),
        }
    }

    /// Look at each argument as it is evaluated; an operation that yields an array provides them all.
    ///
    /// Operators fail over their arguments only when all of them are there: until then `look` keeps its refusal.
    fn spread(&mut self, arguments: &Arguments, data: Data<'_>, mut look: impl FnMut(&Value)) -> Result<()> {
        match arguments {
            Arguments::List(items) => {
                for item in items {
                    look(&*self.value(item, data)?);
                }
            }
            Arguments::Single(item) => match &*self.value(item, data)? {
                Value::Array(items) => {
                    self.burn_each(items.len())?;
                    items.iter().for_each(look);
                }
                value => look(value),
            },
        }
        Ok(())
    }

    fn pair<'a>(&mut self, pair: &'a Pair, data: Data<'a>) -> Result<Evaluated<'a>> {
        let first = self.value(&pair.first, data)?;
        let second = self.value(&pair.second, data)?;
        Ok((first, second, self.values(&pair.others, data)?))
    }

    // --- data ---

    #[inline(never)]
    fn variable<'a>(
        &mut self,
        path: &'a VariablePath,
        others: &'a [Expression],
        data: Data<'a>,
    ) -> Result<Cow<'a, Value>> {
        let (found, default) = match path {
            VariablePath::Nowhere => (Some(data.to_value()), None),
            VariablePath::Fixed(segments) => {
                self.burn(1)?;
                let default = self.default(others, data)?;
                (data.find(segments), default)
            }
            VariablePath::Computed(path) => {
                let path = self.value(path, data)?;
                let default = self.default(others, data)?;
                self.burn_each(path_steps(&path))?;
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

    #[inline(never)]
    fn missing(&mut self, arguments: &Arguments, data: Data<'_>) -> Result<Value> {
        let values = self.arguments(arguments, data)?;
        let missing = if let Some(paths) = values.first().and_then(|first| first.as_array()) {
            self.burn_each(paths.len() + paths.iter().map(path_steps).sum::<usize>())?;
            data.missing_paths(paths.iter())
        } else {
            self.burn_each(values.len() + values.iter().map(|path| path_steps(path)).sum::<usize>())?;
            data.missing_paths(values.iter().map(|value| &**value))
        };
        missing.map(Value::from)
    }

    #[inline(never)]
    fn missing_some(&mut self, pair: &Pair, data: Data<'_>) -> Result<Value> {
        let (needed, paths, _) = self.pair(pair, data)?;
        let (Value::Number(needed), Value::Array(paths)) = (&*needed, &*paths) else {
            let message = "'missing_some' needs a number and a list of paths";
            return Err(Error::new(Code::InvalidArguments, message));
        };
        self.burn_each(paths.len() + paths.iter().map(path_steps).sum::<usize>())?;
        let missing = data.missing_paths(paths.iter())?;
        Ok(if count(paths.len() - missing.len()) >= *needed { Vec::new() } else { missing }.into())
    }

    // --- control ---

    fn branch<'a>(&mut self, items: &'a [Expression], data: Data<'a>) -> Result<Cow<'a, Value>> {
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

    fn truth(&mut self, negated: bool, arguments: &Arguments, data: Data<'_>) -> Result<bool> {
        let holds = match arguments {
            Arguments::Single(item) => self.is_true(item, data)?,
            Arguments::List(items) => {
                let mut items = items.iter();
                let holds = items.next().map_or(Ok(false), |first| self.is_true(first, data))?;
                for item in items {
                    self.value(item, data)?;
                }
                holds
            }
        };
        Ok(holds != negated)
    }

    // --- comparison ---

    #[inline]
    fn chain(
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

    #[expect(clippy::inline_always, reason = "measured: a call costs more than what it does")]
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

    fn arithmetic(&mut self, operation: Arithmetic, arguments: &Arguments, data: Data<'_>) -> Result<f64> {
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
    fn extreme(&mut self, extreme: Extreme, arguments: &Arguments, data: Data<'_>) -> Result<f64> {
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
    fn iterate(&mut self, iteration: &Iteration, data: Data<'_>) -> Result<Value> {
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
                        items.push(self.owned(body, Data::Value(element))?);
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
            Some(start) => self.owned(start, data)?,
            None => elements.next().cloned().unwrap_or(Value::Null),
        };
        for element in elements {
            let members = [("current", element), ("accumulator", &total)];
            total = match &iteration.body {
                Expression::Arithmetic { operation, arguments } => {
                    self.burn(1)?;
                    self.arithmetic(*operation, arguments, Data::Members(&members))?.into()
                }
                body => self.owned(body, Data::Members(&members))?,
            };
        }
        Ok(total)
    }

    /// Whether the truth of the body is as wanted for any element; it stops at the first.
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
        self.charge_array(merged)
    }

    // --- text ---

    #[inline(never)]
    fn contains(&mut self, pair: &Pair, data: Data<'_>) -> Result<bool> {
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
    fn cat(&mut self, arguments: &Arguments, data: Data<'_>) -> Result<Value> {
        let mut text = String::with_capacity(USUAL_TEXT);
        let mut size = 0;
        let mut failure = None;
        self.spread(arguments, data, |value| {
            // What is beyond the limit already is refused below.
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
    fn substr(&mut self, pair: &Pair, data: Data<'_>) -> Result<Value> {
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

/// What needs no evaluation, and how many steps it costs nevertheless.
#[expect(clippy::inline_always, reason = "measured: a call costs more than what it does")]
#[inline(always)]
fn immediate<'a>(expression: &'a Expression, data: Data<'a>) -> Option<(&'a Value, u32)> {
    match (expression, data) {
        (Expression::Literal(value), _) => Some((value, 1)),
        (Expression::Field(path), Data::Value(value)) => Some((lookup(value, path).unwrap_or(&NULL), 2)),
        (Expression::Field(path), Data::Members(members)) if !path.is_empty() => {
            Some((member(members, path).unwrap_or(&NULL), 2))
        }
        _ => None,
    }
}

/// The value at a path that begins with one of some names.
#[inline]
fn member<'a>(members: &[(&'static str, &'a Value)], path: &[Segment]) -> Option<&'a Value> {
    let (Segment::Key(name), rest) = path.split_first()? else { return None };
    let (_, value) = members.iter().find(|(member, _)| *member == &**name)?;
    lookup(value, rest)
}

fn contains(haystack: &str, needle: &str) -> bool {
    if haystack.len() > SHORT_TEXT || needle.is_empty() {
        return haystack.contains(needle);
    }
    haystack.as_bytes().windows(needle.len()).any(|part| part == needle.as_bytes())
}

/// Some characters of a text.
fn substring(text: &str, start: usize, length: usize) -> &str {
    let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
    let end = start + length;
    let bytes = if text.is_ascii() { start..end } else { byte(start)..byte(end) };
    text.get(bytes).unwrap_or_default()
}

impl<'a> Data<'a> {
    fn find(self, path: &[Segment]) -> Option<Cow<'a, Value>> {
        match (self, path) {
            (_, []) => Some(self.to_value()),
            (Self::Value(value), path) => lookup(value, path).map(Cow::Borrowed),
            (Self::Members(members), path) => member(members, path).map(Cow::Borrowed),
        }
    }

    fn find_computed(self, path: &Value) -> Result<Option<Cow<'a, Value>>> {
        match path {
            Value::Null => Ok(Some(self.to_value())),
            Value::Text(text) => Ok(self.find_text(text)),
            Value::Number(number) => Ok(self.find_text(&number_text(*number))),
            _ => Err(Error::new(Code::InvalidArguments, "'var' needs a path")),
        }
    }

    fn find_text(self, path: &str) -> Option<Cow<'a, Value>> {
        match self {
            Self::Value(value) => lookup_variable(value, path).map(Cow::Borrowed),
            Self::Members(_) => self.find(&split_variable(path)),
        }
    }

    /// Those of the paths at which there is nothing, null or "".
    fn missing_paths<'p>(self, paths: impl Iterator<Item = &'p Value>) -> Result<Vec<Value>> {
        let mut missing = Vec::new();
        for path in paths {
            let found = self.find_computed(path)?;
            let is_there = match found.as_deref() {
                None | Some(Value::Null) => false,
                Some(Value::Text(text)) => !text.is_empty(),
                Some(_) => true,
            };
            if !is_there {
                missing.push(path.clone());
            }
        }
        Ok(missing)
    }
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
    /// What [`Fold`] makes of two numbers.
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

/// An arithmetic operation under way. It fails first over what is no number, then over too few arguments, and only
/// then over the numbers themselves.
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

/// What it costs to take a path apart that is not part of the expression.
fn path_steps(path: &Value) -> usize {
    path.as_text().map_or(0, length) / PATH_CHARACTERS_PER_STEP
}

/// The length of a text in code points.
fn length(text: &str) -> usize {
    text.chars().count()
}

#[expect(clippy::cast_precision_loss, reason = "no array has 2^53 items")]
fn count(items: usize) -> f64 {
    items as f64
}
