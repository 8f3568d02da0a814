//! Bounds of numbers: what a write stores at a bounded path.

use std::collections::{BTreeMap, BTreeSet};

use crate::document;
use crate::error::{Code, Error, Result};
use crate::json_node::{Json, Members};
use crate::paths::{format_path, parse_path};
use crate::value::Value;

/// The bounds of a scenario, by the canonical text of their paths.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    limits: BTreeMap<String, (f64, f64)>,
    /// The paths of the objects above. They cannot be replaced.
    holders: BTreeSet<String>,
}

impl Bounds {
    pub(crate) fn new<T: Json>(spec: Members<'_, T>) -> Result<Self> {
        let mut bounds = Self::default();
        let Some(given) = spec.get("bounds") else { return Ok(bounds) };
        for (text, limit) in document::object(given)?.iter() {
            let limit = document::object(limit)?;
            let bound = |key, otherwise| limit.get(key).map_or(Ok(otherwise), document::number);
            let limits = (bound("min", f64::NEG_INFINITY)?, bound("max", f64::INFINITY)?);
            let path = parse_path(text)?;
            bounds.holders.extend((1..path.len()).filter_map(|end| path.get(..end)).map(format_path));
            bounds.limits.insert(format_path(&path), limits);
        }
        Ok(bounds)
    }

    /// Return True if a write to a path may depend on bounds.
    pub(crate) fn concerns(&self, path: &str) -> bool {
        self.limits.contains_key(path) || self.holders.contains(path)
    }

    /// Return the least and the greatest number of a path.
    pub(crate) fn limits(&self, path: &str) -> Option<(f64, f64)> {
        self.limits.get(path).copied()
    }

    /// Return the number that a write stores instead of a value, if the path is bounded.
    ///
    /// # Errors
    ///
    /// `TYPE_MISMATCH` if the value is not a number, or the path holds bounded numbers.
    pub(crate) fn clamp(&self, path: &str, value: &Value) -> Result<Option<Value>> {
        if self.holders.contains(path) {
            let message = format!("'{path}' holds bounded numbers and cannot be replaced");
            return Err(Error::new(Code::TypeMismatch, message));
        }
        let Some((low, high)) = self.limits(path) else { return Ok(None) };
        let Value::Number(number) = *value else {
            let message = format!("'{path}' is bounded and holds numbers only");
            return Err(Error::new(Code::TypeMismatch, message));
        };
        Ok(Some(Value::Number(clamp(number, low, high))))
    }
}

/// Return min(max(number, low), high).
pub(crate) fn clamp(number: f64, low: f64, high: f64) -> f64 {
    let raised = if low > number { low } else { number };
    if high < raised { high } else { raised }
}
