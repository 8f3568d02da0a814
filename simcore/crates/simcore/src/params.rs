//! Parameters of actions: validation and random sampling.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::document;
use crate::error::Result;
use crate::json_node::Json;
use crate::jsonlogic::finite;
use crate::rng::{choose, unit};
use crate::value::{EMPTY_OBJECT, Object, Value};

const MAX_TRIALS: usize = 64;
const MAX_INTEGERS: u64 = 16;

/// Values of some parameters.
pub(crate) type Trial = Vec<(Arc<str>, Value)>;

/// The parameter schemas of an action, by name.
#[derive(Debug)]
pub(crate) struct Params(Vec<(Arc<str>, Param)>);

#[derive(Debug)]
struct Param {
    kind: Kind,
    options: Option<Vec<Value>>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    most_characters: Option<u64>,
    domain: Domain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Integer,
    Number,
    Text,
    Boolean,
}

/// The domain of a parameter.
#[derive(Debug)]
enum Domain {
    Options,
    Booleans,
    EmptyText,
    Integers { low: i64, count: u64 },
    Numbers { low: f64, high: f64 },
}

impl Params {
    pub(crate) fn new(declared: &impl Json) -> Result<Self> {
        let declared = document::object(declared)?.iter();
        Ok(Self(
            declared.map(|(name, schema)| Ok((name.into(), Param::new(schema)?))).collect::<Result<_>>()?,
        ))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Return one sentence for each illegal parameter, by name. The list is empty if all are legal.
    pub(crate) fn problems(&self, given: &Value) -> Vec<String> {
        let Some(given) = given.as_object() else {
            return vec!["the parameters must be an object".to_owned()];
        };
        let names: BTreeSet<&Arc<str>> = self.0.iter().map(|(name, _)| name).chain(given.keys()).collect();
        names.into_iter().filter_map(|name| self.problem(name, given.get(name))).collect()
    }

    fn problem(&self, name: &Arc<str>, given: Option<&Value>) -> Option<String> {
        match (self.0.iter().find(|(declared, _)| declared == name), given) {
            (None, _) => Some(format!("'{name}' is not a parameter of this action")),
            (Some(_), None) => Some(format!("the parameter '{name}' is missing")),
            (Some((_, param)), Some(value)) => {
                param.problem(value).map(|problem| format!("the parameter '{name}' {problem}"))
            }
        }
    }

    /// Return the combinations of values of the parameters with few values, at most `MAX_TRIALS`.
    ///
    /// A parameter is left out if it has no short list of values, or if the combinations would become too
    /// many.
    pub(crate) fn trials(&self) -> Vec<Trial> {
        let mut trials: Vec<Trial> = vec![Trial::new()];
        for (name, param) in &self.0 {
            let values = param.few_values();
            if values.is_empty() || trials.len() * values.len() > MAX_TRIALS {
                continue;
            }
            let extended = trials.iter().flat_map(|trial| {
                values.iter().map(|value| {
                    let mut trial = trial.clone();
                    trial.push((Arc::clone(name), value.clone()));
                    trial
                })
            });
            trials = extended.collect();
        }
        trials
    }

    /// Draw parameters uniformly from their domains, one draw each, in the order of their names. Those of
    /// `fixed` are given.
    pub(crate) fn sample(
        &self,
        fixed: &[(Arc<str>, Value)],
        mut next_draw: impl FnMut() -> u64,
    ) -> Result<Value> {
        if self.is_empty() {
            return Ok(EMPTY_OBJECT.clone());
        }
        let mut sampled = Object::default();
        for (name, param) in &self.0 {
            let given = fixed.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
            let value = if let Some(value) = given { value } else { param.sample(next_draw())? };
            sampled.insert(Arc::clone(name), value);
        }
        Ok(sampled.into())
    }
}

impl Param {
    fn new<T: Json>(schema: &T) -> Result<Self> {
        let schema = document::object(schema)?;
        let bound = |key| schema.get(key).map(document::number).transpose();
        let kind = match document::text(document::field(schema, "type")?)? {
            "integer" => Kind::Integer,
            "number" => Kind::Number,
            "string" => Kind::Text,
            "boolean" => Kind::Boolean,
            _ => return Err(document::invalid("a parameter is of an unknown type")),
        };
        let (minimum, maximum) = (bound("minimum")?, bound("maximum")?);
        let options = schema.get("enum").map(options).transpose()?;
        Ok(Self {
            domain: Domain::new(kind, options.as_deref(), minimum.zip(maximum))?,
            kind,
            options,
            minimum,
            maximum,
            most_characters: schema.get("maxLength").map(document::count).transpose()?,
        })
    }

    fn problem(&self, value: &Value) -> Option<String> {
        if !self.kind.includes(value) {
            return Some(format!("must be of type {}", self.kind.name()));
        }
        if self
            .options
            .as_ref()
            .is_some_and(|options| !options.iter().any(|option| same_scalar(option, value)))
        {
            return Some("is not one of the allowed values".to_owned());
        }
        match value {
            Value::Text(text) => self
                .most_characters
                .filter(|&most| text.chars().count() as u64 > most)
                .map(|most| format!("is longer than {most} characters")),
            Value::Number(number) if self.minimum.is_some_and(|minimum| *number < minimum) => {
                Some("is below its minimum".to_owned())
            }
            Value::Number(number) if self.maximum.is_some_and(|maximum| *number > maximum) => {
                Some("is above its maximum".to_owned())
            }
            _ => None,
        }
    }

    /// Return the distinct values, or none if they are many.
    #[expect(clippy::cast_precision_loss, reason = "between two safe integers")]
    fn few_values(&self) -> Vec<Value> {
        match self.domain {
            Domain::Options => {
                let mut values: Vec<Value> = Vec::new();
                for option in self.options.iter().flatten() {
                    if !values.iter().any(|value| same_scalar(value, option)) {
                        values.push(option.clone());
                    }
                }
                values
            }
            Domain::Booleans => vec![Value::Bool(false), Value::Bool(true)],
            Domain::Integers { low, count } if count <= MAX_INTEGERS => {
                (low..).zip(0..count).map(|(value, _)| Value::Number(value as f64)).collect()
            }
            _ => Vec::new(),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "between two safe integers")]
    fn sample(&self, draw: u64) -> Result<Value> {
        Ok(match self.domain {
            Domain::Options => {
                let options = self.options.as_deref().unwrap_or_default();
                let index = usize::try_from(choose(draw, options.len() as u64)).unwrap_or(0);
                options.get(index).cloned().unwrap_or(Value::Null)
            }
            Domain::Booleans => Value::Bool(choose(draw, 2) == 1),
            Domain::EmptyText => Value::from(""),
            Domain::Integers { low, count } => {
                let offset = i64::try_from(choose(draw, count)).unwrap_or(0);
                Value::Number((low + offset) as f64)
            }
            Domain::Numbers { low, high } => Value::Number(finite(low + unit(draw) * (high - low))?),
        })
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Text => "string",
            Self::Boolean => "boolean",
        }
    }

    fn includes(self, value: &Value) -> bool {
        match self {
            Self::Integer => value.as_number().is_some_and(|number| number.fract() == 0.0),
            Self::Number => value.as_number().is_some(),
            Self::Text => value.as_text().is_some(),
            Self::Boolean => matches!(value, Value::Bool(_)),
        }
    }
}

impl Domain {
    fn new(kind: Kind, options: Option<&[Value]>, bounds: Option<(f64, f64)>) -> Result<Self> {
        match (kind, options, bounds) {
            (_, Some(options), _) if !options.is_empty() => Ok(Self::Options),
            (Kind::Boolean, None, _) => Ok(Self::Booleans),
            (Kind::Text, None, _) => Ok(Self::EmptyText),
            (Kind::Number, None, Some((low, high))) => Ok(Self::Numbers { low, high }),
            (Kind::Integer, None, Some((low, high))) if low.partial_cmp(&high) != Some(Ordering::Greater) => {
                let (low, high) = (document::integer(low)?, document::integer(high)?);
                Ok(Self::Integers { low, count: high.abs_diff(low) + 1 })
            }
            _ => Err(document::invalid("a parameter cannot be drawn")),
        }
    }
}

fn options(given: &impl Json) -> Result<Vec<Value>> {
    Ok(document::list(given)?.iter().map(Json::to_value).collect())
}

fn same_scalar(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b,
        (Value::Text(a), Value::Text(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        _ => false,
    }
}
