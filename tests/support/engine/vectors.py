"""Golden vectors: what a case of each kind means. Clients in other languages read the same files."""

from __future__ import annotations

import json
from pathlib import Path
from struct import iter_unpack
from typing import TYPE_CHECKING, Any

from peripety.engine.backend_protocol import EngineError
from peripety.engine.lowering import lower_document
from peripety.engine.patterns.matcher import PatternMatcher
from peripety.engine.patterns.syntax import MatchSubject, Pattern, TextKind, TextPattern

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.engine.backend_protocol import Backend, BackendProgram, BackendState


VECTORS = Path(__file__).parents[2] / "conformance" / "vectors"


def expectation(core: Backend, kind: str, case: dict[str, Any]) -> Any:
    """Return the result of a core for a case, or `{"error": {code, message, path}}`."""
    try:
        return KINDS[kind](core, case)
    except EngineError as error:
        return {"error": {"code": error.code, "message": error.message, "path": error.path}}


def _border(core: Backend, case: dict[str, Any]) -> Any:
    """`hex` or `text`: a document; the result is its canonical text."""
    document = bytes.fromhex(case["hex"]) if "hex" in case else case["text"].encode("utf-8")
    return {"canonical": core.parse(document).decode("utf-8")}


def _logic(core: Backend, case: dict[str, Any]) -> Any:
    """`logic` over `data`, both JSON text; the result is the canonical text of the value."""
    return {
        "canonical": core.evaluate(case["logic"].encode("utf-8"), case["data"].encode("utf-8")).decode(
            "utf-8",
        ),
    }


def _draws(core: Backend, case: dict[str, Any]) -> Any:
    """A keyed draw, or a run's seed; 64-bit numbers are decimal text."""
    if "run" in case:
        return {"value": str(core.run_seed(int(case["seed"]), case["run"]))}
    return {"value": str(core.draw(int(case["seed"]), case["stream"], case["turn"], case["index"]))}


def _play(core: Backend, case: dict[str, Any]) -> Any:
    """A `spec` played from `seed` by `calls`: their results, and the snapshot.

    A call is `{act, params}`, `{narrate}` of changes, `{step}`, `{roll}` of a request, or `{reload}`, which
    continues from the snapshot.
    """
    _, state, results = _after_calls(core, case)
    return {"results": results, "snapshot": state.to_json().decode("utf-8")}


def _after_calls(core: Backend, case: dict[str, Any]) -> tuple[BackendProgram, BackendState, list[Any]]:
    program = _compiled(core, case["spec"])
    state = program.new_state(int(case["seed"]))
    results: list[Any] = []
    for call in case["calls"]:
        if "reload" in call:
            state = program.load_state(state.to_json())
            continue
        try:
            results.append(json.loads(called(program, state, call)))
        except EngineError as error:
            results.append({"error": {"code": error.code, "message": error.message, "path": error.path}})
    return program, state, results


def _compiled(core: Backend, spec: Any) -> BackendProgram:
    document = core.parse(json.dumps(spec).encode("utf-8"))
    lowering = lower_document(document)
    return core.compile(lowering.document if lowering else document)


def _lowering(core: Backend, case: dict[str, Any]) -> Any:
    """`spec` as written; the result is the canonical text of the lowered document."""
    lowering = lower_document(core.parse(json.dumps(case["spec"]).encode("utf-8")))
    return {"canonical": lowering.document.decode("utf-8") if lowering else None}


def called(program: BackendProgram, state: BackendState, call: dict[str, Any]) -> bytes:
    """The result of one call of a played case."""
    if "act" in call:
        return program.act(state, call["act"], json.dumps(call["params"]).encode("utf-8"))
    if "narrate" in call:
        return program.narrate(state, json.dumps(call["narrate"]).encode("utf-8"))
    if "roll" in call:
        return program.roll(state, json.dumps(call["roll"]).encode("utf-8"))
    return program.step(state)


def _dry_run(core: Backend, case: dict[str, Any]) -> Any:
    """A dry-run of `spec` under `options`; the result is its report."""
    program = _compiled(core, case["spec"])
    return json.loads(program.dry_run(json.dumps(case["options"]).encode("utf-8")))


def _futures(core: Backend, case: dict[str, Any]) -> Any:
    """The futures, under `options`, of the state to which a `spec` comes from `seed` by `calls`: a report."""
    program, state, _ = _after_calls(core, case)
    return json.loads(program.simulate_from(state, json.dumps(case["options"]).encode("utf-8")))


def _personas(core: Backend, case: dict[str, Any]) -> Any:
    """Dry-runs of `spec` under `options`, one for each of `personas`; the result is their reports."""
    return {
        persona: _dry_run(core, {"spec": case["spec"], "options": {**case["options"], "persona": persona}})
        for persona in case["personas"]
    }


def _match(core: Backend, case: dict[str, Any]) -> Any:
    """`patterns` matched against `subjects`: for each subject the first that matches, and all that do.

    A text pattern is `[kind, text]`, followed by `true` if case is ignored. In `skip` a subject may name
    patterns that must not be the first.
    """
    matcher = PatternMatcher([*map(_pattern, case["patterns"])], backend=core)
    results = []
    for given in case["subjects"]:
        subject = MatchSubject(**{key: value for key, value in given.items() if key != "skip"})
        results.append(
            {
                "first": matcher.first(subject, given.get("skip", ())),
                "all": [index for index in range(len(matcher)) if matcher.matches(index, subject)],
            },
        )
    return results


def _pattern(given: dict[str, Any]) -> Pattern:
    texts = {
        field: TextPattern(TextKind(kind), *rest)
        for field, (kind, *rest) in given.items()
        if field != "message_index"
    }
    indices = given.get("message_index")
    return Pattern(**texts, message_index=None if indices is None else (indices[0], indices[1]))


def _policies(core: Backend, case: dict[str, Any]) -> Any:
    """Decisions of a `policy` about `requests`.

    `decided` has for each request the `rule` that decides it, an index into the invariants and rules, -1 for
    none and -2 for an unknown tool; and `errors`, the conditions up to it that cannot be evaluated. `matches`
    has for each rule the numbers of the requests that its condition `holds` for, and for which it is
    `unevaluated`.
    """
    policy = core.compile_policy(core.parse(json.dumps(case["policy"]).encode("utf-8")))
    requests = policy.parse_requests([json.dumps(request).encode("utf-8") for request in case["requests"]])
    deciding, troubled = policy.decide_many(requests)
    decided = [
        {"rule": rule, "errors": json.loads(policy.explain_errors(requests, number))}
        for number, (rule,) in enumerate(iter_unpack("<i", deciding))
    ]
    assert _numbers(troubled) == [number for number, one in enumerate(decided) if one["errors"]]
    matches = [
        {"holds": _numbers(holds), "unevaluated": _numbers(fails)}
        for holds, fails in policy.match_rules(requests, None)
    ]
    return {"decided": decided, "matches": matches}


def _numbers(bits: bytes) -> list[int]:
    """The members of a set of bits."""
    return [number for number in range(len(bits) * 8) if bits[number // 8] >> number % 8 & 1]


def _policy_values(core: Backend, case: dict[str, Any]) -> Any:
    """Results of a matcher of a `kind`, with `among` and perhaps a `quantifier` and `lists`, for `values`.

    Each value is the only one at a path of the arguments. A result is true, false, or the code and message of
    the evaluation error.
    """
    matcher: dict[str, Any] = {key: case[key] for key in ("kind", "among", "quantifier") if key in case}
    rule = {
        "id": "r",
        "when": {"arguments": [{"argument_roles": ["r"], **matcher}]},
        "then": "deny",
        "reason": "r",
    }
    annotation = {"server_name": "s", "tool_name": "t", "argument_roles": [{"path": "/a", "role": "r"}]}
    given: dict[str, Any] = {
        "policy_version": "1.0",
        "id": "p",
        "name": "P",
        "tools": [annotation],
        "rules": [rule],
        "lists": case.get("lists", {}),
    }
    policy = core.compile_policy(
        core.parse(json.dumps(given | {"lists": case.get("lists", {})}).encode("utf-8")),
    )
    calls = [
        {"server_name": "s", "tool_name": "t", "arguments": {"a": value}, "roles": []}
        for value in case["values"]
    ]
    requests = policy.parse_requests([json.dumps(call).encode("utf-8") for call in calls])
    ((rule_holds, _),) = policy.match_rules(requests, None)
    holding = _numbers(rule_holds)
    return [
        {"code": errors[0]["code"], "message": errors[0]["message"]} if errors else number in holding
        for number in range(len(calls))
        for errors in [json.loads(policy.explain_errors(requests, number))]
    ]


KINDS: dict[str, Callable[[Backend, dict[str, Any]], Any]] = {
    "border": _border,
    "logic": _logic,
    "draws": _draws,
    "play": _play,
    "dry_run": _dry_run,
    "personas": _personas,
    "futures": _futures,
    "match": _match,
    "policies": _policies,
    "policy_values": _policy_values,
    "lowering": _lowering,
}
