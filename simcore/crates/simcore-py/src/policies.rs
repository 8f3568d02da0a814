//! Policies: compiled once, applied to requests that are parsed once.

use std::time::{Duration, Instant};

use pyo3::exceptions::PyIndexError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyString, PyTuple};
use simcore::Bump;
use simcore::policies::{Bits, Call, Decisions, Matches, Requests as ParsedRequests};

use crate::values::{key_in, key_of, small_arguments, small_arguments_in};
use crate::{bytes, to_py_error};

/// Limits of names and roles that leave room for small arguments in a request.
const LONGEST_NAMES: usize = 10_000;
const MOST_ROLES: usize = 100;

/// Requests that are read from Python before a batch is decided without the GIL.
const BATCH_SIZE: usize = 64;

/// The result for a request that is not decided here.
const UNDECIDED: (i32, bool) = (-1, true);

/// A compiled policy: immutable, safe to share between threads.
#[pyclass(frozen, module = "peripety_simcore")]
pub(crate) struct Policy(simcore::Policy);

/// Requests, parsed for the tools of a policy: immutable, safe to share between threads.
#[pyclass(frozen, module = "peripety_simcore")]
pub(crate) struct Requests(ParsedRequests);

#[pymethods]
impl Policy {
    /// Compile a validated document.
    #[new]
    fn new(py: Python<'_>, document: &[u8]) -> PyResult<Self> {
        py.detach(|| simcore::Policy::new(document)).map(Self).map_err(to_py_error)
    }

    /// Parse requests from their JSON.
    #[expect(clippy::needless_pass_by_value, reason = "the signature of a Python method")]
    fn parse_requests(&self, py: Python<'_>, requests: Vec<PyBackedBytes>) -> PyResult<Requests> {
        let parsed: PyResult<ParsedRequests> = py.detach(|| {
            let mut parser = self.0.request_parser();
            let mut signals = Signals::new();
            for request in &requests {
                signals.handle()?;
                parser.add_document(request).map_err(to_py_error)?;
            }
            Ok(parser.finish())
        });
        parsed.map(Requests)
    }

    /// Parse requests from objects with the fields of a request. Return `None` if one may be invalid.
    fn prepare(&self, requests: &Bound<'_, PyAny>) -> PyResult<Option<Requests>> {
        let mut parser = self.0.request_parser();
        for (number, request) in requests.try_iter()?.enumerate() {
            if number.is_multiple_of(BATCH_SIZE) {
                requests.py().check_signals()?;
            }
            let add = |fields: &RequestFields<'_, '_>| {
                let mut roles = Vec::with_capacity(fields.roles.len());
                for role in fields.roles {
                    roles.push(key_of(&role)?);
                }
                let arguments = small_arguments(fields.arguments)?;
                parser.add(fields.server, fields.tool, arguments, roles.into());
                Some(())
            };
            let Some(()) = with_fields(&request?, add)? else { return Ok(None) };
        }
        Ok(Some(Requests(parser.finish())))
    }

    /// Decide a request from an object. Return `None` if it may be invalid or is not small, or if an earlier
    /// condition could not be evaluated.
    fn decide_one(&self, request: &Bound<'_, PyAny>) -> PyResult<Option<i32>> {
        let arena = Bump::new();
        let Some(call) = self.call(&arena, request)? else { return Ok(None) };
        let (deciding, has_failed) = self.0.decide(&call);
        Ok((!has_failed).then_some(deciding))
    }

    /// Decide requests from objects. Return the rules as 32-bit integers, and as bits the requests for which
    /// `decide_one` returns `None`.
    fn decide_many_fast(&self, py: Python<'_>, requests: &Bound<'_, PyAny>) -> PyResult<(Vec<u8>, Vec<u8>)> {
        let mut decisions = Decisions::default();
        let mut requests = requests.try_iter()?;
        let mut arena = Bump::new();
        loop {
            arena.reset();
            let mut calls = Vec::with_capacity(BATCH_SIZE);
            for request in requests.by_ref().take(BATCH_SIZE) {
                calls.push(self.call(&arena, &request?)?);
            }
            // Without this check a signal could not interrupt the loop.
            py.check_signals()?;
            if calls.is_empty() {
                return Ok(pack(decisions.finish()));
            }
            py.detach(|| {
                for call in &calls {
                    decisions.push(call.as_ref().map_or(UNDECIDED, |call| self.0.decide(call)));
                }
            });
        }
    }

    /// Decide each request. Return the rules as 32-bit integers, and as bits the requests with errors in
    /// earlier conditions.
    fn decide_many(&self, py: Python<'_>, requests: &Bound<'_, Requests>) -> PyResult<(Vec<u8>, Vec<u8>)> {
        let requests = &requests.get().0;
        py.detach(|| {
            let (mut decisions, mut signals) = (Decisions::default(), Signals::new());
            for number in 0..requests.len() {
                signals.handle()?;
                decisions.push(self.0.decide_in_batch(requests, number));
            }
            Ok(pack(decisions.finish()))
        })
    }

    /// Return the conditions up to the deciding one that could not be evaluated, as a JSON list.
    fn explain_errors(
        &self,
        py: Python<'_>,
        requests: &Bound<'_, Requests>,
        index: usize,
    ) -> PyResult<Vec<u8>> {
        let requests = &requests.get().0;
        if index >= requests.len() {
            return Err(PyIndexError::new_err("there are not so many requests"));
        }
        bytes(py.detach(|| self.0.unevaluated(requests, index)))
    }

    /// For each rule of a JSON list, or of the policy: the requests for which it holds and fails, as bits.
    fn match_rules(
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
        Ok(found.map_err(to_py_error)?.into_iter().map(to_bytes).collect())
    }
}

#[pymethods]
impl Requests {
    /// Return the number of requests.
    fn __len__(&self) -> usize {
        self.0.len()
    }
}

impl Policy {
    /// Convert a request to a call if it is certainly valid and small.
    fn call<'a>(&self, arena: &'a Bump, request: &Bound<'_, PyAny>) -> PyResult<Option<Call<'a>>> {
        with_fields(request, |fields| {
            let roles = fields.roles.iter().map(|role| key_in(arena, &role).ok_or(()));
            let roles = arena.alloc_slice_try_fill_iter(roles).ok()?;
            let arguments = small_arguments_in(arena, fields.arguments)?;
            Some(self.0.call(fields.server, fields.tool, arguments, roles))
        })
    }
}

/// Signal handling during long work without the GIL, such as Ctrl-C.
struct Signals {
    last_check: Instant,
    calls: usize,
}

impl Signals {
    /// Users do not notice a shorter delay, and a more frequent check would slow Python threads.
    const EVERY: Duration = Duration::from_millis(50);
    /// A clock read costs a fraction of a fast decision, so it is not done for each.
    const CALLS_PER_CHECK: usize = 8;

    fn new() -> Self {
        Self { last_check: Instant::now(), calls: 0 }
    }

    /// Run pending signal handlers at intervals.
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method itself has one lifetime only")]
    fn handle(&mut self) -> PyResult<()> {
        self.calls += 1;
        if self.calls.is_multiple_of(Self::CALLS_PER_CHECK) && self.last_check.elapsed() >= Self::EVERY {
            Python::attach(|py| py.check_signals())?;
            self.last_check = Instant::now();
        }
        Ok(())
    }
}

/// The fields of a request that have the usual types.
struct RequestFields<'a, 'py> {
    server: &'a str,
    tool: &'a str,
    arguments: &'a Bound<'py, PyAny>,
    roles: &'a Bound<'py, PyTuple>,
}

/// Call a function with the fields of a request, if they have the usual types and are certainly within the
/// limits of a document.
fn with_fields<T>(
    request: &Bound<'_, PyAny>,
    make: impl FnOnce(&RequestFields<'_, '_>) -> Option<T>,
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
    Ok(make(&RequestFields { server, tool, arguments: &arguments, roles }))
}

fn text_of<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a str> {
    object.cast_exact::<PyString>().ok()?.to_str().ok()
}

fn to_bytes(matches: Matches) -> (Vec<u8>, Vec<u8>) {
    (Bits::into_bytes(matches.holds), Bits::into_bytes(matches.unevaluated))
}

fn pack((deciding, failed): (Vec<i32>, Bits)) -> (Vec<u8>, Vec<u8>) {
    (deciding.into_iter().flat_map(i32::to_le_bytes).collect(), failed.into_bytes())
}
