//! Fuzzing support: scenarios from arbitrary bytes, and invariants of their runs.

mod scenario;

use simcore::{Code, Executor, Isa, Program, Result, State};

pub use scenario::{Case, Move};

const SEED: u64 = 7;

/// Play an unchecked program. The only requirement is that it returns.
pub fn play_unchecked(program: &Program) {
    let mut state = program.new_state(SEED);
    for _ in 0..4 {
        let _ = program.legal_actions(&state);
        for action in ["a0", "a1"] {
            let _ = program.act(&mut state, action, b"{}");
        }
        let _ = program.step(&mut state);
        if let Ok(snapshot) = state.to_json(program) {
            let _ = State::from_json(program, snapshot.as_bytes());
        }
    }
    let _ = program.simulate_from(&state, &options("random", 0, 3));
    let _ = program.dry_run(&options("random", 0, 3));
}

/// Play a valid program by a plan, with and without snapshots, and dry-run it.
///
/// # Panics
///
/// If an invariant of the engine is violated.
pub fn play(program: &Program, plan: &[Move]) {
    let mut state = program.new_state(SEED);
    for step in plan {
        let mut reloaded = restore(program, &state);
        assert_eq!(program.legal_actions(&state), program.legal_actions(&reloaded));
        let before = snapshot_of(program, &state);
        let results = [&mut state, &mut reloaded].map(|state| match step {
            Move::Act { action, params } => program.act(state, action, params.as_bytes()),
            Move::Step => program.step(state),
        });
        let [result, again] = results;
        assert_eq!(result, again, "a snapshot changed the run");
        if result.is_err() {
            assert_eq!(snapshot_of(program, &state), before, "a call that failed has changed the state");
        }
        assert_eq!(snapshot_of(program, &state), snapshot_of(program, &reloaded));
    }
    compare_executors(|executor, requested| program.simulate_from_with(executor, &state, requested));
    compare_executors(|executor, requested| program.dry_run_with(executor, requested));
}

/// Compare the executors with the interpreter: the reports must be equal.
fn compare_executors(report: impl Fn(Executor, &[u8]) -> Result<String>) {
    let others =
        [("greedy", 3), ("cautious", 3), ("saboteur", 3), ("planner", 1), ("curious", 3), ("par", 3)];
    for (persona, runs) in [("random", 3), ("idle", 66)].into_iter().chain(others) {
        let requested = options(persona, 0, runs);
        let reference = report(Executor::Interpreter, &requested);
        let is_refused = reference.as_ref().is_err_and(|error| error.code() != Code::RunEnded);
        assert!(!is_refused, "a dry-run of a valid program fails");
        for isa in [Isa::Baseline, Isa::Avx2, Isa::Avx512] {
            let report = report(Executor::Lockstep(isa), &requested);
            assert_eq!(report, reference, "{isa:?} makes something else of it");
        }
    }
}

fn restore(program: &Program, state: &State) -> State {
    State::from_json(program, snapshot_of(program, state).as_bytes()).expect("a snapshot can be read")
}

fn snapshot_of(program: &Program, state: &State) -> String {
    state.to_json(program).expect("a state can be written")
}

fn options(persona: &str, first: u64, runs: u64) -> Vec<u8> {
    format!(
        r#"{{"detail":true,"digest":true,"first_run":{first},"horizon":4,"persona":"{persona}","runs":{runs},"seed":"{SEED}"}}"#
    )
    .into_bytes()
}
