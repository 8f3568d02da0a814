"""Static checks of a policy beyond its JSON Schema: lists, matcher values, ids, names and conditions.

Each function receives parts of a document that is valid against the schema, and yields findings. Conditions
that no tool can meet, or that would fail, are findings.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar
from zoneinfo import ZoneInfo

from peripety.engine._reference.policy_values import EntrySet
from peripety.engine.backend_protocol import EngineError
from peripety.engine.checks.document_checks import check_expression
from peripety.engine.policies.tool_checks import Presence, ToolSets, check_tools
from peripety.engine.policies.types import CONTEXT_PREFIX, UNKNOWN_TOOL
from peripety.engine.schema_validation import MAX_FINDINGS, format_pointer, parse_pointer
from peripety.errors import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.engine.paths import Path


_MAX_LISTED = 24
_MAX_COMPARED = 1000


def unknown_name_message(what: str, name: str, known: Iterable[str]) -> str:
    """Return a message about an unknown name, with the closest known one.

    Args:
        what: kind of the name, such as `list`.
        name: the unknown name.
        known: the existing names.
    """
    names = sorted(known)
    close = get_close_matches(name[:200], names[:_MAX_COMPARED], n=1)
    if close:
        hint = f"did you mean '{close[0]}'?"
    elif names:
        hint = f"known: {', '.join(names[:_MAX_LISTED])}" + (" …" if len(names) > _MAX_LISTED else "")
    else:
        hint = "the policy defines none"
    return f"unknown {what} '{name[:80]}'; {hint}"


MAX_ENTRIES = 10_000
"""Maximum entries of one matcher, counting references to lists and the values of those lists."""


class ExpandedLists:
    """Lists of a policy with their expanded sizes."""

    def __init__(self, lists: Mapping[str, Any]) -> None:
        self.lists = lists
        self._sizes: dict[str, int] = {}
        self.circular_names = {name for name in lists if self._is_circular(name)}
        for name in lists:
            self._compute_size(name)

    def count_entries(self, entries: Sequence[str]) -> int:
        """Return the number of entries after expansion; references to lists count as well."""
        return len(entries) + sum(self._sizes[name] for name in self._find_references(entries))

    def _find_references(self, entries: Sequence[str]) -> list[str]:
        names = (entry[1:] for entry in entries if entry.startswith("@"))
        return [name for name in names if name in self.lists and name not in self.circular_names]

    def _is_circular(self, name: str) -> bool:
        seen: set[str] = set()
        pending = [name]
        while pending:
            values = self.lists[pending.pop()]["values"]
            named = {value[1:] for value in values if value.startswith("@")} & self.lists.keys()
            if name in named:
                return True
            pending.extend(named - seen)
            seen |= named
        return False

    def _compute_size(self, name: str) -> None:
        """Compute the sizes of a list and its nested lists, depth first and without recursion."""
        pending = [name]
        while pending:
            at = pending[-1]
            below = [] if at in self.circular_names else self._find_references(self.lists[at]["values"])
            unmeasured = [inner for inner in below if inner not in self._sizes]
            if unmeasured:
                pending.extend(unmeasured)
            else:
                pending.pop()
                self._sizes[at] = (
                    0 if at in self.circular_names else self.count_entries(self.lists[at]["values"])
                )


def check_lists(lists: ExpandedLists) -> Iterator[Finding]:
    """Yield the findings about the lists."""
    for name, named in lists.lists.items():
        place = f"/lists{format_pointer([name])}"
        if name in lists.circular_names:
            yield Finding("LIST_CYCLE", place, f"the list '{name[:80]}' refers to itself")
        yield from check_entries(named["values"], named["kind"], f"{place}/values", lists)


def check_entries(entries: Sequence[str], kind: str, place: str, lists: ExpandedLists) -> Iterator[Finding]:
    """Yield the findings about the values of a list or of a matcher."""
    if lists.count_entries(entries) > MAX_ENTRIES:
        message = f"more than {MAX_ENTRIES} entries, counting references to lists and their values"
        yield Finding("LIST_TOO_LONG", place, message)
    for index, entry in enumerate(entries):
        if entry.startswith("@"):
            yield from _check_reference(entry[1:], kind, f"{place}/{index}", lists)
            continue
        try:
            EntrySet(kind, [entry])
        except EngineError as error:
            yield Finding("BAD_ENTRY", f"{place}/{index}", f"not a valid {kind}: {error.message}")


def _check_reference(name: str, kind: str, place: str, lists: ExpandedLists) -> Iterator[Finding]:
    if name not in lists.lists:
        yield Finding("UNKNOWN_LIST", place, unknown_name_message("list", name, lists.lists))
    elif lists.lists[name]["kind"] != kind:
        message = (
            f"the list '{name[:80]}' has the kind {lists.lists[name]['kind']}; use a list of the kind {kind}"
        )
        yield Finding("WRONG_LIST_KIND", place, message)


_INVARIANT_PREFIX = "structural-"


def check_rules(spec: dict[str, Any], tools: ToolSets, lists: ExpandedLists) -> Iterator[Finding]:
    """Yield the findings about the invariants and rules of a policy, one rule at a time."""
    seen: dict[str, str] = {}
    for section in ("invariants", "rules"):
        for index, rule in enumerate(spec.get(section, ())):
            place = f"/{section}/{index}"
            yield from _check_id(rule["id"], place, section, seen)
            yield from _check_condition(rule["when"], f"{place}/when", tools, lists)
            yield from _check_context_use(rule, place, spec.get("context", {}))


def _check_id(rule_id: str, place: str, section: str, seen: dict[str, str]) -> Iterator[Finding]:
    first = seen.setdefault(rule_id, place)
    if first != place:
        yield Finding("DUPLICATE_ID", f"{place}/id", f"duplicate id '{rule_id}', already used at {first}/id")
    if rule_id == UNKNOWN_TOOL:
        message = f"the id {UNKNOWN_TOOL} is reserved for the built-in invariant; choose another id"
        yield Finding("BAD_RULE_ID", f"{place}/id", message)
    elif section == "invariants" and not rule_id.startswith(_INVARIANT_PREFIX):
        message = (
            f"the id of an invariant must begin with {_INVARIANT_PREFIX}, such as "
            f"{_INVARIANT_PREFIX}{rule_id}"
        )
        yield Finding("BAD_RULE_ID", f"{place}/id", message[:300])
    elif section == "rules" and rule_id.startswith(_INVARIANT_PREFIX):
        message = (
            f"only ids of invariants may begin with {_INVARIANT_PREFIX}; remove the prefix, or move the rule"
        )
        yield Finding("BAD_RULE_ID", f"{place}/id", message)


def _check_condition(
    when: Mapping[str, Any],
    place: str,
    tools: ToolSets,
    lists: ExpandedLists,
) -> Iterator[Finding]:
    yield from _check_names("UNKNOWN_SERVER", when.get("servers", ()), f"{place}/servers", tools.by_server)
    yield from _check_names("UNKNOWN_TOOL", when.get("tools", ()), f"{place}/tools", tools.by_name)
    yield from _check_roles(when.get("argument_roles", ()), f"{place}/argument_roles", tools)
    for index, matcher in enumerate(when.get("arguments", ())):
        here = f"{place}/arguments/{index}"
        yield from _check_roles(matcher["argument_roles"], f"{here}/argument_roles", tools)
        yield from check_entries(matcher["among"], matcher["kind"], f"{here}/among", lists)
    fitting = tools.all_tools
    for member, allowed in _iter_tool_members(when, tools):
        if not fitting & allowed:
            message = "no tool meets this and the preceding members, so the rule never matches"
            yield Finding("NEVER_HOLDS", f"{place}{member}", message, Severity.WARNING)
            fitting = 0
            break
        fitting &= allowed
    if "logic" in when:
        yield from check_expression(when["logic"], f"{place}/logic", _ConditionScope(tools, fitting))


def check_context(context: Mapping[str, Any], tools: ToolSets) -> Iterator[Finding]:
    """Yield the findings about the declared context."""
    for name, declared in context.items():
        place = f"/context/{name}"
        yield from _check_names("UNKNOWN_TOOL", declared.get("tools", ()), f"{place}/tools", tools.by_name)
        yield from _check_roles(declared.get("argument_roles", ()), f"{place}/argument_roles", tools)
        if declared["kind"] == "provenance" and not declared.get("user") and "tools" not in declared:
            message = "needs a source: user, tools or both"
            yield Finding("BAD_CONTEXT", place, message)
        if declared["kind"] == "results":
            yield from _check_results(declared, place, tools)
        zone = declared.get("zone")
        if zone is not None and not _is_time_zone(zone):
            yield Finding(
                "BAD_CONTEXT", f"{place}/zone", f"unknown time zone '{zone}'; use a name such as UTC"
            )


def _check_results(declared: Mapping[str, Any], place: str, tools: ToolSets) -> Iterator[Finding]:
    yield from _check_roles(declared.get("each", ()), f"{place}/each", tools)
    for name, wanted in declared["results"].items():
        here = f"{place}/results/{name}"
        yield from _check_names("UNKNOWN_TOOL", wanted["tools"], f"{here}/tools", tools.by_name)
        for member in ("argument_roles", "contains"):
            yield from _check_roles(wanted.get(member, ()), f"{here}/{member}", tools)
        segments = parse_pointer(wanted.get("path", ""))
        yield from _check_roles([*filter(None, map(find_placeholder, segments))], f"{here}/path", tools)
    if "logic" in declared:
        scope = _ResultScope(frozenset(declared["results"]))
        yield from check_expression(declared["logic"], f"{place}/logic", scope)


def find_placeholder(segment: str) -> str | None:
    """Return the argument role that a segment `{ROLE}` of a path represents; None for other segments."""
    return segment[1:-1] if segment.startswith("{") and segment.endswith("}") else None


def _is_time_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return False
    return True


def _check_context_use(rule: Mapping[str, Any], place: str, declared: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the findings about the context that a rule refers to.

    Context that is not supplied does not hold. So a rule that denies or escalates while it holds would not
    apply without it, and the rules after it would decide.
    """
    when = rule["when"]
    own = [role for role in when.get("roles", ()) if role.startswith(CONTEXT_PREFIX)]
    for role in sorted({*own, *_find_context_names(when.get("logic"))}):
        if role.removeprefix(CONTEXT_PREFIX) not in declared:
            known = (f"{CONTEXT_PREFIX}{name}" for name in declared)
            yield Finding("UNKNOWN_CONTEXT", f"{place}/when", unknown_name_message("context", role, known))
    if own and rule["then"] != "allow":
        message = (
            f"a rule with {rule['then']} must not require {own[0]}; use it in a rule with allow, or negate it"
            " in logic"
        )
        yield Finding("BAD_CONTEXT", f"{place}/when/roles", message[:300])
    is_allowing = rule["then"] == "allow"
    wrong = sorted(
        {role for role, holds in _iter_context_tests(when.get("logic")) if holds is not is_allowing}
    )
    if wrong:
        form = '{"in": ["context.NAME", {"var": "roles"}]}'
        message = (
            f"without {wrong[0]}, the rule would decide less strictly: a rule with allow tests {form} below"
            f" and, or alone; a rule with {'deny' if is_allowing else rule['then']} tests its negation"
        )
        yield Finding("BAD_CONTEXT", f"{place}/when/logic", message[:300])


def _find_context_names(logic: Any) -> Iterator[str]:
    """Yield the names of context in an expression."""
    waiting = [logic]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str) and part.startswith(CONTEXT_PREFIX):
            yield part
        elif isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def _iter_context_tests(logic: Any) -> Iterator[tuple[str, bool | None]]:
    """Yield each context that an expression tests, and True if it must hold, False if it must not.

    None: the effect of the test is not known.
    """
    waiting: list[tuple[Any, bool]] = [(logic, True)]
    while waiting:
        part, holds = waiting.pop()
        operator, operand = next(iter(part.items())) if isinstance(part, dict) and part else ("", part)
        operands = operand if isinstance(operand, list) else [operand]
        if operator in {"and", "or", "!!"}:
            waiting += ((one, holds) for one in operands)
        elif operator == "!":
            waiting += ((one, not holds) for one in operands)
        elif operator == "in" and operands[1:] == [{"var": "roles"}] and isinstance(operands[0], str):
            yield from ((name, holds) for name in _find_context_names(operands[0]))
        else:
            yield from ((name, None) for name in _find_context_names(operand))


def _check_names(code: str, names: Sequence[str], place: str, known: Mapping[str, int]) -> Iterator[Finding]:
    what = code.removeprefix("UNKNOWN_").replace("_", " ").lower()
    for index, name in enumerate(names):
        if name not in known:
            yield Finding(code, f"{place}/{index}", unknown_name_message(what, name, known))


def _check_roles(roles: Sequence[str], place: str, tools: ToolSets) -> Iterator[Finding]:
    yield from _check_names("UNKNOWN_ARGUMENT_ROLE", roles, place, tools.by_role)


def _iter_tool_members(when: Mapping[str, Any], tools: ToolSets) -> Iterator[tuple[str, int]]:
    """Yield the members of a condition that depend only on the tool: path, and bit set of matching tools."""
    if "servers" in when:
        yield "/servers", _union(when["servers"], tools.by_server)
    if "tools" in when:
        yield "/tools", _union(when["tools"], tools.by_name)
    if "argument_roles" in when:
        yield "/argument_roles", _union(when["argument_roles"], tools.by_role)
    for member, having in (("read_only", tools.read_only), ("destructive", tools.destructive)):
        if member in when:
            yield f"/{member}", having if when[member] else tools.all_tools & ~having
    for index, matcher in enumerate(when.get("arguments", ())):
        yield f"/arguments/{index}", _union(matcher["argument_roles"], tools.by_role)


def _union(names: Sequence[str], sets: Mapping[str, int]) -> int:
    together = 0
    for name in names:
        together |= sets.get(name, 0)
    return together


@dataclass(frozen=True, slots=True)
class _ConditionScope:
    """Variables that a condition of a policy may read.

    Attributes:
        tools: the tools of the policy.
        fitting: bit set of tools that the rest of the condition can match.
    """

    example: ClassVar[str] = "arguments.a"
    _ROOTS: ClassVar[Sequence[str]] = ("server", "tool", "arguments", "roles")

    tools: ToolSets
    fitting: int

    def check_variable(self, text: str, path: Path, place: str) -> Iterator[Finding]:
        """Yield the findings about a variable."""
        root, *rest = (str(segment) for segment in path)
        if root not in self._ROOTS:
            message = f"'{text[:80]}' must start with {', '.join(self._ROOTS[:-1])} or {self._ROOTS[-1]}"
            yield Finding("UNKNOWN_VARIABLE", place, message)
        elif root in {"server", "tool"} and rest:
            yield Finding(
                "UNKNOWN_VARIABLE",
                place,
                f"'{root}' is a text without members; use '{root}' alone",
            )
        elif root == "arguments" and self.fitting:
            presence = self.tools.find_presence(self.fitting, rest)
            if presence is Presence.POSSIBLE:
                return
            severity = Severity.ERROR if presence is Presence.IMPOSSIBLE else Severity.WARNING
            message = f"no tool that the rule can match has the argument '{text[:80]}' in its input_schema"
            yield Finding("UNKNOWN_ARGUMENT", place, message, severity)


@dataclass(frozen=True, slots=True)
class _ResultScope:
    """Variables that the expression of a context may read.

    Attributes:
        results: the names of the results.
    """

    example: ClassVar[str] = "results.a"

    results: frozenset[str]

    def check_variable(self, text: str, path: Path, place: str) -> Iterator[Finding]:
        """Yield the findings about a variable."""
        root, *rest = (str(segment) for segment in path)
        if root not in {"arguments", "values", "results"}:
            message = f"'{text[:80]}' must start with arguments, values or results"
            yield Finding("UNKNOWN_VARIABLE", place, message)
        elif root == "results" and (not rest or rest[0] not in self.results):
            message = unknown_name_message("result", rest[0] if rest else "", self.results)
            yield Finding("UNKNOWN_VARIABLE", place, message)


def check_policy(spec: dict[str, Any]) -> list[Finding]:
    """Return the findings of a policy that is valid against the schema.

    There are at most 50, errors before warnings.
    """
    tools, lists = ToolSets(spec["tools"]), ExpandedLists(spec.get("lists", {}))
    errors: list[Finding] = []
    warnings: list[Finding] = []
    for finding in chain(
        check_tools(spec["tools"]),
        check_lists(lists),
        check_context(spec.get("context", {}), tools),
        check_rules(spec, tools, lists),
    ):
        (errors if finding.severity is Severity.ERROR else warnings).append(finding)
        if len(errors) == MAX_FINDINGS:
            break
    return [*errors, *warnings][:MAX_FINDINGS]
