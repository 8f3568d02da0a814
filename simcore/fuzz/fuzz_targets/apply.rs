//! Fuzz target: generated scenarios are played with turns, snapshots and dry-runs, and the invariants are
//! checked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simcore::Program;
use simcore_fuzz::{Case, play};

fuzz_target!(|case: Case| {
    let program = Program::new(case.document.as_bytes()).expect("the document is a scenario");
    play(&program, &case.plan);
});
