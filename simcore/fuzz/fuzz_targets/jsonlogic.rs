//! Fuzz target: any JSONLogic over any data, separated by a line break, gives a value that can be written or
//! an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simcore::{canonical_json, jsonlogic, strict_json};

fuzz_target!(|input: &[u8]| {
    let (expression, data) = match input.iter().position(|byte| *byte == b'\n') {
        Some(at) => input.split_at(at),
        None => (input, b"null".as_slice()),
    };
    if let (Ok(expression), Ok(data)) = (strict_json::parse(expression), strict_json::parse(data))
        && let Ok(value) = jsonlogic::evaluate(&expression, &data)
    {
        let text = canonical_json::text(&value).expect("a value can be written");
        let again = jsonlogic::evaluate(&expression, &data).and_then(|value| canonical_json::text(&value));
        assert_eq!(again, Ok(text));
    }
});
