//! Any bytes as a scenario, checked by nobody: it is refused, or it plays without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simcore::{Program, border, canonical};
use simcore_fuzz::survive;

fuzz_target!(|document: &[u8]| {
    let Ok(value) = border::parse(document) else { return };
    let text = canonical::text(&value).expect("what was parsed can be written");
    if let Ok(program) = Program::new(text.as_bytes()) {
        survive(&program);
    }
});
