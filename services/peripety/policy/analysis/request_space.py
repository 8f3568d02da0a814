"""All requests to a tool as classes, equal tools.

Classes of tools that no condition distinguishes, so that each class is analyzed once.

The space of all requests to one tool, divided into regions by the conditions on it.
"""

from __future__ import annotations

from copy import deepcopy
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.engine.policies.types import ToolRequest
from peripety.policy.analysis.argument_schema import ArgumentSchema, is_inside, set_at_path
from peripety.policy.analysis.argument_variables import ArgumentVariable, PathConditions
from peripety.policy.analysis.breakpoints import to_json_number
from peripety.policy.analysis.case_split import split_cases
from peripety.policy.analysis.condition_logic import (
    And,
    Constant,
    If,
    Leaf,
    Not,
    Opaque,
    Or,
    RoleIs,
    mentions_tool,
)
from peripety.policy.analysis.decision_diagram import NO, YES, Diagrams
from peripety.policy.analysis.value_partitions import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from random import Random

    from peripety.policy.analysis.argument_schema import Path
    from peripety.policy.analysis.argument_variables import AnalysisCache
    from peripety.policy.analysis.case_split import SplitCase
    from peripety.policy.analysis.condition_logic import (
        Formula,
        ResolvedCondition,
        ResolvedMatcher,
        ToolTerms,
    )


ToolClass: TypeAlias = tuple[tuple[int, ...], bytes, tuple[str, str] | None]
"""A tool class: the applicable condition groups, the annotation, and the names if a condition reads them."""

_TOOL_MEMBERS = ("servers", "tools", "read_only", "destructive", "argument_roles")


class ToolClasses:
    """Index of conditions by the tools to which they can apply; of thousands, few apply to any one tool.

    Conditions with equal tool matchers form a group, and applicability is evaluated once per group.

    Args:
        whens: the conditions.
    """

    def __init__(self, whens: Sequence[Mapping[str, Any]]) -> None:
        self._whens = whens
        self._groups: list[list[int]] = []
        self._by_name: list[bool] = []
        self._all: list[int] = []
        self._by_server: dict[str, list[int]] = {}
        self._by_tool: dict[str, list[int]] = {}
        known: dict[Any, int] = {}
        self._group_of = [self._filed(known, number, when) for number, when in enumerate(whens)]

    def _filed(self, known: dict[Any, int], number: int, when: Mapping[str, Any]) -> int:
        key = tuple(_to_hashable(when.get(member)) for member in _TOOL_MEMBERS)
        group = known.get(key)
        if group is None:
            group = known[key] = len(self._groups)
            self._groups.append([])
            self._by_name.append(False)
            self._index(group, when)
        self._groups[group].append(number)
        self._by_name[group] |= mentions_tool(when.get("logic"))
        return group

    def _index(self, group: int, when: Mapping[str, Any]) -> None:
        if "tools" in when:
            index, names = self._by_tool, when["tools"]
        elif "servers" in when:
            index, names = self._by_server, when["servers"]
        else:
            self._all.append(group)
            return
        for name in dict.fromkeys(names):
            index.setdefault(name, []).append(group)

    def groups(self, numbers: Iterable[int]) -> frozenset[int]:
        """Return the groups of some conditions."""
        return frozenset(self._group_of[number] for number in numbers)

    def about(self, server: str, tool: str) -> list[int]:
        """Return the groups that may apply to a tool, in order."""
        return sorted((*self._all, *self._by_server.get(server, ()), *self._by_tool.get(tool, ())))

    def kind(self, terms: ToolTerms) -> ToolClass:
        """Return the class of a tool."""
        groups = self.about(terms.server, terms.tool)
        applying = tuple(group for group in groups if terms.applies(self._whens[self._groups[group][0]]))
        is_named = any(self._by_name[group] for group in applying)
        return applying, terms.told, (terms.server, terms.tool) if is_named else None

    def applying(self, kind: ToolClass) -> tuple[int, ...]:
        """Return the conditions that can hold for the tools of a class, in order."""
        return tuple(sorted(number for group in kind[0] for number in self._groups[group]))


def _to_hashable(asked: Any) -> Any:
    return tuple(asked) if isinstance(asked, list) else asked


_STEP_BUDGET = 150_000
_VARIATION_PROBABILITY = 0.75
_MAX_POOL = 256
# The values of an opaque expression other than false, as masks.
_TRUE_MASK, _NO_VALUE_MASK = 2, 4


class RequestSpace:
    """The requests to one tool, as variables for the caller's roles, the arguments and opaque expressions.

    Args:
        terms: the tool.
        conditions: all conditions that will be evaluated.
        memory: the cache of engine results.
        all_values: True to include arguments that the tool rejects.

    Raises:
        TooLargeError: there are too many regions.
    """

    def __init__(
        self,
        terms: ToolTerms,
        conditions: Iterable[ResolvedCondition],
        memory: AnalysisCache,
        *,
        all_values: bool = False,
    ) -> None:
        self.terms = terms
        self.diagrams = Diagrams(_STEP_BUDGET)
        self._schema = ArgumentSchema(terms.schema)
        self._seen: dict[Path, PathConditions] = {}
        self._roles: dict[str, int] = {}
        self._opaque: dict[str, int] = {}
        self._cases: dict[str, list[SplitCase]] = {}
        self.opaque: dict[str, Opaque] = {}
        for condition in conditions:
            self._see(condition)
        for role in self._roles:
            self._roles[role] = self.diagrams.variable((0.0, 0.1))
        for key, one in self.opaque.items():
            found = None if all_values else split_cases(one, self._schema, terms.server, terms.tool)
            for case in found or ():
                self._see_formula(case.formula)
                for path in case.values:
                    self._seen.setdefault(path, PathConditions()).is_listed = True
            if found is not None:
                self._cases[key] = found
        paths = [*self._seen]
        for path, seen in self._seen.items():
            seen.has_outer = any(is_inside(path, other) for other in paths)
            seen.has_inner = any(is_inside(other, path) for other in paths)
        self._slots = {
            path: ArgumentVariable(
                path,
                seen,
                self._schema.place(path),
                self._schema,
                self.diagrams,
                memory,
                all_values=all_values,
            )
            for path, seen in self._seen.items()
        }
        for key in (one for one in self.opaque if one not in self._cases):
            self._opaque[key] = self.diagrams.variable((0.0, 0.0, 0.0))
        self._known: dict[int, tuple[ResolvedCondition, tuple[int, int]]] = {}
        self._formulas: dict[int, tuple[int, int]] = {}
        self._possible: int | None = None

    # --- collection of conditions ---

    def _see(self, condition: ResolvedCondition) -> None:
        for role in sorted(condition.roles or ()):
            self._roles.setdefault(role, 0)
        for matching in condition.matchings:
            for path in matching.paths:
                self._seen.setdefault(path, PathConditions()).match(matching.kind, matching.entries)
        if condition.formula is not None:
            self._see_formula(condition.formula)

    def _see_formula(self, formula: Formula) -> None:
        match formula:
            case RoleIs(role):
                self._roles.setdefault(role, 0)
            case Leaf():
                self._seen.setdefault(formula.path, PathConditions()).leaves.setdefault(formula.key, formula)
            case Opaque():
                self.opaque.setdefault(formula.key, formula)
            case Not(part):
                self._see_formula(part)
            case And(parts) | Or(parts):
                for part in parts:
                    self._see_formula(part)
            case If(condition, then, otherwise):
                for part in (condition, then, otherwise):
                    self._see_formula(part)

    def _of_cases(self, cases: Sequence[SplitCase]) -> tuple[int, int]:
        """Return the sets of an expression from its value in each case."""
        holds = fails = NO
        for case in cases:
            here = YES
            for path, value in case.values.items():
                here = self.diagrams.both(self._slots[path].is_value(value), here)
            also, broken = self._formula(case.formula)
            holds = self.diagrams.either(self.diagrams.both(here, also), holds)
            fails = self.diagrams.either(self.diagrams.both(here, broken), fails)
        return holds, fails

    # --- conditions as sets ---

    @property
    def possible(self) -> int:
        """Return the set of all possible requests."""
        if self._possible is None:
            found = YES
            for slot in reversed(self._slots.values()):
                outer = [other for path, other in self._slots.items() if is_inside(slot.path, path)]
                nearest = max(outer, key=lambda one: len(one.path), default=None)
                found = self.diagrams.both(slot.possible(nearest), found)
            self._possible = found
        return self._possible

    def condition(self, condition: ResolvedCondition) -> tuple[int, int]:
        """Return the requests for which a condition holds, and those for which it cannot be evaluated."""
        known = self._known.get(id(condition))
        if known is None:
            known = self._known[id(condition)] = (condition, self._condition(condition))
        return known[1]

    def _condition(self, condition: ResolvedCondition) -> tuple[int, int]:
        holds, fails = YES, NO
        if condition.roles is not None:
            holds = self.diagrams.any_of(self._has_role(role) for role in sorted(condition.roles))
        for matching in condition.matchings:
            holds, fails = self._then(holds, fails, self._matching(matching))
        if condition.formula is not None:
            holds, fails = self._then(holds, fails, self._formula(condition.formula))
        return holds, fails

    def _then(self, holds: int, fails: int, following: tuple[int, int]) -> tuple[int, int]:
        """Return the sets of a conjunction; the second condition is evaluated only if the first holds."""
        also, broken = following
        return (
            self.diagrams.both(holds, also),
            self.diagrams.either(fails, self.diagrams.both(holds, broken)),
        )

    def _has_role(self, role: str) -> int:
        return self.diagrams.among(self._roles[role], 2)

    def _matching(self, matching: ResolvedMatcher) -> tuple[int, int]:
        asked = [self._slots[path].texts(matching.kind, matching.entries) for path in matching.paths]
        unreadable, some, others = (self.diagrams.any_of(one[at] for one in asked) for at in range(3))
        if matching.quantifier == "any":
            found = some
        elif matching.quantifier == "not_all":
            found = others
        elif matching.quantifier == "none":
            found = self.diagrams.choose(some, NO, others)
        else:
            found = self.diagrams.choose(others, NO, some)
        return self.diagrams.choose(unreadable, NO, found), unreadable

    def _formula(self, formula: Formula) -> tuple[int, int]:
        known = self._formulas.get(id(formula))
        if known is None:
            known = self._formulas[id(formula)] = self._evaluated(formula)
        return known

    def _evaluated(self, formula: Formula) -> tuple[int, int]:
        match formula:
            case Constant(outcome):
                return (YES if outcome else NO), (YES if outcome is None else NO)
            case RoleIs(role):
                return self._has_role(role), NO
            case Leaf():
                return self._slots[formula.path].leaf(formula)
            case Opaque() if formula.key in self._cases:
                return self._of_cases(self._cases[formula.key])
            case Opaque():
                variable = self._opaque[formula.key]
                return self.diagrams.among(variable, _TRUE_MASK), self.diagrams.among(
                    variable, _NO_VALUE_MASK
                )
        return self._combined(formula)

    def _combined(self, formula: Not | And | Or | If) -> tuple[int, int]:
        diagrams = self.diagrams
        holds, fails, left = YES, NO, YES
        match formula:
            case Not(part):
                holds, fails = self._formula(part)
                holds = diagrams.negation(diagrams.either(holds, fails))
            case And(parts):
                for part in parts:
                    holds, fails = self._then(holds, fails, self._formula(part))
            case Or(parts):
                holds = NO
                for part in parts:
                    also, broken = self._formula(part)
                    holds = diagrams.either(holds, diagrams.both(left, also))
                    fails = diagrams.either(fails, diagrams.both(left, broken))
                    left = diagrams.choose(diagrams.either(also, broken), NO, left)
            case If(condition, then, otherwise):
                which, broken = self._formula(condition)
                first, second = self._formula(then), self._formula(otherwise)
                holds = diagrams.choose(broken, NO, diagrams.choose(which, first[0], second[0]))
                fails = diagrams.either(broken, diagrams.choose(which, first[1], second[1]))
        return holds, fails

    # --- requests ---

    def example(self, wanted: int) -> dict[int, int] | None:
        """Return the cheapest assignment in a set of requests, or None if the set is empty."""
        return self.diagrams.example(self.diagrams.both(self.possible, wanted))

    def request(self, chosen: Mapping[int, int], attempt: int = 0) -> ToolRequest | None:
        """Return a request that is as plain as possible, or None if none is known.

        Args:
            chosen: an assignment, as returned by `example`.
            attempt: index of the variation, from 0.
        """
        arguments: dict[str, Any] = {}
        try:
            for slot in sorted(self._slots.values(), key=lambda one: len(one.path)):
                value = slot.value(chosen, attempt)
                if value is not MISSING and not set_at_path(arguments, slot.path, value):
                    return None
        except LookupError:
            return None
        roles = tuple(role for role, variable in self._roles.items() if chosen.get(variable))
        return self.completed(arguments, roles)

    def completed(self, arguments: dict[str, Any], roles: tuple[str, ...]) -> ToolRequest:
        """Return a request with the arguments added that the tool requires."""
        return ToolRequest(self.terms.server, self.terms.tool, self._schema.fill(arguments), roles)

    def varied(self, chosen: Mapping[int, int], random: Random, times: int) -> Iterator[ToolRequest]:
        """Yield variations of a request in the arguments that opaque expressions read.

        Yields nothing if the assignment does not depend on an opaque expression.

        Args:
            chosen: the assignment of the request, as returned by `example`.
            random: the random number generator.
            times: the number of variations.
        """
        asked = [self.opaque[key] for key, variable in self._opaque.items() if variable in chosen]
        if not asked:
            return
        literals = [literal for one in asked for literal in one.literals]
        pools = {path: self._pool(path, literals) for one in asked for path in one.reads}
        for attempt in range(times):
            base = self.request(chosen, attempt)
            if base is None:
                return
            arguments: dict[str, Any] = deepcopy({**base.arguments})
            for path, pool in pools.items():
                if pool and random.random() < _VARIATION_PROBABILITY:
                    set_at_path(arguments, path, random.choice(pool))
            roles = base.roles
            if any(one.reads_roles for one in asked):
                roles = tuple(role for role in self._roles if random.random() < _VARIATION_PROBABILITY)
            yield self.completed(arguments, roles)

    def _pool(self, path: Path, literals: Sequence[Any]) -> list[Any]:
        """Return values to try at a path: schema samples, known examples, and values near the literals."""
        place = self._schema.place(path)
        numbers = {float(one) for one in literals if isinstance(one, int | float)} | {0.0}
        near = (to_json_number(one + step) for one in sorted(numbers) for step in (0, -1, 1, -0.5, 0.5))
        halves = (to_json_number(one * part) for one in sorted(numbers) for part in (0.5, 2))
        texts = [one for one in literals if isinstance(one, str)]
        parts = (text[:at] for text in texts for at in range(len(text) + 1))
        ends = (text[at:] for text in texts for at in range(len(text)))
        slot = self._slots.get(path)
        known = slot.examples() if slot is not None else ()
        lists = ([], *([text] for text in texts), texts)
        values = (*known, *near, *halves, *islice(parts, 32), *islice(ends, 32), *lists, False, True)
        samples = islice(self._schema.samples(place.schema), 8)
        return [one for one in (*samples, *values) if self._schema.accepts(place.schema, one)][:_MAX_POOL]

    def accepts(self, request: ToolRequest) -> bool:
        """Return True if the tool accepts the arguments of a request."""
        return self._schema.accepts_all(request.arguments)
