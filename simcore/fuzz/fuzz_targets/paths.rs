//! Fuzz target: any text as a path and as a variable. The format of a path parses to the same path.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simcore::paths::{format_path, lookup, parse_path, split_variable};
use simcore::{durations, strict_json};

const STATE: &[u8] = br#"{"state": {"a": [1, {"b": "x"}, [2]], "0": {"1": true}, "odd key": null}}"#;

fuzz_target!(|text: &str| {
    let state = strict_json::parse(STATE).expect("it is JSON");
    if let Ok(path) = parse_path(text) {
        assert_eq!(parse_path(&format_path(&path)).as_ref(), Ok(&path));
        let _ = lookup(&state, &path);
    }
    let _ = lookup(&state, &split_variable(text));
    let _ = durations::minutes(text);
    let _ = durations::turns(text, 60);
});
