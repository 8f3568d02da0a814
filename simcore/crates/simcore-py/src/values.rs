//! Conversion between Python objects and values, within the limits of the JSON parser.

use std::sync::Arc;

use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use simcore::strict_json::{
    self, MAX_CANONICAL_BYTES, MAX_DEPTH, MAX_NODES, MAX_SAFE_INTEGER, MAX_STRING_BYTES,
};
use simcore::{Bump, Code, Error, Node, Result, Value};

use crate::to_python::{InArena, Shared, ValueBuilder, text};

/// Limits of a document: its number of values, and text as long as the engine's output.
const ALL: Size = Size { nodes: MAX_NODES, bytes: MAX_CANONICAL_BYTES };
/// With these limits the JSON of a value is within the limits of a document, in any spelling.
const FEW: Size = Size { nodes: 10_000, bytes: 50_000 };
/// Up to this size a value may be read again for each rule.
const SMALL: Size = Size { nodes: 500, bytes: 5_000 };

/// Size so far: values, and bytes of all texts and keys.
#[derive(Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
}

/// Convert a Python object, or the JSON of a `bytes`.
///
/// # Errors
///
/// Errors of the strict JSON parser, and `NOT_JSON` for objects that JSON cannot represent.
pub(crate) fn value_of(object: &Bound<'_, PyAny>) -> Result<Value> {
    if let Ok(document) = object.cast::<PyBytes>() {
        return strict_json::parse(document.as_bytes());
    }
    Reader::new(Shared, ALL, true).value(object, 0)
}

/// Convert the arguments of a request if they are a dictionary that is certainly within the limits of a
/// document.
pub(crate) fn small_arguments(object: &Bound<'_, PyAny>) -> Option<Value> {
    no_larger(FEW, Shared, object)
}

/// As `small_arguments`, with lower limits and values in an arena.
pub(crate) fn small_arguments_in<'a>(arena: &'a Bump, object: &Bound<'_, PyAny>) -> Option<Node<'a>> {
    no_larger(SMALL, InArena(arena), object)
}

/// Objects of subclasses are not read, because their JSON may differ from that of the base class.
fn no_larger<M: ValueBuilder>(most: Size, make: M, object: &Bound<'_, PyAny>) -> Option<M::Value> {
    // The arguments are nested in the object of the request.
    Reader::new(make, most, false).object(object.cast_exact::<PyDict>().ok()?, enter_level(1).ok()?).ok()
}

/// Return a text that is not longer than a key may be.
pub(crate) fn key_of(object: &Bound<'_, PyAny>) -> Option<Arc<str>> {
    Shared.key(object.cast_exact::<PyString>().ok()?).ok()
}

/// As `key_of`, in an arena.
pub(crate) fn key_in<'a>(arena: &'a Bump, object: &Bound<'_, PyAny>) -> Option<&'a str> {
    InArena(arena).key(object.cast_exact::<PyString>().ok()?).ok()
}

/// Convert a value to a Python object. A number is an int if it is a safe integer, otherwise a float.
pub(crate) fn object_of<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Number(number) => return number_object(py, *number),
        Value::Text(text) => PyString::new(py, text).into_any(),
        Value::Array(items) => PyList::new(py, items.iter().map(Shown))?.into_any(),
        Value::Object(members) => {
            let dict = PyDict::new(py);
            for (key, member) in members.iter() {
                dict.set_item(PyString::new(py, key), object_of(py, member)?)?;
            }
            dict.into_any()
        }
    })
}

/// A value to convert to Python.
struct Shown<'a>(&'a Value);

impl<'py> IntoPyObject<'py> for Shown<'_> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        object_of(py, self.0)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a safe integer fits")]
fn number_object(py: Python<'_>, number: f64) -> PyResult<Bound<'_, PyAny>> {
    if number.abs() <= MAX_SAFE_INTEGER && number.fract() == 0.0 {
        Ok((number as i64).into_pyobject(py)?.into_any())
    } else {
        Ok(PyFloat::new(py, number).into_any())
    }
}

/// A traversal of a Python object. Its depth is bounded, so recursion is safe even for cyclic objects.
struct Reader<M> {
    make: M,
    size: Size,
    most: Size,
    takes_subclasses: bool,
}

impl<M: ValueBuilder> Reader<M> {
    fn new(make: M, most: Size, takes_subclasses: bool) -> Self {
        Self { make, size: Size::default(), most, takes_subclasses }
    }

    fn value(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> Result<M::Value> {
        self.size.nodes += 1;
        if self.size.nodes > self.most.nodes {
            return Err(self.too_many());
        }
        if let Some(value) = self.value_if::<true>(object, depth)? {
            return Ok(value);
        }
        if self.takes_subclasses
            && let Some(value) = self.value_if::<false>(object, depth)?
        {
            return Ok(value);
        }
        let kind = object.get_type().name().map(|name| name.to_string()).unwrap_or_default();
        Err(Error::new(Code::NotJson, format!("a {kind} is not a JSON value")))
    }

    /// Reject a container that is too large before memory is allocated, if the exact error is not needed.
    fn expect(&self, count: usize) -> Result<()> {
        if !self.takes_subclasses && count > self.most.nodes { Err(self.too_many()) } else { Ok(()) }
    }

    fn too_many(&self) -> Error {
        Error::new(Code::TooManyNodes, format!("more than {} values", self.most.nodes))
    }

    /// Count a text. It may occur in many places and be copied for each.
    fn count(&mut self, text: &str) -> Result<()> {
        self.size.bytes += text.len();
        if self.size.bytes > self.most.bytes {
            let message = format!("the texts have more than {} bytes together", self.most.bytes);
            return Err(Error::new(Code::DocumentTooLarge, message));
        }
        Ok(())
    }

    /// Convert an object of a JSON type. Nearly all are of the exact type, which is fast to check.
    fn value_if<const EXACT: bool>(
        &mut self,
        object: &Bound<'_, PyAny>,
        depth: usize,
    ) -> Result<Option<M::Value>> {
        if let Some(text) = as_kind::<PyString, EXACT>(object) {
            let text = self::text(text, MAX_STRING_BYTES, Code::StringTooLong)?;
            self.count(text)?;
            return Ok(Some(self.make.text(text)));
        }
        if let Some(number) = as_kind::<PyFloat, EXACT>(object) {
            return self::float(number.value()).map(|number| Some(self.make.number(number)));
        }
        if let Some(members) = as_kind::<PyDict, EXACT>(object) {
            return self.object(members, enter_level(depth)?).map(Some);
        }
        if let Some(items) = as_kind::<PyList, EXACT>(object) {
            return self.array(items.iter(), enter_level(depth)?).map(Some);
        }
        if let Some(items) = as_kind::<PyTuple, EXACT>(object) {
            return self.array(items.iter(), enter_level(depth)?).map(Some);
        }
        if object.is_none() {
            return Ok(Some(self.make.null()));
        }
        // In Python a boolean is also an integer, but not of the exact type.
        if let Ok(boolean) = object.cast_exact::<PyBool>() {
            return Ok(Some(self.make.boolean(boolean.is_true())));
        }
        let Some(integer) = as_kind::<PyInt, EXACT>(object) else { return Ok(None) };
        self::integer(integer).map(|integer| Some(self.make.number(integer)))
    }

    fn array<'py>(
        &mut self,
        items: impl ExactSizeIterator<Item = Bound<'py, PyAny>>,
        depth: usize,
    ) -> Result<M::Value> {
        self.expect(items.len())?;
        self.make.array(items.map(|item| self.value(&item, depth)))
    }

    fn object(&mut self, members: &Bound<'_, PyDict>, depth: usize) -> Result<M::Value> {
        self.expect(members.len())?;
        self.make.object(members.iter().map(|(key, member)| {
            let key = if self.takes_subclasses { key.cast() } else { key.cast_exact() };
            let Ok(key) = key else {
                return Err(Error::new(Code::NotJson, "the keys of an object are strings"));
            };
            let key = self.make.key(key)?;
            self.count(&key)?;
            Ok((key, self.value(&member, depth)?))
        }))
    }
}

fn as_kind<'a, 'py, T: PyTypeInfo, const EXACT: bool>(
    object: &'a Bound<'py, PyAny>,
) -> Option<&'a Bound<'py, T>> {
    if EXACT { object.cast_exact().ok() } else { object.cast().ok() }
}

fn enter_level(depth: usize) -> Result<usize> {
    if depth == MAX_DEPTH {
        return Err(Error::new(Code::TooDeep, format!("nested deeper than {MAX_DEPTH} levels")));
    }
    Ok(depth + 1)
}

#[expect(clippy::cast_precision_loss, reason = "a safe integer is exact")]
fn integer(object: &Bound<'_, PyInt>) -> Result<f64> {
    match object.extract::<i64>() {
        Ok(integer) if (integer as f64).abs() <= MAX_SAFE_INTEGER => Ok(integer as f64),
        _ => Err(Error::new(Code::NumberRange, "an integer must lie within ±9007199254740991")),
    }
}

fn float(number: f64) -> Result<f64> {
    if number.is_finite() {
        Ok(number + 0.0) // -0 becomes 0
    } else {
        Err(Error::new(Code::NumberRange, "the number does not fit binary64"))
    }
}
