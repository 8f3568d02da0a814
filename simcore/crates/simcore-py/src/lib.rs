//! Python bindings of the engine. Each function passes bytes through and converts an error to a
//! `SimcoreError`.

mod patterns;
mod policies;
mod rules;
mod to_python;
mod values;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use simcore::{Executor, ValidatedSpec, canonical_json, jsonlogic, rng, strict_json};

/// A program consists of many small values that one thread creates and another frees. With the C library's
/// allocator, validation takes a quarter longer.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pyo3::import_exception!(peripety_simcore._errors, SimcoreError);

/// The native core of Peripety.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{Program, State, compile, draw, evaluate, parse, run_seed, validate_many};

    #[pymodule_export]
    use super::patterns::Patterns;

    #[pymodule_export]
    use super::policies::{Policy, Requests};

    #[pymodule_export]
    use super::rules::{Data, Rule};

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's own name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

/// A compiled scenario: immutable, safe to share between threads.
#[pyclass(frozen, module = "peripety_simcore")]
struct Program(Arc<simcore::Program>);

/// State of one run, with its program.
#[pyclass(frozen, module = "peripety_simcore")]
struct State {
    program: Arc<simcore::Program>,
    run: Mutex<simcore::State>,
}

#[pymethods]
impl Program {
    /// Return the initial state under a seed.
    fn new_state(&self, seed: u64) -> State {
        State::new(&self.0, self.0.new_state(seed))
    }

    /// Restore a state from its snapshot.
    fn load_state(&self, snapshot: &[u8]) -> PyResult<State> {
        let run = simcore::State::from_json(&self.0, snapshot).map_err(to_py_error)?;
        Ok(State::new(&self.0, run))
    }

    /// Play many runs without a model. Return the JSON of a `DryRunReport`.
    fn dry_run(&self, py: Python<'_>, options: &[u8]) -> PyResult<Vec<u8>> {
        bytes(py.detach(|| self.0.dry_run(options)))
    }

    /// As `dry_run`, with a given executor, which affects the duration only. For tests and benchmarks.
    fn dry_run_with(&self, py: Python<'_>, executor: &str, options: &[u8]) -> PyResult<Vec<u8>> {
        let executor = executor_from_name(executor)?;
        bytes(py.detach(|| self.0.dry_run_with(executor, options)))
    }

    /// Return True if it is certain that nothing can be proved within `horizon` turns.
    fn has_nothing_to_prove(&self, py: Python<'_>, horizon: u64) -> bool {
        py.detach(|| self.0.has_no_findings(horizon))
    }

    /// Return True if ordinary runs are vectorised.
    fn is_vectorised(&self) -> bool {
        self.0.is_vectorised()
    }
}

#[pymethods]
impl State {
    /// Return an independent copy.
    fn fork(&self) -> Self {
        Self::new(&self.program, self.run().clone())
    }

    /// Return the ids of the legal actions as a JSON list.
    fn legal_actions(&self) -> PyResult<Vec<u8>> {
        bytes(self.program.legal_actions(&self.run()))
    }

    /// Take an action. Return the JSON of an `ActResult`.
    fn act(&self, action_id: &str, params: &[u8]) -> PyResult<Vec<u8>> {
        bytes(self.program.act(&mut self.run(), action_id, params))
    }

    /// Apply the narrator's changes. Return the JSON of an `ActResult`.
    fn narrate(&self, changes: &[u8]) -> PyResult<Vec<u8>> {
        bytes(self.program.narrate(&mut self.run(), changes))
    }

    /// Finish the turn. Return the JSON of a `StepResult`.
    fn step(&self) -> PyResult<Vec<u8>> {
        bytes(self.program.step(&mut self.run()))
    }

    /// Roll in the current turn. Return the JSON of a `RollResult`.
    fn roll(&self, request: &[u8]) -> PyResult<Vec<u8>> {
        bytes(self.program.roll(&mut self.run(), request))
    }

    /// Play many runs from a copy of this state. Return the JSON of a `DryRunReport`.
    fn simulate_from(&self, py: Python<'_>, options: &[u8]) -> PyResult<Vec<u8>> {
        let start = self.run().clone();
        bytes(py.detach(|| self.program.simulate_from(&start, options)))
    }

    /// As `simulate_from`, with a given executor. For tests and benchmarks.
    fn simulate_from_with(&self, py: Python<'_>, executor: &str, options: &[u8]) -> PyResult<Vec<u8>> {
        let executor = executor_from_name(executor)?;
        let start = self.run().clone();
        bytes(py.detach(|| self.program.simulate_from_with(executor, &start, options)))
    }

    /// Return True if ordinary runs from this state are vectorised.
    fn is_vectorised(&self) -> bool {
        self.program.is_vectorised_from(&self.run())
    }

    /// Return a complete snapshot as canonical JSON.
    fn to_json(&self) -> PyResult<Vec<u8>> {
        bytes(self.run().to_json(&self.program))
    }

    /// Return the state tree of the scenario as canonical JSON.
    fn tree(&self) -> PyResult<Vec<u8>> {
        bytes(self.run().tree_json())
    }

    /// Return the SHA-256 of the canonical state tree in hexadecimal digits.
    fn hash(&self) -> PyResult<String> {
        self.run().hash().map_err(to_py_error)
    }

    /// Return the number of complete turns.
    fn turn(&self) -> u64 {
        self.run().turn()
    }

    /// Return the status of the run as canonical JSON.
    fn status(&self) -> PyResult<Vec<u8>> {
        bytes(self.run().status_json(&self.program))
    }
}

impl State {
    fn new(program: &Arc<simcore::Program>, run: simcore::State) -> Self {
        Self { program: Arc::clone(program), run: Mutex::new(run) }
    }

    /// Lock the run. The lock is never held while the GIL is released, so it is never contended.
    fn run(&self) -> MutexGuard<'_, simcore::State> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Return the canonical bytes of a document that the strict JSON parser accepts.
#[pyfunction]
fn parse(document: &[u8]) -> PyResult<Vec<u8>> {
    bytes(strict_json::parse(document).and_then(|value| canonical_json::text(&value)))
}

/// Evaluate a JSONLogic expression over data, both canonical. Return the canonical bytes of the value.
#[pyfunction]
fn evaluate(logic: &[u8], data: &[u8]) -> PyResult<Vec<u8>> {
    let logic = strict_json::parse_canonical(logic).map_err(to_py_error)?;
    let data = strict_json::parse_canonical(data).map_err(to_py_error)?;
    bytes(jsonlogic::evaluate(&logic, &data).and_then(|value| canonical_json::text(&value)))
}

/// Compile a program from a validated document.
#[pyfunction]
fn compile(py: Python<'_>, document: &[u8]) -> PyResult<Program> {
    let program = py.detach(|| simcore::Program::new(document)).map_err(to_py_error)?;
    Ok(Program(Arc::new(program)))
}

/// Canonical bytes and their hash.
type ValidBytes<'py> = (Bound<'py, PyBytes>, String);

/// Return canonical bytes and hash of each certainly valid document, and `None` for the others.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "the signature of a Python method")]
fn validate_many(
    py: Python<'_>,
    documents: Vec<PyBackedBytes>,
    threads: usize,
) -> PyResult<Vec<Option<ValidBytes<'_>>>> {
    let validated = py.detach(|| simcore::validate_many(&documents, threads));
    let to_python = |(given, one): (&PyBackedBytes, Option<ValidatedSpec<'_>>)| {
        let Some(ValidatedSpec { document, hash }) = one else { return Ok(None) };
        let document = match document {
            Cow::Borrowed(_) => given.into_pyobject(py)?,
            Cow::Owned(written) => PyBytes::new(py, &written),
        };
        Ok(Some((document, hash)))
    };
    documents.iter().zip(validated).map(to_python).collect()
}

/// Return one keyed 64-bit draw.
#[pyfunction]
fn draw(seed: u64, stream: &str, turn: u64, index: u64) -> u64 {
    rng::draw(seed, rng::stream_key(stream), turn, index)
}

/// Return the seed of dry-run number `run`.
#[pyfunction]
fn run_seed(seed: u64, run: u64) -> u64 {
    rng::run_seed(seed, run)
}

fn executor_from_name(executor: &str) -> PyResult<Executor> {
    Executor::from_name(executor).ok_or_else(|| {
        PyValueError::new_err("the executor is interpreter, or an instruction set of this processor")
    })
}

fn bytes(text: simcore::Result<String>) -> PyResult<Vec<u8>> {
    text.map(String::into_bytes).map_err(to_py_error)
}

#[expect(clippy::needless_pass_by_value, reason = "the signature of `map_err`")]
fn to_py_error(error: simcore::Error) -> PyErr {
    SimcoreError::new_err((error.code().as_str(), error.message().to_owned(), error.path().to_owned()))
}
