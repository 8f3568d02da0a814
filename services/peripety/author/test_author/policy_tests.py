"""Policy tests: requests that reach something new, with the decisions of the engine.

Candidate values are the values of the rules, boundary values, their neighbours, and disguised variants.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, islice, pairwise
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.author.test_author.candidates import Candidate, CandidateDetails
from peripety.author.test_author.engine_traces import describe_mutation, mutate_document, value_at
from peripety.engine import ToolRequest
from peripety.engine.schema_validation import format_pointer, parse_pointer, validate_against_schema
from peripety.errors import PeripetyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.author.test_author.candidates import AuthoringRequest


_ELSEWHERE = "elsewhere.example"
_SOMEONE = "someone"
_MAX_TEXT_VALUE = 60_000
"""The maximum length of a text value; a request must have room for others."""


@dataclass(frozen=True)
class CandidateValue:
    """Candidate value of an argument.

    Attributes:
        value: the value.
        boundaries: JSON Pointers of boundaries, each with its side.
        is_disguised: True if it could be mistaken for another value.
    """

    value: Any
    boundaries: frozenset[str] = frozenset()
    is_disguised: bool = False


def values_of_schema(schema: Any) -> Iterator[CandidateValue]:
    """Yield the values and bounds of a schema; empty if it has none."""
    if not isinstance(schema, dict):  # true and false are schemas, too
        return
    if "const" in schema:
        yield CandidateValue(schema["const"])
        return
    for value in (*(schema.get("examples") or ()), *(schema.get("enum") or ())):
        yield CandidateValue(value)
    if schema.get("enum"):
        return
    match schema.get("type"):
        case "boolean":
            yield from map(CandidateValue, (False, True))
        case "integer" | "number":
            bounds = [schema[name] for name in ("minimum", "maximum") if name in schema]
            yield from map(CandidateValue, bounds or (1, 0))
        case "string":
            yield CandidateValue("a" * min(max(1, schema.get("minLength") or 0), _MAX_TEXT_VALUE))
        case "array":
            yield from values_of_schema(schema.get("items") or {})
        case "object":
            yield CandidateValue({})


def values_around_number(number: Any, place: str) -> Iterator[CandidateValue]:
    """Yield a compared constant and its neighbours."""
    yield CandidateValue(number, frozenset({f"{place}/on"}))
    if isinstance(number, bool):
        yield CandidateValue(not number)
    elif isinstance(number, int | float):
        yield CandidateValue(number - 1, frozenset({f"{place}/below"}))
        yield CandidateValue(number + 1, frozenset({f"{place}/above"}))
        yield CandidateValue(str(number), is_disguised=True)
    elif isinstance(number, str):
        yield CandidateValue(f"{number}x", is_disguised=True)
        yield CandidateValue(
            number.upper() if number != number.upper() else number.lower(),
            is_disguised=True,
        )


def values_around_entry(kind: str, entry: str, place: str) -> Iterator[CandidateValue]:
    """Yield values that match a matcher entry, adjacent values outside it, and lookalikes."""
    on, inside, outside = (frozenset({f"{place}/{side}"}) for side in ("on", "inside", "outside"))
    match kind:
        case "path":
            whole = entry.rstrip("/")
            parent = whole.rpartition("/")[0]
            yield CandidateValue(f"{whole}/inner", inside)
            yield CandidateValue(entry, on)
            yield CandidateValue(f"{whole}/inner/deeper/file", inside)
            if whole:
                yield CandidateValue(f"{whole}-next", outside, is_disguised=True)
                yield CandidateValue(parent or "/", outside)
                yield CandidateValue(f"{parent}/elsewhere", outside)
                yield CandidateValue(f"{whole}/../elsewhere", outside, is_disguised=True)
                yield CandidateValue(f"{whole}/./inner", inside, is_disguised=True)
                yield CandidateValue(
                    f"{parent}/elsewhere/..{whole.removeprefix(parent)}/inner",
                    inside,
                    is_disguised=True,
                )
                yield CandidateValue(whole.upper(), is_disguised=True)
            yield CandidateValue("/elsewhere/example", is_disguised=False)
        case "domain" | "email":
            yield from _values_around_host(kind, entry, on, inside, outside)
        case _:
            yield CandidateValue(entry, on)
            yield CandidateValue(f"{entry}-next", is_disguised=True)
            yield CandidateValue(
                entry.upper() if entry != entry.upper() else entry.lower(),
                is_disguised=True,
            )
            yield CandidateValue("something-else")


def _values_around_host(
    kind: str,
    entry: str,
    on: frozenset[str],
    inside: frozenset[str],
    outside: frozenset[str],
) -> Iterator[CandidateValue]:
    local, _, pattern = entry.rpartition("@")
    who = _SOMEONE if local in {"", "*"} else local
    below = pattern.startswith("*.")
    host = pattern.removeprefix("*.")

    def at(name: str) -> str:
        return f"{who}@{name}" if kind == "email" else name

    yield CandidateValue(at(f"www.{host}" if below else host), on | inside)
    yield CandidateValue(at(host if below else f"www.{host}"), outside)
    yield CandidateValue(at(f"not{host}"), outside, is_disguised=True)
    yield CandidateValue(at(f"{host}.{_ELSEWHERE}"), outside, is_disguised=True)
    yield CandidateValue(at(f"a.b.{host}"), inside if below else outside)
    yield CandidateValue(at((f"www.{host}" if below else host).upper()), is_disguised=True)
    yield CandidateValue(at(_ELSEWHERE))
    if kind == "email" and local not in {"", "*"}:
        yield CandidateValue(f"{_SOMEONE}-else@{host}", outside)


_MAX_PER_TOOL = 500
_MAX_ROWS_PER_ROLE = 24
_MAX_VALUES = 30
_MAX_LISTED = 8
_PLAIN_VALUE = "example"


@dataclass(frozen=True)
class CandidateRequest:
    """Request with its test tags.

    Attributes:
        request: the request.
        boundaries: JSON Pointers of boundaries, each with its side.
        categories: the test categories it belongs to, independent of the decision.
    """

    request: ToolRequest
    boundaries: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """Return it as readable text."""
        given = json.dumps(dict(self.request.arguments), ensure_ascii=False)
        by = f" by {', '.join(self.request.roles)}" if self.request.roles else ""
        return f"{self.request.server_name}/{self.request.tool_name} {given}{by}"


@dataclass
class _CandidateArgument:
    """Argument of a tool with candidate values; the first is an ordinary one."""

    name: str
    values: list[CandidateValue] = field(default_factory=list)


def generate_requests(
    document: Mapping[str, Any],
    rules: Sequence[Mapping[str, Any]],
) -> Iterator[CandidateRequest]:
    """Yield valid requests for each tool of a policy, simplest first, without duplicates.

    Args:
        document: the policy.
        rules: its invariants and rules.
    """
    roles = [(), *((role,) for role in _find_caller_roles(rules))]
    for tool in document["tools"]:
        seen = set()
        for request in islice(_tool_requests(tool, document, rules, roles), _MAX_PER_TOOL):
            if str(request) not in seen:
                seen.add(str(request))
                yield request


def _tool_requests(
    tool: Mapping[str, Any],
    document: Mapping[str, Any],
    rules: Sequence[Mapping[str, Any]],
    roles: Sequence[tuple[str, ...]],
) -> Iterator[CandidateRequest]:
    """Yield the ordinary request under each role, then requests that differ in one value, then in two."""
    arguments = [*_candidate_arguments(tool, document, rules)]
    plain = {one.name: one.values[0] for one in arguments}
    every = tuple(role for held in roles for role in held)
    held_by = [*dict.fromkeys([*roles, every])]
    for number, row in enumerate(_argument_rows(arguments, plain, tool.get("input_schema"))):
        given = {name: value.value for name, value in row.items()}
        # Roles are combined only with the first values; all combinations would be too many.
        for held in held_by if number < _MAX_ROWS_PER_ROLE else ((),):
            request = ToolRequest(tool["server_name"], tool["tool_name"], given, held)
            yield CandidateRequest(request, *_collect_tags(row, plain))


def _argument_rows(
    arguments: Sequence[_CandidateArgument],
    plain: Mapping[str, CandidateValue],
    schema: Mapping[str, Any] | None,
) -> Iterator[Mapping[str, CandidateValue]]:
    """Yield argument values that satisfy the schema of the tool."""

    def is_taken(row: Mapping[str, CandidateValue]) -> bool:
        given = {name: value.value for name, value in row.items()}
        return schema is None or not validate_against_schema(schema, given, linear=True)

    yield from filter(is_taken, [plain])
    taken: dict[str, list[CandidateValue]] = {}
    for one in arguments:
        taken[one.name] = [value for value in one.values[1:] if is_taken({**plain, one.name: value})]
        yield from ({**plain, one.name: value} for value in taken[one.name])
    for left in plain:
        yield from filter(is_taken, [{name: value for name, value in plain.items() if name != left}])
    pairs = (
        {**plain, one: value, other: beside}
        for one, other in combinations(taken, 2)
        for value in taken[one]
        for beside in taken[other]
    )
    yield from filter(is_taken, islice(pairs, _MAX_PER_TOOL))


def _collect_tags(
    row: Mapping[str, CandidateValue],
    plain: Mapping[str, CandidateValue],
) -> tuple[frozenset[str], frozenset[str]]:
    borders = frozenset().union(*(value.boundaries for value in row.values()))
    fits = {"boundary"} if borders else set()
    if len(row) < len(plain) or any(value.is_disguised for value in row.values()):
        fits.add("evasion")
    return borders, frozenset(fits)


def _candidate_arguments(
    tool: Mapping[str, Any],
    document: Mapping[str, Any],
    rules: Sequence[Mapping[str, Any]],
) -> Iterator[_CandidateArgument]:
    """Yield the arguments from schema, roles and rules, with candidate values for each."""
    properties = (tool.get("input_schema") or {}).get("properties") or {}
    of_roles: dict[str, set[str]] = {}
    for argument in tool.get("argument_roles") or ():
        of_roles.setdefault(argument["path"].split("/")[1], set()).add(argument["role"])
    compared = [*_find_comparands(document, rules, tool)]
    names = dict.fromkeys([*properties, *of_roles, *(name for name, *_ in compared)])
    is_closed = (tool.get("input_schema") or {}).get("additionalProperties") is False
    for name in properties if is_closed else names:
        schema = properties.get(name)
        schema = schema if isinstance(schema, dict) else {}
        values = [*values_of_schema(schema)]
        for place, number in ((place, number) for of, place, number in compared if of == name):
            values += values_around_number(number, place)
        for place, kind, entry in _find_entries(of_roles.get(name, set()), document, rules):
            values += values_around_entry(kind, entry, place)
        if schema.get("type") == "array":
            values = [*_list_values(values)]
        elif not values or not isinstance(values[0].value, str | int | float | bool):
            values.insert(0, CandidateValue(_PLAIN_VALUE))
        if not schema and name in of_roles:
            # Without a schema, the argument may also be a list.
            values += _list_values(values[1:_MAX_LISTED])
        yield _CandidateArgument(name, [*_merge_values(values)][:_MAX_VALUES])


def _merge_values(values: Iterable[CandidateValue]) -> Iterator[CandidateValue]:
    """Merge duplicate values and their boundaries."""
    merged: dict[str, CandidateValue] = {}
    for value in values:
        key = json.dumps(value.value)
        same = merged.get(key, value)
        merged[key] = replace(same, boundaries=same.boundaries | value.boundaries)
    return iter(merged.values())


def _list_values(values: Sequence[CandidateValue]) -> Iterator[CandidateValue]:
    """Yield lists with one value, with two adjacent values, and the empty list."""
    single = [value for value in values if not isinstance(value.value, list)]
    for value in single or [CandidateValue(_PLAIN_VALUE)]:
        yield CandidateValue([value.value], value.boundaries, value.is_disguised)
    for one, other in pairwise(single):
        yield CandidateValue([one.value, other.value], one.boundaries | other.boundaries, is_disguised=True)
    yield CandidateValue([], is_disguised=True)


def _find_entries(
    roles: set[str],
    document: Mapping[str, Any],
    rules: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[str, str, str]]:
    """Yield the pointer, kind and text of each matcher entry for the roles."""
    lists = document.get("lists") or {}
    for at, rule in _rules_with_paths(document, rules):
        for number, matcher in enumerate(rule["when"].get("arguments", ())):
            if not roles & {*matcher["argument_roles"]}:
                continue
            waiting = [(format_pointer((*at, "when", "arguments", number, "among")), matcher["among"])]
            seen: set[str] = set()
            while waiting:
                place, entries = waiting.pop()
                for index, entry in enumerate(entries):
                    if not entry.startswith("@"):
                        yield f"{place}/{index}", matcher["kind"], entry
                    elif entry not in seen and entry[1:] in lists:
                        seen.add(entry)
                        waiting.append(
                            (format_pointer(("lists", entry[1:], "values")), lists[entry[1:]]["values"]),
                        )


def _rules_with_paths(
    document: Mapping[str, Any],
    rules: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    invariants = len(document.get("invariants") or ())
    for index, rule in enumerate(rules):
        yield ("invariants", index) if index < invariants else ("rules", index - invariants), rule


def _find_comparands(
    document: Mapping[str, Any],
    rules: Sequence[Mapping[str, Any]],
    tool: Mapping[str, Any],
) -> Iterator[tuple[str, str, Any]]:
    """Yield each argument in an expression, with the pointer to the compared value, and the value."""
    for at, rule in _rules_with_paths(document, rules):
        tools = rule["when"].get("tools")
        if "logic" in rule["when"] and (tools is None or tool["tool_name"] in tools):
            yield from _find_in_logic(rule["when"]["logic"], format_pointer((*at, "when", "logic")))


def _find_in_logic(logic: Any, place: str) -> Iterator[tuple[str, str, Any]]:
    if isinstance(logic, list):
        for index, part in enumerate(logic):
            yield from _find_in_logic(part, f"{place}/{index}")
    if not isinstance(logic, dict):
        return
    for operator, operands in logic.items():
        here = f"{place}{format_pointer((operator,))}"
        yield from _find_in_logic(operands, here)
        if isinstance(operands, list):
            names = [_argument_of_variable(part) for part in operands]
            name = next((one for one in names if one), None)
            for index, part in enumerate(operands if name else ()):
                if isinstance(part, int | float | str | bool):
                    yield str(name), f"{here}/{index}", part
                elif isinstance(part, list):
                    yield from ((str(name), f"{here}/{index}/{n}", one) for n, one in enumerate(part))


def _argument_of_variable(part: Any) -> str | None:
    """Return the argument that a variable reads, in full or in part."""
    match part:
        case {"var": str(path)} | {"var": [str(path), *_]} if path.startswith("arguments."):
            return path.split(".")[1]
    return None


def _find_caller_roles(rules: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the caller roles in conditions, in order."""
    found: dict[str, None] = {}
    for rule in rules:
        found |= dict.fromkeys(rule["when"].get("roles", ()))
    return [*found]


_OF_DECISION = {"allow": "allowed", "deny": "denied", "escalate": "escalated"}


def policy_candidates(document: Mapping[str, Any], asked: AuthoringRequest) -> list[Candidate]:
    """Return tests of a policy, simplest first; they expect the decisions of the engine.

    Raises:
        SpecError: the document is not a valid policy.
    """
    policy = engine.compile_policy(json.dumps(document).encode())
    requests = [*generate_requests(document, policy.rules)]
    prepared = policy.prepare([request.request for request in requests])
    decided = policy.decide_many(prepared)
    gains: list[set[str]] = [set() for _ in requests]
    mistakes: list[str] = ["" for _ in requests]
    for survivor, variant in mutate_document(document, asked.survivors):
        for number, other in enumerate(_mutant_decisions(variant, prepared)):
            if other is not decided[number].decision:
                gains[number].add(survivor["mutant"])
                mistakes[number] = mistakes[number] or describe_mutation(survivor)
    for target in asked.uncovered:
        for number in _find_reaching(policy, target, requests, prepared):
            gains[number].add(target)
    return [
        _request_candidate(request, one, frozenset(gained), why)
        for request, one, gained, why in zip(requests, decided, gains, mistakes, strict=True)
    ]


def _mutant_decisions(variant: Mapping[str, Any], requests: engine.PreparedRequests) -> list[engine.Decision]:
    """Return the decisions of a mutant; empty if it is not a valid policy."""
    try:
        policy = engine.compile_policy(json.dumps(variant).encode())
        return [one.decision for one in policy.decide_many(requests)]
    except PeripetyError:
        return []


def _find_reaching(
    policy: engine.Policy,
    target: str,
    requests: Sequence[CandidateRequest],
    prepared: engine.PreparedRequests,
) -> Iterator[int]:
    """Yield the indices of the requests that reach a part of a policy."""
    kind, _, path = target.partition(":")
    deciding = policy.find_deciding_rules(prepared)
    if kind == "boundary":
        yield from (number for number, request in enumerate(requests) if path in request.boundaries)
        return
    try:
        index, part = _find_rule(policy, path)
    except (KeyError, IndexError, TypeError, ValueError):
        return
    if kind == "rule":
        yield from (number for number, by in enumerate(deciding) if by == index)
        return
    if part is None:
        return
    (holds,) = policy.match_rules(prepared, [{**policy.rules[index], "when": part}])
    wanted = path.endswith("/true")
    for number, by in enumerate(deciding):
        is_asked = by in {-1, index} or by > index
        if is_asked and bool(holds.holds >> number & 1) is wanted:
            yield number


def _find_rule(policy: engine.Policy, path: str) -> tuple[int, Mapping[str, Any] | None]:
    """Return the index of the rule at a JSON Pointer, and the referenced part of its condition."""
    section, index, *place = parse_pointer(path)
    if index == "-":
        return -1, None
    number = int(index) + (0 if section == "invariants" else policy.invariants)
    match place:
        case ["when", "arguments", matcher, _]:
            return number, {"arguments": [policy.rules[number]["when"]["arguments"][int(matcher)]]}
        case ["when", "logic", *_]:
            inner = value_at(policy.spec, path.rpartition("/")[0])
            return number, {"logic": inner if isinstance(inner, dict) else {"!!": [inner]}}
        case ["when", member, _]:
            return number, {member: policy.rules[number]["when"][member]}
    return number, None


def _request_candidate(
    request: CandidateRequest,
    decided: engine.DecisionResult,
    gains: frozenset[str],
    why: str,
) -> Candidate:
    decision = decided.decision.value
    by = decided.rule_id or "no rule"
    return Candidate(
        str(request),
        frozenset({_OF_DECISION[decision], *request.categories}),
        gains,
        partial(_write_request_test, request, decision, by, why),
        frozenset({f"{by} {request.request.tool_name} {next(iter(sorted(request.categories)), '')}"}),
        len(str(request)),
    )


def _write_request_test(request: CandidateRequest, decision: str, by: str, why: str) -> CandidateDetails:
    body = {
        "server_name": request.request.server_name,
        "tool_name": request.request.tool_name,
        "arguments": dict(request.request.arguments),
        "roles": [*request.request.roles],
        "expected": decision,
    }
    decides = f"Decided by {by}."
    name = f"{request.request.tool_name}_{decision}".lower()
    return CandidateDetails(name, f"{decides} {why}".strip(), decision, body)
