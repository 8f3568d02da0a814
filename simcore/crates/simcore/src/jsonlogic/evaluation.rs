//! Evaluator of JSONLogic: control operators, variables and fuel.
//!
//! The order of fuel charges is part of the semantics: it determines which error occurs first.

use std::borrow::Cow;

use crate::canonical_json::number_text;
use crate::error::{Code, Error, Result};
use crate::paths::{Segment, lookup, lookup_variable, split_variable};
use crate::value::Value;

use super::expression::{Arguments, Constant, Expression, Pair, VariablePath};
use super::{Data, FUEL, OUTPUT_LIMIT, THINGS_PER_STEP, truthy};

pub(super) const CHARACTERS_PER_STEP: usize = 1024;
/// Splitting a path costs more than searching a text.
const PATH_CHARACTERS_PER_STEP: usize = 64;
/// The value of a missing variable.
pub(super) static NULL: Value = Value::Null;

/// The values of a [`Pair`].
type Evaluated<'a> = (Cow<'a, Value>, Cow<'a, Value>, Vec<Cow<'a, Value>>);

/// State of one evaluation: remaining fuel and output.
#[derive(Clone)]
pub(super) struct Evaluation {
    fuel: u32,
    pub(super) output: usize,
}

impl Evaluation {
    pub(super) fn new() -> Self {
        Self { fuel: FUEL, output: OUTPUT_LIMIT }
    }

    /// Return the steps that a call pays: the fuel, and one step for each [`THINGS_PER_STEP`] things created.
    pub(super) fn steps(&self) -> u64 {
        u64::from(FUEL - self.fuel) + (OUTPUT_LIMIT - self.output) as u64 / THINGS_PER_STEP
    }

    /// Return fuel and output since an earlier point.
    pub(super) fn usage_since(&self, earlier: &Self) -> (u32, usize) {
        (earlier.fuel - self.fuel, earlier.output - self.output)
    }

    /// Evaluate an expression. The value is borrowed if it is part of the expression or of the data.
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

    /// Return a folded constant at its original cost. If the budget is too small, evaluate it again for the
    /// exact error.
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
    pub(super) fn burn(&mut self, steps: u32) -> Result<()> {
        match self.fuel.checked_sub(steps) {
            Some(left) => {
                self.fuel = left;
                Ok(())
            }
            None => Err(self.fuel_exhausted()),
        }
    }

    /// Charge one step for each thing.
    pub(super) fn burn_each(&mut self, things: usize) -> Result<()> {
        self.burn(u32::try_from(things).unwrap_or(u32::MAX))
    }

    #[cold]
    fn fuel_exhausted(&mut self) -> Error {
        self.fuel = 0;
        Error::new(Code::FuelExhausted, format!("the expression needs more than {FUEL} steps"))
    }

    pub(super) fn produce(&mut self, amount: usize) -> Result<()> {
        let left = self.output.checked_sub(amount);
        self.output = left.unwrap_or(0);
        if left.is_some() {
            return Ok(());
        }
        let message = format!("the expression makes more than {OUTPUT_LIMIT} characters or items");
        Err(Error::new(Code::FuelExhausted, message))
    }

    /// Charge a new array: one unit for each item and each character, at every level.
    pub(super) fn charge_array(&mut self, items: Vec<Value>) -> Result<Value> {
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

    /// Charge one item. Its content is pushed to `pending`.
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

    pub(super) fn evaluate_owned(&mut self, expression: &Expression, data: Data<'_>) -> Result<Value> {
        self.value(expression, data).map(Cow::into_owned)
    }

    /// Return the truth of an expression. Most conditions need no value for it.
    pub(super) fn is_true(&mut self, condition: &Expression, data: Data<'_>) -> Result<bool> {
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
        let items = items.iter().map(|item| self.evaluate_owned(item, data)).collect::<Result<_>>()?;
        self.charge_array(items)
    }

    /// Evaluate all arguments. An operand that is not a list is the only argument.
    pub(super) fn arguments<'a>(
        &mut self,
        arguments: &'a Arguments,
        data: Data<'a>,
    ) -> Result<Vec<Cow<'a, Value>>> {
        match arguments {
            Arguments::List(items) => self.values(items, data),
            Arguments::Single(item) => Ok(vec![self.value(item, data)?]),
        }
    }

    /// Visit each argument as it is evaluated. An operation that returns an array provides all arguments.
    ///
    /// An operator reports an error of its arguments only after all are evaluated, so `look` stores the
    /// error.
    pub(super) fn spread(
        &mut self,
        arguments: &Arguments,
        data: Data<'_>,
        mut visit: impl FnMut(&Value),
    ) -> Result<()> {
        match arguments {
            Arguments::List(items) => {
                for item in items {
                    visit(&*self.value(item, data)?);
                }
            }
            Arguments::Single(item) => match &*self.value(item, data)? {
                Value::Array(items) => {
                    self.burn_each(items.len())?;
                    items.iter().for_each(visit);
                }
                value => visit(value),
            },
        }
        Ok(())
    }

    pub(super) fn pair<'a>(&mut self, pair: &'a Pair, data: Data<'a>) -> Result<Evaluated<'a>> {
        let first = self.value(&pair.first, data)?;
        let second = self.value(&pair.second, data)?;
        Ok((first, second, self.values(&pair.others, data)?))
    }

    // --- variables ---

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

    /// Evaluate the default of a variable: its second argument. Further arguments are evaluated too.
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
}

/// Return a value that needs no evaluation, with its cost in steps.
#[expect(clippy::inline_always, reason = "measured: the call costs more than the body")]
#[inline(always)]
pub(super) fn immediate<'a>(expression: &'a Expression, data: Data<'a>) -> Option<(&'a Value, u32)> {
    match (expression, data) {
        (Expression::Literal(value), _) => Some((value, 1)),
        (Expression::Field(path), Data::Value(value)) => Some((lookup(value, path).unwrap_or(&NULL), 2)),
        (Expression::Field(path), Data::Members(members)) if !path.is_empty() => {
            Some((member(members, path).unwrap_or(&NULL), 2))
        }
        _ => None,
    }
}

/// Return the value at a path that begins with the name of a member.
#[inline]
fn member<'a>(members: &[(&'static str, &'a Value)], path: &[Segment]) -> Option<&'a Value> {
    let (Segment::Key(name), rest) = path.split_first()? else { return None };
    let (_, value) = members.iter().find(|(member, _)| *member == &**name)?;
    lookup(value, rest)
}

/// Return the cost of splitting a path that is not part of the expression.
fn path_steps(path: &Value) -> usize {
    path.as_text().map_or(0, length) / PATH_CHARACTERS_PER_STEP
}

/// Return the length of a text in code points.
pub(super) fn length(text: &str) -> usize {
    text.chars().count()
}

#[expect(clippy::cast_precision_loss, reason = "no array has 2^53 items")]
pub(super) fn count(items: usize) -> f64 {
    items as f64
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

    /// Return the paths that are absent, null or "".
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
