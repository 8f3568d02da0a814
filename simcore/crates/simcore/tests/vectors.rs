//! Golden vectors of `tests/conformance/vectors`, which every implementation must reproduce.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;

use simcore::policies::Bits;
use simcore::{Error, Policy, Program, Result, State, Value, canonical_json, jsonlogic, rng, strict_json};

fn vectors(file: &str) -> Value {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests/conformance/vectors");
    let text = std::fs::read(folder.join(format!("{file}.json"))).unwrap();
    strict_json::parse_canonical(&text).unwrap()
}

/// Compare each case of a file with the result of `give`.
fn replay(file: &str, give: impl Fn(&Value) -> Result<String>) {
    let document = vectors(file);
    let cases = field(&document, "cases").as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases.iter() {
        let given = give(case).unwrap_or_else(|error| error_text(&error));
        assert_eq!(given, text_of(field(case, "expect")), "{file}: {}", text(case, "name"));
    }
}

fn field<'a>(value: &'a Value, key: &str) -> &'a Value {
    find(value, key).unwrap_or_else(|| panic!("'{key}' is missing"))
}

fn find<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.as_object().unwrap().get(key)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    field(value, key).as_text().unwrap()
}

fn integer(value: &Value, key: &str) -> u64 {
    text_of(field(value, key)).trim_matches('"').parse().unwrap()
}

fn text_of(value: &Value) -> String {
    canonical_json::text(value).unwrap()
}

fn wrapped(key: &str, content: &str) -> String {
    format!("{{\"{key}\":{}}}", text_of(&Value::from(content)))
}

fn error_text(error: &Error) -> String {
    let [code, message, path] =
        [error.code().as_str(), error.message(), error.path()].map(|text| text_of(&Value::from(text)));
    format!("{{\"error\":{{\"code\":{code},\"message\":{message},\"path\":{path}}}}}")
}

fn bytes_of(case: &Value) -> Vec<u8> {
    match find(case, "hex") {
        None => text(case, "text").as_bytes().to_vec(),
        Some(hex) => {
            let digits = hex.as_text().unwrap();
            let pairs = (0..digits.len()).step_by(2);
            pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
        }
    }
}

#[test]
fn strict_json() {
    replay("border", |case| {
        let value = strict_json::parse(&bytes_of(case))?;
        Ok(wrapped("canonical", &canonical_json::text(&value)?))
    });
}

#[test]
fn expressions() {
    replay("logic", |case| {
        let logic = strict_json::parse_canonical(text(case, "logic").as_bytes())?;
        let data = strict_json::parse_canonical(text(case, "data").as_bytes())?;
        Ok(wrapped("canonical", &canonical_json::text(&jsonlogic::evaluate(&logic, &data)?)?))
    });
}

#[test]
fn draws() {
    replay("draws", |case| {
        let seed = integer(case, "seed");
        let value = if find(case, "run").is_some() {
            rng::run_seed(seed, integer(case, "run"))
        } else {
            let stream = rng::stream_key(text(case, "stream"));
            rng::draw(seed, stream, integer(case, "turn"), integer(case, "index"))
        };
        Ok(wrapped("value", &value.to_string()))
    });
}

#[test]
fn turns() {
    replay("play", played);
    replay("play_1_1", played);
}

#[test]
fn narrations() {
    replay("narrate", played);
}

#[test]
fn rolls() {
    replay("rolls", played);
}

#[test]
fn simulate_from() {
    replay("futures", |case| {
        let program = Program::new(text_of(field(case, "spec")).as_bytes())?;
        let (state, _) = after_calls(&program, case)?;
        program.simulate_from(&state, text_of(field(case, "options")).as_bytes())
    });
}

#[test]
fn policies() {
    replay("policies", |case| {
        let policy = Policy::new(text_of(field(case, "policy")).as_bytes())?;
        let mut reading = policy.request_parser();
        for request in field(case, "requests").as_array().unwrap().iter() {
            reading.add_document(text_of(request).as_bytes())?;
        }
        let requests = reading.finish();
        let mut decided = Vec::new();
        for (number, rule) in policy.decide_many(&requests).0.into_iter().enumerate() {
            let errors = policy.unevaluated(&requests, number)?;
            decided.push(format!("{{\"errors\":{errors},\"rule\":{rule}}}"));
        }
        let matches = policy.matches(&requests).into_iter().map(|found| {
            let (holds, unevaluated) = (members(found.holds), members(found.unevaluated));
            format!("{{\"holds\":[{holds}],\"unevaluated\":[{unevaluated}]}}")
        });
        let matches = matches.collect::<Vec<_>>().join(",");
        Ok(format!("{{\"decided\":[{}],\"matches\":[{matches}]}}", decided.join(",")))
    });
}

/// Format a set as its members, separated by commas.
fn members(bits: Bits) -> String {
    let bytes = bits.into_bytes().into_iter().enumerate();
    let numbers = bytes
        .flat_map(|(at, byte)| (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| at * 8 + bit));
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(",")
}

/// Play the calls of a case. Return their results and the snapshot.
fn played(case: &Value) -> Result<String> {
    let program = Program::new(text_of(field(case, "spec")).as_bytes())?;
    let (state, results) = after_calls(&program, case)?;
    let snapshot = text_of(&Value::from(state.to_json(&program)?));
    Ok(format!("{{\"results\":[{}],\"snapshot\":{snapshot}}}", results.join(",")))
}

/// Return the state after the calls of a case, and their results.
fn after_calls(program: &Program, case: &Value) -> Result<(State, Vec<String>)> {
    let mut state = program.new_state(integer(case, "seed"));
    let mut results = Vec::new();
    for call in field(case, "calls").as_array().unwrap().iter() {
        if find(call, "reload").is_some() {
            state = State::from_json(program, state.to_json(program)?.as_bytes())?;
            continue;
        }
        let result = called(program, &mut state, call);
        results.push(result.unwrap_or_else(|error| error_text(&error)));
    }
    Ok((state, results))
}

fn called(program: &Program, state: &mut State, call: &Value) -> Result<String> {
    if let Some(action) = find(call, "act") {
        let params = text_of(field(call, "params"));
        return program.act(state, action.as_text().unwrap(), params.as_bytes());
    }
    if let Some(changes) = find(call, "narrate") {
        return program.narrate(state, text_of(changes).as_bytes());
    }
    if let Some(request) = find(call, "roll") {
        return program.roll(state, text_of(request).as_bytes());
    }
    program.step(state)
}

#[test]
fn dry_runs() {
    for file in ["dry_run", "dry_run_1_1"] {
        replay(file, |case| {
            let program = Program::new(text_of(field(case, "spec")).as_bytes())?;
            program.dry_run(text_of(field(case, "options")).as_bytes())
        });
    }
}
