//! Compiled expressions: operators resolved, arguments counted, paths split.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Code, Error};
use crate::json_node::{Json, View};
use crate::paths::{Segment, split_variable};
use crate::value::Value;

/// Cache of split variables. Most variables are read more than once.
#[derive(Default)]
pub(crate) struct Fields<'v>(HashMap<&'v str, Arc<[Segment]>>);

/// Approximate number of variables of most scenarios.
const USUAL_VARIABLES: usize = 48;

impl<'v> Fields<'v> {
    /// Create a cache with capacity for a scenario.
    pub(crate) fn of_scenario() -> Self {
        Self(HashMap::with_capacity(USUAL_VARIABLES))
    }

    fn path(&mut self, text: &'v str) -> Arc<[Segment]> {
        Arc::clone(self.0.entry(text).or_insert_with(|| split_variable(text).into()))
    }
}

/// A compiled expression. An expression that always fails is `Invalid`: it fails when it is evaluated, as in
/// the reference.
#[derive(Clone, Debug)]
pub(super) enum Expression {
    Literal(Value),
    /// A variable with a constant path and no default.
    Field(Arc<[Segment]>),
    /// An expression that does not depend on the data.
    Constant(Box<Constant>),
    List(Vec<Expression>),
    Invalid(Error),
    Variable {
        path: VariablePath,
        others: Vec<Expression>,
    },
    Missing(Arguments),
    MissingSome(Box<Pair>),
    If(Vec<Expression>),
    /// `and` stops at the first false value, `or` at the first true one.
    Connective {
        stops_at: bool,
        items: Vec<Expression>,
    },
    Truth {
        negated: bool,
        arguments: Arguments,
    },
    Chain {
        relation: Relation,
        first: Box<Expression>,
        rest: Vec<Expression>,
    },
    Arithmetic {
        operation: Arithmetic,
        arguments: Arguments,
    },
    Extreme {
        extreme: Extreme,
        arguments: Arguments,
    },
    Iteration(Box<Iteration>),
    Merge(Arguments),
    In(Box<Pair>),
    Cat(Arguments),
    Substr(Box<Pair>),
}

/// A folded constant. Its cost is the cost of the original evaluation.
#[derive(Clone, Debug)]
pub(super) struct Constant {
    pub(super) value: Value,
    pub(super) steps: u32,
    pub(super) output: usize,
    /// The expression to evaluate step by step if the budget does not suffice.
    pub(super) original: Expression,
}

/// The path of a variable.
#[derive(Clone, Debug)]
pub(super) enum VariablePath {
    Nowhere,
    Fixed(Vec<Segment>),
    Computed(Box<Expression>),
}

/// The operand of an operator with any number of arguments.
#[derive(Clone, Debug)]
pub(super) enum Arguments {
    List(Vec<Expression>),
    Single(Box<Expression>),
}

/// The arguments of an operator that requires two.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) first: Expression,
    pub(super) second: Expression,
    pub(super) others: Vec<Expression>,
}

/// The relation between two neighbours of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    NotEqual,
    StrictlyEqual,
    NotStrictlyEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

const RELATIONS: [(&str, Relation); 8] = [
    ("==", Relation::Equal),
    ("!=", Relation::NotEqual),
    ("===", Relation::StrictlyEqual),
    ("!==", Relation::NotStrictlyEqual),
    ("<", Relation::Less),
    ("<=", Relation::AtMost),
    (">", Relation::Greater),
    (">=", Relation::AtLeast),
];

impl Relation {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        RELATIONS.into_iter().find(|(other, _)| *other == name).map(|(_, relation)| relation)
    }

    /// Return the operator of the relation.
    pub(crate) fn name(self) -> &'static str {
        RELATIONS.into_iter().find(|(_, relation)| *relation == self).map_or("", |(name, _)| name)
    }

    /// Return the relation that holds between two numbers or two texts if this one does not.
    pub(crate) fn opposite(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::StrictlyEqual => Self::NotStrictlyEqual,
            Self::NotStrictlyEqual => Self::StrictlyEqual,
            Self::Less => Self::AtLeast,
            Self::AtMost => Self::Greater,
            Self::Greater => Self::AtMost,
            Self::AtLeast => Self::Less,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Arithmetic {
    Sum,
    Difference,
    Product,
    Quotient,
    Remainder,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Extreme {
    Least,
    Greatest,
}

/// An operator that iterates over an array.
#[derive(Clone, Debug)]
pub(super) struct Iteration {
    pub(super) kind: IterationKind,
    pub(super) source: Expression,
    pub(super) body: Expression,
    /// The initial value of a `reduce`.
    pub(super) start: Option<Expression>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum IterationKind {
    Map,
    Filter,
    Reduce,
    All,
    Some,
    None,
}

impl Expression {
    pub(super) fn new<'v, T: Json>(logic: &'v T, fields: &mut Fields<'v>) -> Self {
        match logic.view() {
            View::Array(items) => Self::List(items.iter().map(|item| Self::new(item, fields)).collect()),
            View::Object(members) => match members.iter().next() {
                None => Self::Literal(logic.to_value()),
                Some(_) if members.len() > 1 => {
                    let message = "an operation has exactly one key, its operator";
                    Self::Invalid(Error::new(Code::UnknownOperator, message))
                }
                Some((name, operand)) => operation(name, operand, fields).unwrap_or_else(Self::Invalid),
            },
            _ => Self::Literal(logic.to_value()),
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Literal(Value::Null))
    }

    /// Call a function for each direct part of the expression, in a fixed order.
    pub(super) fn for_each_part(&mut self, mut action: impl FnMut(&mut Self)) {
        match self {
            Self::Literal(_) | Self::Field(_) | Self::Constant(_) | Self::Invalid(_) => {}
            Self::List(items) | Self::If(items) | Self::Connective { items, .. } => {
                items.iter_mut().for_each(action);
            }
            Self::Variable { path, others } => {
                if let VariablePath::Computed(path) = path {
                    action(path);
                }
                others.iter_mut().for_each(action);
            }
            Self::Missing(arguments)
            | Self::Truth { arguments, .. }
            | Self::Arithmetic { arguments, .. }
            | Self::Extreme { arguments, .. }
            | Self::Merge(arguments)
            | Self::Cat(arguments) => match arguments {
                Arguments::List(items) => items.iter_mut().for_each(action),
                Arguments::Single(item) => action(item),
            },
            Self::MissingSome(pair) | Self::In(pair) | Self::Substr(pair) => {
                action(&mut pair.first);
                action(&mut pair.second);
                pair.others.iter_mut().for_each(action);
            }
            Self::Chain { first, rest, .. } => {
                action(first);
                rest.iter_mut().for_each(action);
            }
            Self::Iteration(iteration) => {
                action(&mut iteration.source);
                action(&mut iteration.body);
                iteration.start.iter_mut().for_each(action);
            }
        }
    }
}

impl Arguments {
    fn new<'v>(operand: &'v impl Json, fields: &mut Fields<'v>) -> Self {
        match Expression::new(operand, fields) {
            Expression::List(items) => Self::List(items),
            single => Self::Single(Box::new(single)),
        }
    }
}

impl IterationKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::Filter => "filter",
            Self::Reduce => "reduce",
            Self::All => "all",
            Self::Some => "some",
            Self::None => "none",
        }
    }
}

/// Return True if an object with this single key is an operation.
pub(crate) fn is_operator(name: &str) -> bool {
    operation(name, &Value::Null, &mut Fields::default())
        .map_or_else(|error| error.code() != Code::UnknownOperator, |_| true)
}

fn operation<'v>(name: &str, operand: &'v impl Json, fields: &mut Fields<'v>) -> Result<Expression, Error> {
    Ok(match name {
        "var" => variable(operand, fields),
        "missing" => Expression::Missing(Arguments::new(operand, fields)),
        "missing_some" => Expression::MissingSome(pair(name, operand, fields)?),
        "if" | "?:" => Expression::If(operands("if", operand, fields, 0)?),
        "and" | "or" => {
            Expression::Connective { stops_at: name == "or", items: operands(name, operand, fields, 0)? }
        }
        "!" | "!!" => Expression::Truth { negated: name == "!", arguments: Arguments::new(operand, fields) },
        _ if let Some(relation) = Relation::from_name(name) => chain(name, relation, operand, fields)?,
        "+" => arithmetic(Arithmetic::Sum, operand, fields),
        "-" => arithmetic(Arithmetic::Difference, operand, fields),
        "*" => arithmetic(Arithmetic::Product, operand, fields),
        "/" => arithmetic(Arithmetic::Quotient, operand, fields),
        "%" => arithmetic(Arithmetic::Remainder, operand, fields),
        "min" => Expression::Extreme { extreme: Extreme::Least, arguments: Arguments::new(operand, fields) },
        "max" => {
            Expression::Extreme { extreme: Extreme::Greatest, arguments: Arguments::new(operand, fields) }
        }
        "map" => iteration(IterationKind::Map, operand, fields)?,
        "filter" => iteration(IterationKind::Filter, operand, fields)?,
        "reduce" => iteration(IterationKind::Reduce, operand, fields)?,
        "all" => iteration(IterationKind::All, operand, fields)?,
        "some" => iteration(IterationKind::Some, operand, fields)?,
        "none" => iteration(IterationKind::None, operand, fields)?,
        "merge" => Expression::Merge(Arguments::new(operand, fields)),
        "in" => Expression::In(pair(name, operand, fields)?),
        "cat" => Expression::Cat(Arguments::new(operand, fields)),
        "substr" => Expression::Substr(pair(name, operand, fields)?),
        _ => {
            let shown: String = name.chars().take(40).collect();
            let message = format!("'{shown}' is not a JSONLogic operator");
            return Err(Error::new(Code::UnknownOperator, message));
        }
    })
}

fn operands<'v>(
    name: &str,
    operand: &'v impl Json,
    fields: &mut Fields<'v>,
    least: usize,
) -> Result<Vec<Expression>, Error> {
    match operand.view() {
        View::Array(items) if items.len() >= least => {
            Ok(items.iter().map(|item| Expression::new(item, fields)).collect())
        }
        _ => Err(needs_list(name, least)),
    }
}

fn needs_list(name: &str, least: usize) -> Error {
    Error::new(Code::InvalidArguments, format!("'{name}' needs a list of at least {least} arguments"))
}

fn pair<'v>(name: &str, operand: &'v impl Json, fields: &mut Fields<'v>) -> Result<Box<Pair>, Error> {
    let mut items = operands(name, operand, fields, 2)?.into_iter();
    let (Some(first), Some(second)) = (items.next(), items.next()) else {
        return Err(needs_list(name, 2));
    };
    Ok(Box::new(Pair { first, second, others: items.collect() }))
}

fn variable<'v, T: Json>(operand: &'v T, fields: &mut Fields<'v>) -> Expression {
    let items = if let View::Array(items) = operand.view() { items } else { std::slice::from_ref(operand) };
    let Some((path, others)) = items.split_first() else {
        return Expression::Variable { path: VariablePath::Nowhere, others: Vec::new() };
    };
    let path = match path.view() {
        View::Text(text) if others.is_empty() => return Expression::Field(fields.path(text)),
        View::Text(text) => VariablePath::Fixed(split_variable(text)),
        _ => VariablePath::Computed(Box::new(Expression::new(path, fields))),
    };
    Expression::Variable { path, others: others.iter().map(|other| Expression::new(other, fields)).collect() }
}

fn chain<'v>(
    name: &str,
    relation: Relation,
    operand: &'v impl Json,
    fields: &mut Fields<'v>,
) -> Result<Expression, Error> {
    let Pair { first, second, mut others } = *pair(name, operand, fields)?;
    others.insert(0, second);
    Ok(Expression::Chain { relation, first: Box::new(first), rest: others })
}

fn arithmetic<'v>(operation: Arithmetic, operand: &'v impl Json, fields: &mut Fields<'v>) -> Expression {
    Expression::Arithmetic { operation, arguments: Arguments::new(operand, fields) }
}

fn iteration<'v>(
    kind: IterationKind,
    operand: &'v impl Json,
    fields: &mut Fields<'v>,
) -> Result<Expression, Error> {
    let Pair { first: source, second: body, others } = *pair(kind.name(), operand, fields)?;
    let start = others.into_iter().next();
    Ok(Expression::Iteration(Box::new(Iteration { kind, source, body, start })))
}
