//! Policies: compiled once, and asked about requests that are read once.

use pyo3::exceptions::PyIndexError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyString, PyTuple};
use simcore::policies::{Bits, Matches, Reading, Requests as Read};

use crate::values::{key_of, small_arguments};
use crate::{bytes, raised};

/// What certainly leaves room, in a request, for arguments that are small.
const LONGEST_NAMES: usize = 10_000;
const MOST_ROLES: usize = 100;

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
        let read = py.detach(|| {
            let mut reading = self.0.reading();
            requests.iter().try_for_each(|request| reading.add_document(request))?;
            Ok(reading.finished())
        });
        read.map(Requests).map_err(raised)
    }

    /// Read requests that are objects with those fields; nothing where one might not be acceptable.
    fn read(&self, py: Python<'_>, requests: &Bound<'_, PyAny>) -> PyResult<Option<Requests>> {
        let mut reading = self.0.reading();
        for request in requests.try_iter()? {
            let request = request?;
            let get = |name| request.getattr(name);
            let (server, tool) = (get(intern!(py, "server_name"))?, get(intern!(py, "tool_name"))?);
            let (arguments, roles) = (get(intern!(py, "arguments"))?, get(intern!(py, "roles"))?);
            let Some(()) = add(&mut reading, [&server, &tool], &arguments, &roles) else { return Ok(None) };
        }
        Ok(Some(Requests(reading.finished())))
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

/// Add a request, if it is of the usual types and certainly within the limits of the border.
fn add(
    reading: &mut Reading<'_>,
    names: [&Bound<'_, PyAny>; 2],
    arguments: &Bound<'_, PyAny>,
    roles: &Bound<'_, PyAny>,
) -> Option<()> {
    let [server, tool] = names.map(|name| name.cast_exact::<PyString>().ok()?.to_str().ok());
    let roles = roles.cast_exact::<PyTuple>().ok()?;
    let roles = roles.iter().map(|role| key_of(&role)).collect::<Option<Box<[_]>>>()?;
    let (server, tool) = (server?, tool?);
    if server.len() + tool.len() > LONGEST_NAMES || roles.len() > MOST_ROLES {
        return None;
    }
    let arguments = small_arguments(arguments)?;
    reading.add(server, tool, arguments, roles);
    Some(())
}

fn shown(matches: Matches) -> (Vec<u8>, Vec<u8>) {
    (Bits::into_bytes(matches.holds), Bits::into_bytes(matches.unevaluated))
}
