//! Fuzz target: any bytes as an unchecked scenario are rejected, or played without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simcore::{Program, canonical_json, strict_json};
use simcore_fuzz::play_unchecked;

fuzz_target!(|document: &[u8]| {
    let Ok(value) = strict_json::parse(document) else { return };
    let text = canonical_json::text(&value).expect("a parsed value can be written");
    if let Ok(program) = Program::new(text.as_bytes()) {
        play_unchecked(&program);
    }
});
