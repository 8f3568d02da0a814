//! Tests of policies through the public API: decisions, and matches of conditions.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use simcore::policies::Requests;
use simcore::{Node, Policy};

const TOOLS: &str = r#"[
    {"server_name": "s", "tool_name": "t", "read_only": true, "argument_roles": [
        {"path": "/a", "role": "from"}, {"path": "/b/0", "role": "into"}, {"path": "/a", "role": "into"}]},
    {"server_name": "s", "tool_name": "u"}]"#;

fn policy(rules: &str) -> Policy {
    let lists =
        r#"{"x": {"kind": "path", "values": ["/x", "@y"]}, "y": {"kind": "path", "values": ["/y", "@x"]}}"#;
    Policy::new(format!(r#"{{"tools": {TOOLS}, "lists": {lists}, "rules": [{rules}]}}"#).as_bytes()).unwrap()
}

fn rule(when: &str, then: &str) -> String {
    format!(r#"{{"when": {{{when}}}, "then": "{then}"}}"#)
}

fn among(entry: &str, quantifier: &str) -> String {
    format!(
        r#""arguments": [{{"argument_roles": ["into"], "kind": "path", "among": ["{entry}"], "quantifier": "{quantifier}"}}]"#
    )
}

fn read(policy: &Policy, calls: &[(&str, &str)]) -> Requests {
    let mut parser = policy.request_parser();
    for (tool, arguments) in calls {
        let request = format!(
            r#"{{"server_name": "s", "tool_name": "{tool}", "arguments": {arguments}, "roles": ["r"]}}"#
        );
        parser.add_document(request.as_bytes()).unwrap();
    }
    parser.finish()
}

#[test]
fn the_first_matching_rule_decides() {
    let rules = [rule(r#""tools": ["u"]"#, "deny"), rule(r#""roles": ["r", "a"]"#, "allow")].join(",");
    let policy = policy(&rules);
    let requests = read(&policy, &[("t", "{}"), ("u", "{}"), ("v", "{}")]);
    assert_eq!(policy.decide_many(&requests).0, [1, 0, -2]);
}

#[test]
fn single_and_batch_decisions_agree() {
    let rules = [
        rule(&among("@x", "any"), "deny"),
        rule(r#""roles": ["q"], "logic": {"in": ["r", {"var": "roles"}]}"#, "escalate"),
        rule(r#""logic": {"<": [{"+": [{"var": "arguments.n"}]}, 4]}"#, "allow"),
    ];
    let policy = policy(&rules.join(","));
    let texts = [Node::Text("/a"), Node::Text("/x")];
    let broken = [Node::Text("/a"), Node::Null];
    let calls: [(_, &[_], _, _); 9] = [
        ("t", &[("a", Node::Text("/y/z"))], r#"{"a": "/y/z"}"#, (0, false)),
        ("t", &[("a", Node::Text("y"))], r#"{"a": "y"}"#, (0, true)),
        ("t", &[("a", Node::Array(&texts))], r#"{"a": ["/a", "/x"]}"#, (0, false)),
        ("t", &[("a", Node::Array(&broken))], r#"{"a": ["/a", null]}"#, (0, true)),
        ("t", &[("a", Node::Null), ("b", Node::Array(&texts))], r#"{"b": ["/a"]}"#, (2, false)),
        ("t", &[("a", Node::Bool(true))], r#"{"a": true}"#, (0, true)),
        ("u", &[("n", Node::Number(3.0))], r#"{"n": 3}"#, (2, false)),
        ("u", &[("n", Node::Text("x"))], r#"{"n": "x"}"#, (-1, true)),
        ("v", &[], "{}", (-2, false)),
    ];
    for (tool, arguments, json, expected) in calls {
        let call = policy.call("s", tool, Node::Object(arguments), &["r"]);
        assert_eq!(policy.decide(&call), expected, "{tool} {json}");
        let (decisions, failed) = policy.decide_many(&read(&policy, &[(tool, json)]));
        assert_eq!((decisions[0], !failed.into_bytes().is_empty()), expected, "{tool} {json}");
    }
    let call = policy.call("s", "u", Node::Object(&[]), &["r", "q"]);
    assert_eq!(policy.decide(&call), (1, false));
}

#[test]
fn an_unevaluated_condition_denies_and_never_allows() {
    for (then, decisions) in [("deny", 0), ("escalate", 0), ("allow", -1)] {
        let policy = policy(&rule(&among("/a", "none"), then));
        let requests = read(&policy, &[("t", r#"{"a": "a"}"#)]);
        let (found, failed) = policy.decide_many(&requests);
        assert_eq!(found, [decisions]);
        assert_eq!(failed.into_bytes(), [1]);
        let failures = policy.unevaluated(&requests, 0).unwrap();
        assert!(
            failures.starts_with(r#"[{"code":"BAD_PATH","#)
                && failures.ends_with(r#""path":"/when/arguments/0","rule":0}]"#)
        );
    }
}

#[test]
fn values_are_in_annotation_order_and_each_path_counts_once() {
    let call = |arguments| {
        let policy = policy(&rule(&among("/x", "all"), "deny"));
        let requests = read(&policy, &[("t", arguments)]);
        policy.unevaluated(&requests, 0).unwrap()
    };
    assert!(call(r#"{"a": ["/x", 1], "b": ["x"]}"#).contains("BAD_VALUE"));
    assert!(call(r#"{"a": ["x", 1], "b": [1]}"#).contains("BAD_PATH"));
    assert_eq!(call(r#"{"a": null, "b": {"0": "/x"}}"#), "[]");
}

#[test]
fn lists_can_include_others_and_cycles_terminate() {
    for (quantifier, expected) in [("all", 0b0001), ("any", 0b0101), ("none", 0b0010), ("not_all", 0b0110)] {
        let policy = policy(&rule(&among("@x", quantifier), "allow"));
        let calls = [
            ("t", r#"{"a": "/y/z"}"#),
            ("t", r#"{"a": "/xy"}"#),
            ("t", r#"{"a": ["/x", "/"]}"#),
            ("t", "{}"),
        ];
        let requests = read(&policy, &calls);
        let [matches] = <[_; 1]>::try_from(policy.matches(&requests)).unwrap();
        assert_eq!(matches.holds.into_bytes(), [expected]);
        assert_eq!(matches.unevaluated.into_bytes(), []);
    }
}

#[test]
fn other_rules_can_replace_the_rules_of_the_policy() {
    let policy = policy("");
    let requests = read(&policy, &[("u", "{}"), ("t", r#"{"n": 3}"#)]);
    let others = [
        rule(r#""read_only": true"#, "deny"),
        rule(r#""logic": {"<": [{"var": "arguments.n"}, 4]}"#, "deny"),
        rule(r#""logic": {"+": [{"var": "tool"}]}"#, "deny"),
    ];
    let matches = policy.matches_of_rules(&requests, format!("[{}]", others.join(",")).as_bytes()).unwrap();
    let bits: Vec<_> =
        matches.into_iter().map(|found| (found.holds.into_bytes(), found.unevaluated.into_bytes())).collect();
    assert_eq!(bits, [(vec![2], vec![]), (vec![3], vec![]), (vec![], vec![3])]);
}

#[test]
fn an_unvalidated_policy_is_rejected_without_a_panic() {
    for document in [
        "[]",
        r#"{"tools": []}"#,
        r#"{"tools": [], "rules": [{"when": {"roles": [1]}, "then": "deny"}]}"#,
        r#"{"tools": [], "rules": [{"when": {"arguments": [{"argument_roles": [], "kind": "path", "among": ["@a"]}]}, "then": "deny"}]}"#,
    ] {
        assert_eq!(
            Policy::new(document.as_bytes()).unwrap_err().code().as_str(),
            "SPEC_INVALID",
            "{document}"
        );
    }
    let policy = policy("");
    assert!(policy.request_parser().add_document(b"{}").is_err());
    assert!(policy.request_parser().finish().is_empty());
}
