//! Fuzz target: any bytes through the strict JSON parser. An accepted text has one canonical form, which is a
//! valid document.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simcore::{canonical_json, strict_json};

fuzz_target!(|document: &[u8]| {
    if let Ok(value) = strict_json::parse(document) {
        let text = canonical_json::text(&value).expect("a parsed value can be written");
        let again = strict_json::parse_canonical(text.as_bytes()).expect("canonical text can be parsed");
        assert_eq!(canonical_json::text(&again).as_ref(), Ok(&text));
    }
});
