//! Policies: compiled once, and asked about requests that are read once.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use simcore::policies::{Bits, Matches, Requests as Read};

use crate::{bytes, raised};

/// A compiled policy: immutable, safe to share between threads.
#[pyclass(frozen, module = "peripety_simcore")]
pub(crate) struct Policy(simcore::Policy);

/// Requests, read for the tools of a policy: immutable, safe to share between threads.
#[pyclass(frozen, module = "peripety_simcore")]
pub(crate) struct Requests(Read);

#[pymethods]
impl Policy {
    /// Compile a validated document.
    #[new]
    fn new(py: Python<'_>, document: &[u8]) -> PyResult<Self> {
        py.detach(|| simcore::Policy::new(document)).map(Self).map_err(raised)
    }

    /// Read requests, each from its JSON.
    #[expect(clippy::needless_pass_by_value, reason = "as Python hands it over")]
    fn requests(&self, py: Python<'_>, requests: Vec<PyBackedBytes>) -> PyResult<Requests> {
        py.detach(|| self.0.requests(requests.iter().map(|request| &**request))).map(Requests).map_err(raised)
    }

    /// Who decides each request, as 32-bit integers, and for which ones there were errors before, as bits.
    fn deciding(&self, py: Python<'_>, requests: &Bound<'_, Requests>) -> (Vec<u8>, Vec<u8>) {
        let requests = &requests.get().0;
        py.detach(|| {
            let (deciding, troubled) = self.0.deciding(requests);
            (deciding.into_iter().flat_map(i32::to_le_bytes).collect(), troubled.into_bytes())
        })
    }

    /// JSON list of the conditions up to the deciding one that could not be evaluated for a request.
    fn unevaluated(&self, py: Python<'_>, requests: &Bound<'_, Requests>, index: usize) -> PyResult<Vec<u8>> {
        let requests = &requests.get().0;
        if index >= requests.len() {
            return Err(PyIndexError::new_err("there are not so many requests"));
        }
        bytes(py.detach(|| self.0.unevaluated(requests, index)))
    }

    /// For each rule of a JSON list, or of the policy, what it holds for and what it fails for, as bits.
    fn matches(
        &self,
        py: Python<'_>,
        requests: &Bound<'_, Requests>,
        rules: Option<&[u8]>,
    ) -> PyResult<Vec<(Vec<u8>, Vec<u8>)>> {
        let requests = &requests.get().0;
        let found = py.detach(|| match rules {
            Some(rules) => self.0.matches_of_rules(requests, rules),
            None => Ok(self.0.matches(requests)),
        });
        Ok(found.map_err(raised)?.into_iter().map(shown).collect())
    }
}

#[pymethods]
impl Requests {
    /// How many there are.
    fn __len__(&self) -> usize {
        self.0.len()
    }
}

fn shown(matches: Matches) -> (Vec<u8>, Vec<u8>) {
    (Bits::into_bytes(matches.holds), Bits::into_bytes(matches.unevaluated))
}
