//! Policies: compiled once, and asked about requests that are read once.

use std::time::{Duration, Instant};

use pyo3::exceptions::PyIndexError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyString, PyTuple};
use simcore::Bump;
use simcore::policies::{Bits, Call, Deciding, Matches, Requests as Read};

use crate::values::{key_in, key_of, small_arguments, small_arguments_in};
use crate::{bytes, raised};

/// What certainly leaves room, in a request, for arguments that are small.
const LONGEST_NAMES: usize = 10_000;
const MOST_ROLES: usize = 100;

/// So many requests are read before they are decided about, without Python.
const AT_ONCE: usize = 64;

/// What is said of a request that is not decided about.
const LEFT: (i32, bool) = (-1, true);

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
        let read: PyResult<Read> = py.detach(|| {
            let mut reading = self.0.reading();
            let mut signals = Signals::new();
            for request in &requests {
                signals.handle()?;
                reading.add_document(request).map_err(raised)?;
            }
            Ok(reading.finished())
        });
        read.map(Requests)
    }

    /// Read requests that are objects with those fields; nothing where one might not be acceptable.
    fn read(&self, requests: &Bound<'_, PyAny>) -> PyResult<Option<Requests>> {
        let mut reading = self.0.reading();
        for (number, request) in requests.try_iter()?.enumerate() {
            if number.is_multiple_of(AT_ONCE) {
                requests.py().check_signals()?;
            }
            let add = |given: &Given<'_, '_>| {
                let mut roles = Vec::with_capacity(given.roles.len());
                for role in given.roles {
                    roles.push(key_of(&role)?);
                }
                let arguments = small_arguments(given.arguments)?;
                reading.add(given.server, given.tool, arguments, roles.into());
                Some(())
            };
            let Some(()) = with_given(&request?, add)? else { return Ok(None) };
        }
        Ok(Some(Requests(reading.finished())))
    }

    /// Who decides a request that is an object with those fields; nothing where it might not be acceptable, where it is
    /// not small, or where conditions before could not be evaluated.
    fn decided(&self, request: &Bound<'_, PyAny>) -> PyResult<Option<i32>> {
        let arena = Bump::new();
        let Some(call) = self.call(&arena, request)? else { return Ok(None) };
        let (deciding, is_troubled) = self.0.decided(&call);
        Ok((!is_troubled).then_some(deciding))
    }

    /// Who decides each request that is an object with those fields, as 32-bit integers, and which ones are left, as bits:
    /// those of which `decided` would give nothing.
    fn decided_each(&self, py: Python<'_>, requests: &Bound<'_, PyAny>) -> PyResult<(Vec<u8>, Vec<u8>)> {
        let mut decided = Deciding::default();
        let mut requests = requests.try_iter()?;
        let mut arena = Bump::new();
        loop {
            arena.reset();
            let mut calls = Vec::with_capacity(AT_ONCE);
            for request in requests.by_ref().take(AT_ONCE) {
                calls.push(self.call(&arena, &request?)?);
            }
            // Without this nobody could end it before its end.
            py.check_signals()?;
            if calls.is_empty() {
                return Ok(packed(decided.finished()));
            }
            py.detach(|| {
                for call in &calls {
                    decided.push(call.as_ref().map_or(LEFT, |call| self.0.decided(call)));
                }
            });
        }
    }

    /// Who decides each request, as 32-bit integers, and for which ones there were errors before, as bits.
    fn deciding(&self, py: Python<'_>, requests: &Bound<'_, Requests>) -> PyResult<(Vec<u8>, Vec<u8>)> {
        let requests = &requests.get().0;
        py.detach(|| {
            let (mut decided, mut signals) = (Deciding::default(), Signals::new());
            for number in 0..requests.len() {
                signals.handle()?;
                decided.push(self.0.decided_among(requests, number));
            }
            Ok(packed(decided.finished()))
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

impl Policy {
    /// A request as a call, if it is certainly acceptable, and small.
    fn call<'a>(&self, arena: &'a Bump, request: &Bound<'_, PyAny>) -> PyResult<Option<Call<'a>>> {
        with_given(request, |given| {
            let roles = given.roles.iter().map(|role| key_in(arena, &role).ok_or(()));
            let roles = arena.alloc_slice_try_fill_iter(roles).ok()?;
            let arguments = small_arguments_in(arena, given.arguments)?;
            Some(self.0.call(given.server, given.tool, arguments, roles))
        })
    }
}

/// Signals that arrive during long work without Python, such as that of somebody who does not want to wait for it.
struct Signals {
    handled: Instant,
    asked: usize,
}

impl Signals {
    /// Nobody notices a wait that is no longer, and threads of Python are not held up by one who asks more often.
    const EVERY: Duration = Duration::from_millis(50);
    /// To ask for the time takes a part of the time of a quick decision.
    const ASKED: usize = 8;

    fn new() -> Self {
        Self { handled: Instant::now(), asked: 0 }
    }

    /// Run what handles them, now and then.
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method itself has one lifetime only")]
    fn handle(&mut self) -> PyResult<()> {
        self.asked += 1;
        if self.asked.is_multiple_of(Self::ASKED) && self.handled.elapsed() >= Self::EVERY {
            Python::attach(|py| py.check_signals())?;
            self.handled = Instant::now();
        }
        Ok(())
    }
}

/// The parts of a request, where they are of the usual types.
struct Given<'a, 'py> {
    server: &'a str,
    tool: &'a str,
    arguments: &'a Bound<'py, PyAny>,
    roles: &'a Bound<'py, PyTuple>,
}

/// What is made of a request, if it is of the usual types and certainly within the limits of the border.
fn with_given<T>(
    request: &Bound<'_, PyAny>,
    make: impl FnOnce(&Given<'_, '_>) -> Option<T>,
) -> PyResult<Option<T>> {
    let py = request.py();
    let get = |name| request.getattr(name);
    let (server, tool) = (get(intern!(py, "server_name"))?, get(intern!(py, "tool_name"))?);
    let (arguments, roles) = (get(intern!(py, "arguments"))?, get(intern!(py, "roles"))?);
    let (Some(server), Some(tool), Ok(roles)) =
        (text_of(&server), text_of(&tool), roles.cast_exact::<PyTuple>())
    else {
        return Ok(None);
    };
    if server.len() + tool.len() > LONGEST_NAMES || roles.len() > MOST_ROLES {
        return Ok(None);
    }
    Ok(make(&Given { server, tool, arguments: &arguments, roles }))
}

fn text_of<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a str> {
    object.cast_exact::<PyString>().ok()?.to_str().ok()
}

fn shown(matches: Matches) -> (Vec<u8>, Vec<u8>) {
    (Bits::into_bytes(matches.holds), Bits::into_bytes(matches.unevaluated))
}

fn packed((deciding, troubled): (Vec<i32>, Bits)) -> (Vec<u8>, Vec<u8>) {
    (deciding.into_iter().flat_map(i32::to_le_bytes).collect(), troubled.into_bytes())
}
