"""Static checks of the rules of a policy: ids, and conditions that no tool can meet or that would fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from peripety.errors import Finding, Severity
from peripety.sim.checks.expressions import check_expression
from peripety.sim.policies.checks.lists import NamedLists, check_entries
from peripety.sim.policies.checks.names import unknown
from peripety.sim.policies.checks.tools import Presence, Tools
from peripety.sim.policies.types import UNKNOWN_TOOL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.sim._pure.paths import Path

__all__ = ["check_rules"]

_OF_INVARIANTS = "structural-"


def check_rules(spec: dict[str, Any], tools: Tools, lists: NamedLists) -> Iterator[Finding]:
    """Yield the findings about the invariants and rules of a policy, one rule at a time."""
    seen: dict[str, str] = {}
    for section in ("invariants", "rules"):
        for index, rule in enumerate(spec.get(section, ())):
            place = f"/{section}/{index}"
            yield from _check_id(rule["id"], place, section, seen)
            yield from _check_condition(rule["when"], f"{place}/when", tools, lists)


def _check_id(rule_id: str, place: str, section: str, seen: dict[str, str]) -> Iterator[Finding]:
    first = seen.setdefault(rule_id, place)
    if first != place:
        yield Finding("DUPLICATE_ID", f"{place}/id", f"duplicate id '{rule_id}', already used at {first}/id")
    if rule_id == UNKNOWN_TOOL:
        message = f"the id {UNKNOWN_TOOL} is reserved for the built-in invariant; choose another id"
        yield Finding("BAD_RULE_ID", f"{place}/id", message)
    elif section == "invariants" and not rule_id.startswith(_OF_INVARIANTS):
        message = (
            f"the id of an invariant must begin with {_OF_INVARIANTS}, such as {_OF_INVARIANTS}{rule_id}"
        )
        yield Finding("BAD_RULE_ID", f"{place}/id", message[:300])
    elif section == "rules" and rule_id.startswith(_OF_INVARIANTS):
        message = (
            f"only ids of invariants may begin with {_OF_INVARIANTS}; remove the prefix, or move the rule"
        )
        yield Finding("BAD_RULE_ID", f"{place}/id", message)


def _check_condition(
    when: Mapping[str, Any], place: str, tools: Tools, lists: NamedLists
) -> Iterator[Finding]:
    yield from _check_names("UNKNOWN_SERVER", when.get("servers", ()), f"{place}/servers", tools.of_server)
    yield from _check_names("UNKNOWN_TOOL", when.get("tools", ()), f"{place}/tools", tools.of_name)
    yield from _check_roles(when.get("argument_roles", ()), f"{place}/argument_roles", tools)
    for index, matcher in enumerate(when.get("arguments", ())):
        here = f"{place}/arguments/{index}"
        yield from _check_roles(matcher["argument_roles"], f"{here}/argument_roles", tools)
        yield from check_entries(matcher["among"], matcher["kind"], f"{here}/among", lists)
    fitting = tools.all
    for member, allowed in _members(when, tools):
        if not fitting & allowed:
            message = "no tool meets this and the preceding members, so the rule never matches"
            yield Finding("NEVER_HOLDS", f"{place}{member}", message, Severity.WARNING)
            fitting = 0
            break
        fitting &= allowed
    if "logic" in when:
        yield from check_expression(when["logic"], f"{place}/logic", _Scope(tools, fitting))


def _check_names(code: str, names: Sequence[str], place: str, known: Mapping[str, int]) -> Iterator[Finding]:
    what = code.removeprefix("UNKNOWN_").replace("_", " ").lower()
    for index, name in enumerate(names):
        if name not in known:
            yield Finding(code, f"{place}/{index}", unknown(what, name, known))


def _check_roles(roles: Sequence[str], place: str, tools: Tools) -> Iterator[Finding]:
    yield from _check_names("UNKNOWN_ARGUMENT_ROLE", roles, place, tools.with_role)


def _members(when: Mapping[str, Any], tools: Tools) -> Iterator[tuple[str, int]]:
    """Yield the members of a condition that depend only on the tool: path, and bit set of matching tools."""
    if "servers" in when:
        yield "/servers", _union(when["servers"], tools.of_server)
    if "tools" in when:
        yield "/tools", _union(when["tools"], tools.of_name)
    if "argument_roles" in when:
        yield "/argument_roles", _union(when["argument_roles"], tools.with_role)
    for member, having in (("read_only", tools.read_only), ("destructive", tools.destructive)):
        if member in when:
            yield f"/{member}", having if when[member] else tools.all & ~having
    for index, matcher in enumerate(when.get("arguments", ())):
        yield f"/arguments/{index}", _union(matcher["argument_roles"], tools.with_role)


def _union(names: Sequence[str], sets: Mapping[str, int]) -> int:
    together = 0
    for name in names:
        together |= sets.get(name, 0)
    return together


@dataclass(frozen=True, slots=True)
class _Scope:
    """Variables that a condition of a policy may read.

    Attributes:
        tools: the tools of the policy.
        fitting: bit set of tools that the rest of the condition can match.
    """

    example: ClassVar[str] = "arguments.a"
    _ROOTS: ClassVar[Sequence[str]] = ("server", "tool", "arguments", "roles")

    tools: Tools
    fitting: int

    def check_variable(self, text: str, path: Path, place: str) -> Iterator[Finding]:
        """Yield the findings about a variable."""
        root, *rest = (str(segment) for segment in path)
        if root not in self._ROOTS:
            message = f"'{text[:80]}' must start with {', '.join(self._ROOTS[:-1])} or {self._ROOTS[-1]}"
            yield Finding("UNKNOWN_VARIABLE", place, message)
        elif root in {"server", "tool"} and rest:
            yield Finding(
                "UNKNOWN_VARIABLE", place, f"'{root}' is a text without members; use '{root}' alone"
            )
        elif root == "arguments" and self.fitting:
            presence = self.tools.presence(self.fitting, rest)
            if presence is Presence.POSSIBLE:
                return
            severity = Severity.ERROR if presence is Presence.IMPOSSIBLE else Severity.WARNING
            message = f"no tool that the rule can match has the argument '{text[:80]}' in its input_schema"
            yield Finding("UNKNOWN_ARGUMENT", place, message, severity)
