//! Any bytes through the JSON border: what passes has one canonical form, which is a document again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simcore::{border, canonical};

fuzz_target!(|document: &[u8]| {
    if let Ok(value) = border::parse(document) {
        let text = canonical::text(&value).expect("what was parsed can be written");
        let again = border::parse_canonical(text.as_bytes()).expect("canonical text can be parsed");
        assert_eq!(canonical::text(&again).as_ref(), Ok(&text));
    }
});
