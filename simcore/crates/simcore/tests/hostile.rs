//! Tests with hostile input: no endless recursion, no panic, and no use beyond the budget.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use simcore::{Code, Program, Value, jsonlogic, strict_json};

/// Compile a scenario with one action, whose rules and effects are given as JSON.
fn program(preconditions: &str, derives: &str, effects: &str) -> Program {
    let document = format!(
        r#"{{"actions": [{{"id": "x", "params": {{}}, "preconditions": {preconditions},
            "derives": {derives}, "effects": {effects}}}],
        "random_events": [], "loss_conditions": [], "negativity_budget": {{}},
        "state": {{"a": 1, "list": [], "text": "t"}}}}"#
    );
    Program::new(document.as_bytes()).unwrap()
}

/// Return an expression that folds the given elements.
fn folding(elements: &str, body: &str) -> String {
    format!(r#"{{"reduce": [{elements}, {body}, 0]}}"#)
}

/// Return an array of zeros.
fn zeros(count: usize) -> String {
    format!("[{}]", vec!["0"; count].join(","))
}

/// All data. In a fold it contains the accumulator again, one level deeper.
const WHOLE: &str = r#"{"var": ""}"#;

fn evaluated(logic: &str, data: &str) -> simcore::Result<Value> {
    jsonlogic::evaluate(
        &strict_json::parse(logic.as_bytes()).unwrap(),
        &strict_json::parse(data.as_bytes()).unwrap(),
    )
}

#[test]
fn a_value_nested_by_a_rule_is_rejected_and_freed() {
    let error = evaluated(&folding(WHOLE, WHOLE), &zeros(4_900)).unwrap_err();
    assert_eq!(error.code(), Code::FuelExhausted);
    assert!(error.message().contains("deeper than 64 levels"));
}

#[test]
fn the_comparison_of_deep_values_is_limited() {
    let deep = folding(WHOLE, WHOLE);
    let error = evaluated(&format!(r#"{{"===": [{deep}, {deep}]}}"#), &zeros(2_000)).unwrap_err();
    assert!(error.message().contains("deeper than 64 levels"));
}

#[test]
fn exponential_growth_is_stopped_early() {
    for operator in ["merge", "cat"] {
        let body = format!(r#"{{"{operator}": [{{"var": "accumulator"}}, {{"var": "accumulator"}}]}}"#);
        let error = evaluated(&folding(WHOLE, &body), &zeros(60)).unwrap_err();
        assert_eq!(error.code(), Code::FuelExhausted, "{operator}");
    }
}

#[test]
fn a_large_merge_is_rejected_before_allocation() {
    let merge = format!(r#"{{"merge": [{}]}}"#, vec![WHOLE; 4_000].join(","));
    assert_eq!(evaluated(&merge, &zeros(20_000)).unwrap_err().code(), Code::FuelExhausted);
}

#[test]
fn a_rule_cannot_exceed_the_depth_limit_of_the_state() {
    let deep = folding(&zeros(60), WHOLE);
    let program = program(
        "{}",
        &format!(r#"{{"d": {deep}}}"#),
        r#"[{"op": "push", "path": "state.list", "value": "d"}, {"op": "set", "path": "state.a", "value": "d"}]"#,
    );
    let mut state = program.new_state(1);
    let before = state.tree_json().unwrap();
    let outcome = program.act(&mut state, "x", b"{}").unwrap();
    assert!(outcome.contains(r#""accepted":true"#), "{outcome}");
    assert_ne!(state.tree_json().unwrap(), before);
    assert!(state.to_json(&program).is_ok());
}

#[test]
fn a_failed_list_of_effects_is_rolled_back() {
    let program = program(
        "{}",
        "{}",
        r#"[{"op": "set", "path": "state.made", "value": {"k": [1]}},
            {"op": "patch", "path": "state.made", "value": {"k": 2, "l": 3}},
            {"op": "push", "path": "state.list", "value": 1},
            {"op": "pop", "path": "state.list"},
            {"op": "inc", "path": "state.a", "value": 1},
            {"op": "addlog", "message": "m"},
            {"op": "schedule", "id": "s", "after": 1, "effects": [{"op": "pop", "path": "state.list"}]},
            {"op": "inc", "path": "state.text", "value": 1}]"#,
    );
    let mut state = program.new_state(1);
    let before = program.new_state(1).tree_json().unwrap();
    let outcome = program.act(&mut state, "x", b"{}").unwrap();
    assert!(outcome.contains(r#""rule":"/actions/0/effects/7""#), "{outcome}");
    assert!(outcome.contains(r#""changes":[],"errors""#), "{outcome}");
    assert_eq!(state.tree_json().unwrap(), before);
    assert!(state.to_json(&program).unwrap().contains(r#""log":[],"opened":true"#));
}

#[test]
fn a_fork_is_independent_of_the_original() {
    let program = program("{}", "{}", r#"[{"op": "push", "path": "state.list", "value": 1}]"#);
    let mut state = program.new_state(1);
    let fork = state.clone();
    program.act(&mut state, "x", b"{}").unwrap();
    assert!(state.tree_json().unwrap().contains(r#""list":[1]"#));
    assert!(fork.tree_json().unwrap().contains(r#""list":[]"#));
}

#[test]
fn an_unvalidated_document_is_rejected_without_a_panic() {
    for document in
        ["null", "{}", r#"{"state": []}"#, r#"{"state": {}, "negativity_budget": {}, "actions": [1]}"#]
    {
        assert_eq!(Program::new(document.as_bytes()).unwrap_err().code(), Code::SpecInvalid, "{document}");
    }
}

#[test]
fn a_cyclic_derived_value_is_rejected() {
    let document = r#"{"state": {}, "negativity_budget": {}, "random_events": [], "loss_conditions": [],
        "actions": [{"id": "x", "params": {}, "preconditions": {}, "effects": [],
            "derives": {"d": {"var": "derives.e"}, "e": {"var": "derives.d"}}}]}"#;
    assert_eq!(Program::new(document.as_bytes()).unwrap_err().code(), Code::SpecInvalid);
}

#[test]
fn a_foreign_snapshot_is_rejected() {
    let program = program("{}", "{}", "[]");
    let good = program.new_state(7).to_json(&program).unwrap();
    assert!(simcore::State::from_json(&program, good.as_bytes()).is_ok());
    let replacements = [
        (r#""turn":0"#, r#""turn":-1"#),
        (r#""seed":"7""#, r#""seed":"x""#),
        (r#""lasting":[]"#, r#""lasting":[{"id":"none","until":1}]"#),
        (r#""kind":"ongoing""#, r#""kind":"lost","condition":"none""#),
        (r#""scheduled":[]"#, r#""scheduled":[{"id":"s","due":1,"effects":[{"op":"none"}]}]"#),
        (r#""rng_version":1"#, r#""rng_version":2"#),
    ];
    for (ours, theirs) in replacements {
        let bad = good.replace(ours, theirs);
        assert_ne!(bad, good);
        let error = simcore::State::from_json(&program, bad.as_bytes()).unwrap_err();
        assert_eq!(error.code(), Code::SnapshotInvalid, "{theirs}");
    }
}
