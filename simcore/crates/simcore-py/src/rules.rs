//! Standalone JSONLogic: rules are compiled once, data is JSON or Python objects.

use pyo3::prelude::*;
use simcore::{Error, Value, jsonlogic};

use crate::values::{object_of, value_of};

/// A compiled expression: immutable, safe to share between threads.
#[pyclass(frozen, module = "peripety_simcore")]
pub(crate) struct Rule {
    rule: jsonlogic::Rule,
    error_factory: ErrorFactory,
}

/// Data that rules read, parsed once: immutable, safe to share between threads.
#[pyclass(frozen, module = "peripety_simcore")]
pub(crate) struct Data(Value);

/// The exception factory: a callable with code, message and path of an error.
struct ErrorFactory(Py<PyAny>);

#[pymethods]
impl Rule {
    /// Compile an expression: Python objects, or JSON as `bytes`.
    #[new]
    fn new(py: Python<'_>, logic: &Bound<'_, PyAny>, refusal: Py<PyAny>) -> PyResult<Self> {
        let error_factory = ErrorFactory(refusal);
        let logic = value_of(logic).map_err(|error| error_factory.to_py_error(py, &error))?;
        Ok(Self { rule: jsonlogic::Rule::new(&logic), error_factory })
    }

    /// Evaluate over data: `Data`, or anything that `Data` accepts.
    #[pyo3(signature = (data, /))]
    fn evaluate<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(parsed) = data.cast::<Data>() {
            return self.value(py, &parsed.get().0);
        }
        let data = value_of(data).map_err(|error| self.error_factory.to_py_error(py, &error))?;
        self.value(py, &data)
    }
}

impl Rule {
    fn value<'py>(&self, py: Python<'py>, data: &Value) -> PyResult<Bound<'py, PyAny>> {
        match self.rule.evaluate_borrowed(jsonlogic::Data::Value(data)) {
            Ok(value) => object_of(py, &value),
            Err(error) => Err(self.error_factory.to_py_error(py, &error)),
        }
    }
}

#[pymethods]
impl Data {
    /// Parse data: Python objects, or JSON as `bytes`.
    #[new]
    fn new(py: Python<'_>, value: &Bound<'_, PyAny>, refusal: Py<PyAny>) -> PyResult<Self> {
        value_of(value).map(Self).map_err(|error| ErrorFactory(refusal).to_py_error(py, &error))
    }
}

impl ErrorFactory {
    #[cold]
    fn to_py_error(&self, py: Python<'_>, error: &Error) -> PyErr {
        match self.0.bind(py).call1((error.code().as_str(), error.message(), error.path())) {
            Ok(exception) => PyErr::from_value(exception),
            Err(failure) => failure,
        }
    }
}
