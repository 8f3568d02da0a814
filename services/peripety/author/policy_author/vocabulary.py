"""Vocabulary of tools: words of names, arguments and descriptions, and conditions on arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

from peripety.author.policy_author.sentences import name_parts, stem, stems, verb_stems
from peripety.engine import validate_policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peripety.author.policy_author.tokens import NumericBound


KINDS: Final[Mapping[str, frozenset[str]]] = {
    "path": stems("path file folder directory dir"),
    "domain": stems("domain host url site"),
    "email": stems("email mail address recipient"),
}
"""The kind of an argument value, by a word of its role; `identifier` if no word matches."""

PLACE_WORDS: Final = stems(
    "path paths folder folders directory directories file files host hosts domain domains site sites"
    " address addresses recipient recipients list lists argument arguments value values name names",
)
"""Words that a sentence may put beside a literal of any argument."""

ALL_CALLS: Final = stems("tool call request action")
"""Words that stand for calls of any tool."""

_NUMBERS = {"number", "integer"}
_BOUNDING = stems("max min maximum minimum limit count number of total")
_DIRECTIONS = {
    "TO": stems("to target destination dest recipient receiver output"),
    "FROM": stems("from source src origin sender input"),
}
_MONEY = stems(
    "amount price cost fee rate total value budget balance salary credit refund payment charge sum fare"
)
_PARTS_OF_MONEY = stems("cent cents pence minor thousand")
UNITS_OF_TIME: Final = {
    root: seconds
    for word, seconds in (("second", 1), ("minute", 60), ("hour", 3_600), ("day", 86_400), ("week", 604_800))
    for root in stems(word)
}
_ENOUGH = 2


def value_kind(role: str) -> str:
    """Return the value kind of an argument role."""
    words = stems(role)
    if "id" in words:
        return "identifier"
    return next((kind for kind, known in KINDS.items() if known & words), "identifier")


@dataclass(frozen=True)
class ToolArgument:
    """Argument of a tool.

    Attributes:
        name: its name; empty for a value below a top-level argument.
        role: its role; empty if it has none.
        schema: its JSON Schema.
    """

    name: str
    role: str
    schema: Mapping[str, Any] = field(hash=False)

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the stems of its name and its role."""
        return stems(f"{self.name} {self.role}")

    @cached_property
    def kind(self) -> str:
        """Return the value kind of its role."""
        return value_kind(self.role)

    @cached_property
    def choices(self) -> Mapping[str, str]:
        """Return the texts that its schema accepts, by their lower-case form."""
        return {one.casefold(): one for one in self.schema.get("enum") or () if isinstance(one, str)}

    @property
    def is_text(self) -> bool:
        """True if its values are texts or arrays."""
        return self.schema.get("type") in {"string", "array"}

    @property
    def is_number(self) -> bool:
        """True if its values are numbers."""
        return self.schema.get("type") in _NUMBERS

    @property
    def is_flag(self) -> bool:
        """True if its values are booleans."""
        return self.schema.get("type") == "boolean"


@dataclass(frozen=True)
class DescribedTool:
    """Tool with the words that identify it.

    Attributes:
        server: the server that provides it.
        name: its name.
        document: its entry in the policy document.
    """

    server: str
    name: str
    document: Mapping[str, Any] = field(compare=False, hash=False)

    @cached_property
    def arguments(self) -> tuple[ToolArgument, ...]:
        """Return its arguments, with and without a role."""
        properties = (self.document.get("input_schema") or {}).get("properties", {})
        roles = {
            one["path"].removeprefix("/"): one["role"] for one in self.document.get("argument_roles") or ()
        }
        schemas = {name: schema if isinstance(schema, Mapping) else {} for name, schema in properties.items()}
        named = [ToolArgument(name, roles.get(name, ""), schema) for name, schema in schemas.items()]
        below = [
            ToolArgument("" if "/" in path else path, role, {})
            for path, role in roles.items()
            if path not in schemas
        ]
        return (*named, *below)

    @cached_property
    def required(self) -> frozenset[str]:
        """Return the names of the arguments that its schema requires."""
        return frozenset((self.document.get("input_schema") or {}).get("required") or ())

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """Return the stems of the parts of its name; the first one is its verb."""
        return name_parts(self.name) or (self.name,)

    @cached_property
    def server_words(self) -> frozenset[str]:
        """Return the stems of its server."""
        return stems(self.server)

    @cached_property
    def objects(self) -> frozenset[str]:
        """Return the words for what its verb is applied to: the rest of its name, and its server."""
        return frozenset(self.parts[1:]) | self.server_words

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the stems of its name, its server, its arguments and their roles."""
        return frozenset(self.parts).union(self.server_words, *(one.words for one in self.arguments))

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the stems of its names and its description."""
        return self.names | stems(str(self.document.get("description") or ""))

    @cached_property
    def described_verb(self) -> str:
        """Return the first stem of its description; empty without one."""
        return (*name_parts(str(self.document.get("description") or "")), "")[0]

    def roles_of(self, kind: str) -> tuple[str, ...]:
        """Return the roles of its arguments of a value kind, without duplicates."""
        return tuple(dict.fromkeys(one.role for one in self.arguments if one.role and one.kind == kind))

    def roles_mentioned(self, kind: str, words: frozenset[str]) -> tuple[str, ...]:
        """Return its roles of a kind that the words specify beyond the kind: `write_path`, by "wrote"."""
        return tuple(
            role for role in self.roles_of(kind) if (stems(role) - KINDS.get(kind, frozenset())) & words
        )

    def roles_by_direction(self, kind: str, direction: str) -> tuple[str, ...]:
        """Return its roles of a kind that a direction selects: `TO` a target, `FROM` a source."""
        wanted = _DIRECTIONS.get(direction, frozenset())
        return tuple(
            dict.fromkeys(
                one.role for one in self.arguments if one.role and one.kind == kind and one.words & wanted
            ),
        )

    def number_argument(self, words: frozenset[str]) -> ToolArgument | None:
        """Return the only numeric argument that the words name; without words, the only one there is."""
        numbers = [one for one in self.arguments if one.is_number and one.name]
        fitting = [one for one in numbers if (stems(one.name) - _BOUNDING) & words] if words else numbers
        if not fitting and words and words <= self.words:
            fitting = [one for one in numbers if not stems(one.name) - _BOUNDING]
        return fitting[0] if len(fitting) == 1 else None

    def money_argument(self, words: frozenset[str]) -> ToolArgument | None:
        """Return the only amount of money among its arguments, or the only one that the words name."""
        amounts = [one for one in self.arguments if one.is_number and stems(one.name) & _MONEY]
        named = [one for one in amounts if (stems(one.name) - _BOUNDING) & words] or amounts
        return named[0] if len(named) == 1 and not stems(named[0].name) & _PARTS_OF_MONEY else None

    def time_argument(self, unit: str) -> tuple[ToolArgument, float] | None:
        """Return the only numeric argument that is a time, and its value for one unit of time."""
        times = [
            (one, UNITS_OF_TIME[root])
            for one in self.arguments
            if one.is_number
            for root in stems(one.name) & UNITS_OF_TIME.keys()
        ]
        seconds = UNITS_OF_TIME.get(stem(unit))
        if len(times) != 1 or seconds is None:
            return None
        ((argument, own),) = times
        return argument, seconds / own


def word_stems(words: Iterable[str]) -> frozenset[str]:
    """Return the stems of the parts of words."""
    return stems(" ".join(words))


def is_named(tool: DescribedTool, words: Sequence[str]) -> bool:
    """Return True if the words contain its full name, or its verb and its server."""
    said, verbs = word_stems(words), frozenset().union(*map(verb_stems, words))
    verb, *others = tool.parts
    return verb in verbs and (frozenset(others) <= said or bool(tool.server_words & said))


def has_verb(tool: DescribedTool, words: Sequence[str]) -> bool:
    """Return True if a word is a form of the verb in its name."""
    return any(tool.parts[0] in verb_stems(word) for word in words)


def is_described(tool: DescribedTool, words: frozenset[str]) -> bool:
    """Return True if the words are those of its description or of the roles of its arguments."""
    roles = {one.role for one in tool.arguments if one.role}
    if any((stems(role) - KINDS.get(value_kind(role), frozenset())) & words for role in roles):
        return True
    return len(words & tool.words) >= _ENOUGH


@lru_cache(maxsize=1_024)
def is_valid_entry(kind: str, entry: str) -> bool:
    """Return True if the engine accepts the entry for its kind; references to lists are checked earlier."""
    if entry.startswith("@"):
        return True
    tool = {"server_name": "a", "tool_name": "b", "argument_roles": [{"path": "/a", "role": "a"}]}
    matcher = {"argument_roles": ["a"], "kind": kind, "among": [entry]}
    rule = {"id": "a", "when": {"arguments": [matcher]}, "then": "deny", "reason": "a"}
    policy = {"policy_version": "1.0", "id": "a", "name": "a", "tools": [tool], "rules": [rule]}
    return not validate_policy(json.dumps(policy))


# ---- Conditions of rules


@dataclass(frozen=True)
class Test:
    """Test of a call, in a formula.

    Attributes:
        subject: `roles` for the roles of the caller, `matcher` for values of argument roles, `bound` for a
            number, `choice` for a value that the schema lists or a boolean, `presence` for an argument that
            is set.
        names: the roles, or the argument.
        kind: the value kind of a matcher; `array` for the presence of an array, `compound` for roles
            of several words; empty otherwise.
        values: the entries, caller roles or accepted values.
        bound: the comparison of a number; None otherwise.
    """

    __test__ = False  # pytest must not collect it

    subject: str
    names: tuple[str, ...] = ()
    kind: str = ""
    values: tuple[Any, ...] = ()
    bound: NumericBound | None = None

    def to_condition(self, *, is_negated: bool, is_stopping: bool) -> dict[str, Any]:
        """Return the member of `when`.

        A rule that stops calls needs one value that matches; a rule that allows calls needs all values, and
        an argument that is present.
        """
        if self.subject == "matcher":
            quantifier = _QUANTIFIERS[is_stopping, is_negated]
            matcher = {
                "argument_roles": list(self.names),
                "kind": self.kind,
                "among": list(self.values),
                "quantifier": quantifier,
            }
            return {"arguments": [matcher]}
        if self.subject == "roles":
            if is_negated:
                said = [{"in": [one, {"var": "roles"}]} for one in self.values]
                return {"logic": {"!": [{"or": said}]}}
            return {"roles": list(self.values)}
        path = f"arguments.{self.names[0]}"
        if self.subject == "presence":
            return {"logic": _presence(path, is_negated=is_negated, is_array=self.kind == "array")}
        if is_negated and self.values == (True,):
            # A flag that is missing is not set.
            return {"logic": {"!": [{"in": [{"var": path}, [True]]}]}}
        if self.bound is not None:
            bound = self.bound.negated if is_negated else self.bound
            test: dict[str, Any] = {bound.operator: [{"var": path}, bound.number]}
        else:
            test = {"in": [{"var": path}, list(self.values)]}
            test = {"!": [test]} if is_negated else test
        # A missing argument compares as 0. It must not allow a call.
        return {"logic": test if is_stopping else {"and": [{"!": [{"missing": [path]}]}, test]}}


def _presence(path: str, *, is_negated: bool, is_array: bool) -> dict[str, Any]:
    if is_array:
        # An empty array is not set.
        is_set = {"!!": [{"var": path}]}
        return {"!": [is_set]} if is_negated else is_set
    missing = {"missing": [path]}
    return missing if is_negated else {"!": [missing]}


def to_presence(argument: ToolArgument) -> Test:
    """Return the test for an argument that is set."""
    return Test("presence", (argument.name,), "array" if argument.schema.get("type") == "array" else "")


_QUANTIFIERS = {(False, False): "all", (False, True): "none", (True, False): "any", (True, True): "not_all"}


def merge_conditions(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the conjunction of conditions."""
    merged: dict[str, Any] = {}
    for condition in found:
        for key, value in condition.items():
            if key == "arguments":
                merged.setdefault(key, []).extend(value)
            elif key in merged:
                said = value if key == "logic" else {"or": [{"in": [one, {"var": "roles"}]} for one in value]}
                merged["logic"] = {"and": [merged["logic"], said]} if "logic" in merged else said
            else:
                merged[key] = value
    return merged
