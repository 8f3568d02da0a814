//! Scenarios that are made from the input, and a plan to play them by: turns, snapshots and dry-runs keep their promises.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simcore::Program;
use simcore_fuzz::{Case, play};

fuzz_target!(|case: Case| {
    let program = Program::new(case.document.as_bytes()).expect("the document is a scenario");
    play(&program, &case.plan);
});
