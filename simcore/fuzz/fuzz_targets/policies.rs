//! Fuzz target: any bytes as a policy, with one request on each line. Accepted requests are decided by a
//! matching rule.
#![no_main]

use libfuzzer_sys::fuzz_target;
use simcore::{Policy, canonical_json, strict_json};

fuzz_target!(|input: &[u8]| {
    let mut lines = input.split(|byte| *byte == b'\n');
    let Ok(value) = strict_json::parse(lines.next().unwrap_or_default()) else { return };
    let text = canonical_json::text(&value).expect("a parsed value can be written");
    let Ok(policy) = Policy::new(text.as_bytes()) else { return };
    let mut parser = policy.request_parser();
    let read = lines.filter(|line| parser.add_document(line).is_ok()).count();
    let requests = parser.finish();
    assert_eq!(requests.len(), read);
    let (decisions, failed) = policy.decide_many(&requests);
    let matches = policy.matches(&requests);
    let has =
        |bits: &[u8], number: usize| bits.get(number / 8).is_some_and(|byte| byte >> (number % 8) & 1 == 1);
    let failed = failed.into_bytes();
    for (number, rule) in decisions.into_iter().enumerate() {
        let failures = policy.unevaluated(&requests, number).expect("it can be written");
        assert_eq!(failures != "[]", has(&failed, number));
        if let Ok(rule) = usize::try_from(rule) {
            let of_rule = matches.get(rule).expect("it is a rule").clone();
            let (holds, unevaluated) = (of_rule.holds.into_bytes(), of_rule.unevaluated.into_bytes());
            assert!(has(&holds, number) != has(&unevaluated, number));
        }
    }
});
