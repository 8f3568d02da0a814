"""Request space: all requests to one tool, divided into regions by the conditions on it.

Tools that no condition distinguishes are one class, so that each class is analysed once.
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
        self._group_of = [self._group_for(known, number, when) for number, when in enumerate(whens)]

    def _group_for(self, known: dict[Any, int], number: int, when: Mapping[str, Any]) -> int:
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

    def groups_of(self, numbers: Iterable[int]) -> frozenset[int]:
        """Return the groups of some conditions."""
        return frozenset(self._group_of[number] for number in numbers)

    def groups_for_tool(self, server: str, tool: str) -> list[int]:
        """Return the groups that may apply to a tool, in order."""
        return sorted((*self._all, *self._by_server.get(server, ()), *self._by_tool.get(tool, ())))

    def class_of(self, terms: ToolTerms) -> ToolClass:
        """Return the class of a tool."""
        groups = self.groups_for_tool(terms.server, terms.tool)
        applying = tuple(group for group in groups if terms.can_apply(self._whens[self._groups[group][0]]))
        is_named = any(self._by_name[group] for group in applying)
        return applying, terms.annotation_key, (terms.server, terms.tool) if is_named else None

    def applicable_conditions(self, kind: ToolClass) -> tuple[int, ...]:
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
        cache: the cache of engine results.
        all_values: True to include arguments that the tool rejects.

    Raises:
        TooLargeError: there are too many regions.
    """

    def __init__(
        self,
        terms: ToolTerms,
        conditions: Iterable[ResolvedCondition],
        cache: AnalysisCache,
        *,
        all_values: bool = False,
    ) -> None:
        self.terms = terms
        self.diagrams = Diagrams(_STEP_BUDGET)
        self._schema = ArgumentSchema(terms.schema)
        self._conditions_by_path: dict[Path, PathConditions] = {}
        self._roles: dict[str, int] = {}
        self._opaque: dict[str, int] = {}
        self._cases: dict[str, list[SplitCase]] = {}
        self.opaque: dict[str, Opaque] = {}
        for condition in conditions:
            self._collect_condition(condition)
        for role in self._roles:
            self._roles[role] = self.diagrams.variable((0.0, 0.1))
        for key, one in self.opaque.items():
            found = None if all_values else split_cases(one, self._schema, terms.server, terms.tool)
            for case in found or ():
                self._collect_formula(case.formula)
                for path in case.values:
                    self._conditions_by_path.setdefault(path, PathConditions()).is_listed = True
            if found is not None:
                self._cases[key] = found
        paths = [*self._conditions_by_path]
        for path, seen in self._conditions_by_path.items():
            seen.has_outer = any(is_inside(path, other) for other in paths)
            seen.has_inner = any(is_inside(other, path) for other in paths)
        self._variables = {
            path: ArgumentVariable(
                path,
                seen,
                self._schema.constraint_at(path),
                self._schema,
                self.diagrams,
                cache,
                all_values=all_values,
            )
            for path, seen in self._conditions_by_path.items()
        }
        for key in (one for one in self.opaque if one not in self._cases):
            self._opaque[key] = self.diagrams.variable((0.0, 0.0, 0.0))
        self._condition_cache: dict[int, tuple[ResolvedCondition, tuple[int, int]]] = {}
        self._formula_cache: dict[int, tuple[int, int]] = {}
        self._possible: int | None = None

    # --- collection of conditions ---

    def _collect_condition(self, condition: ResolvedCondition) -> None:
        for role in sorted(condition.roles or ()):
            self._roles.setdefault(role, 0)
        for matching in condition.matchers:
            for path in matching.paths:
                self._conditions_by_path.setdefault(path, PathConditions()).add_matcher(
                    matching.kind,
                    matching.entries,
                )
        if condition.formula is not None:
            self._collect_formula(condition.formula)

    def _collect_formula(self, formula: Formula) -> None:
        match formula:
            case RoleIs(role):
                self._roles.setdefault(role, 0)
            case Leaf():
                self._conditions_by_path.setdefault(formula.path, PathConditions()).leaves.setdefault(
                    formula.key,
                    formula,
                )
            case Opaque():
                self.opaque.setdefault(formula.key, formula)
            case Not(part):
                self._collect_formula(part)
            case And(parts) | Or(parts):
                for part in parts:
                    self._collect_formula(part)
            case If(condition, then, otherwise):
                for part in (condition, then, otherwise):
                    self._collect_formula(part)

    def _sets_of_cases(self, cases: Sequence[SplitCase]) -> tuple[int, int]:
        """Return the sets of an expression from its value in each case."""
        holds = fails = NO
        for case in cases:
            here = YES
            for path, value in case.values.items():
                here = self.diagrams.intersection(self._variables[path].set_of_value(value), here)
            also, broken = self._formula_sets(case.formula)
            holds = self.diagrams.union(self.diagrams.intersection(here, also), holds)
            fails = self.diagrams.union(self.diagrams.intersection(here, broken), fails)
        return holds, fails

    # --- conditions as sets ---

    @property
    def possible_set(self) -> int:
        """Return the set of all possible requests."""
        if self._possible is None:
            found = YES
            for slot in reversed(self._variables.values()):
                outer = [other for path, other in self._variables.items() if is_inside(slot.path, path)]
                nearest = max(outer, key=lambda one: len(one.path), default=None)
                found = self.diagrams.intersection(slot.possible_set(nearest), found)
            self._possible = found
        return self._possible

    def condition_sets(self, condition: ResolvedCondition) -> tuple[int, int]:
        """Return the requests for which a condition holds, and those for which it cannot be evaluated."""
        known = self._condition_cache.get(id(condition))
        if known is None:
            known = self._condition_cache[id(condition)] = (
                condition,
                self._compute_condition_sets(condition),
            )
        return known[1]

    def _compute_condition_sets(self, condition: ResolvedCondition) -> tuple[int, int]:
        holds, fails = YES, NO
        if condition.roles is not None:
            holds = self.diagrams.union_all(self._role_set(role) for role in sorted(condition.roles))
        for matching in condition.matchers:
            holds, fails = self._conjunction(holds, fails, self._matcher_sets(matching))
        if condition.formula is not None:
            holds, fails = self._conjunction(holds, fails, self._formula_sets(condition.formula))
        return holds, fails

    def _conjunction(self, holds: int, fails: int, following: tuple[int, int]) -> tuple[int, int]:
        """Return the sets of a conjunction; the second condition is evaluated only if the first holds."""
        also, broken = following
        return (
            self.diagrams.intersection(holds, also),
            self.diagrams.union(fails, self.diagrams.intersection(holds, broken)),
        )

    def _role_set(self, role: str) -> int:
        return self.diagrams.value_in(self._roles[role], 2)

    def _matcher_sets(self, matching: ResolvedMatcher) -> tuple[int, int]:
        asked = [
            self._variables[path].matcher_sets(matching.kind, matching.entries) for path in matching.paths
        ]
        unreadable, some, others = (self.diagrams.union_all(one[at] for one in asked) for at in range(3))
        if matching.quantifier == "any":
            found = some
        elif matching.quantifier == "not_all":
            found = others
        elif matching.quantifier == "none":
            found = self.diagrams.if_then_else(some, NO, others)
        else:
            found = self.diagrams.if_then_else(others, NO, some)
        return self.diagrams.if_then_else(unreadable, NO, found), unreadable

    def _formula_sets(self, formula: Formula) -> tuple[int, int]:
        known = self._formula_cache.get(id(formula))
        if known is None:
            known = self._formula_cache[id(formula)] = self._compute_formula_sets(formula)
        return known

    def _compute_formula_sets(self, formula: Formula) -> tuple[int, int]:
        match formula:
            case Constant(outcome):
                return (YES if outcome else NO), (YES if outcome is None else NO)
            case RoleIs(role):
                return self._role_set(role), NO
            case Leaf():
                return self._variables[formula.path].leaf_sets(formula)
            case Opaque() if formula.key in self._cases:
                return self._sets_of_cases(self._cases[formula.key])
            case Opaque():
                variable = self._opaque[formula.key]
                return self.diagrams.value_in(variable, _TRUE_MASK), self.diagrams.value_in(
                    variable,
                    _NO_VALUE_MASK,
                )
        return self._connective_sets(formula)

    def _connective_sets(self, formula: Not | And | Or | If) -> tuple[int, int]:
        diagrams = self.diagrams
        holds, fails, left = YES, NO, YES
        match formula:
            case Not(part):
                holds, fails = self._formula_sets(part)
                holds = diagrams.complement(diagrams.union(holds, fails))
            case And(parts):
                for part in parts:
                    holds, fails = self._conjunction(holds, fails, self._formula_sets(part))
            case Or(parts):
                holds = NO
                for part in parts:
                    also, broken = self._formula_sets(part)
                    holds = diagrams.union(holds, diagrams.intersection(left, also))
                    fails = diagrams.union(fails, diagrams.intersection(left, broken))
                    left = diagrams.if_then_else(diagrams.union(also, broken), NO, left)
            case If(condition, then, otherwise):
                which, broken = self._formula_sets(condition)
                first, second = self._formula_sets(then), self._formula_sets(otherwise)
                holds = diagrams.if_then_else(broken, NO, diagrams.if_then_else(which, first[0], second[0]))
                fails = diagrams.union(broken, diagrams.if_then_else(which, first[1], second[1]))
        return holds, fails

    # --- requests ---

    def find_example(self, wanted: int) -> dict[int, int] | None:
        """Return the cheapest assignment in a set of requests, or None if the set is empty."""
        return self.diagrams.example(self.diagrams.intersection(self.possible_set, wanted))

    def make_request(self, chosen: Mapping[int, int], attempt: int = 0) -> ToolRequest | None:
        """Return a request that is as plain as possible, or None if none is known.

        Args:
            chosen: an assignment, as returned by `example`.
            attempt: index of the variation, from 0.
        """
        arguments: dict[str, Any] = {}
        try:
            for slot in sorted(self._variables.values(), key=lambda one: len(one.path)):
                value = slot.value_for(chosen, attempt)
                if value is not MISSING and not set_at_path(arguments, slot.path, value):
                    return None
        except LookupError:
            return None
        roles = tuple(role for role, variable in self._roles.items() if chosen.get(variable))
        return self.complete_request(arguments, roles)

    def complete_request(self, arguments: dict[str, Any], roles: tuple[str, ...]) -> ToolRequest:
        """Return a request with the arguments added that the tool requires."""
        return ToolRequest(self.terms.server, self.terms.tool, self._schema.fill_arguments(arguments), roles)

    def iter_variations(self, chosen: Mapping[int, int], random: Random, times: int) -> Iterator[ToolRequest]:
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
        pools = {path: self._value_pool(path, literals) for one in asked for path in one.reads}
        for attempt in range(times):
            base = self.make_request(chosen, attempt)
            if base is None:
                return
            arguments: dict[str, Any] = deepcopy({**base.arguments})
            for path, pool in pools.items():
                if pool and random.random() < _VARIATION_PROBABILITY:
                    set_at_path(arguments, path, random.choice(pool))
            roles = base.roles
            if any(one.reads_roles for one in asked):
                roles = tuple(role for role in self._roles if random.random() < _VARIATION_PROBABILITY)
            yield self.complete_request(arguments, roles)

    def _value_pool(self, path: Path, literals: Sequence[Any]) -> list[Any]:
        """Return values to try at a path: schema samples, known examples, and values near the literals."""
        place = self._schema.constraint_at(path)
        numbers = {float(one) for one in literals if isinstance(one, int | float)} | {0.0}
        near = (to_json_number(one + step) for one in sorted(numbers) for step in (0, -1, 1, -0.5, 0.5))
        halves = (to_json_number(one * part) for one in sorted(numbers) for part in (0.5, 2))
        texts = [one for one in literals if isinstance(one, str)]
        parts = (text[:at] for text in texts for at in range(len(text) + 1))
        ends = (text[at:] for text in texts for at in range(len(text)))
        slot = self._variables.get(path)
        known = slot.iter_examples() if slot is not None else ()
        lists = ([], *([text] for text in texts), texts)
        values = (*known, *near, *halves, *islice(parts, 32), *islice(ends, 32), *lists, False, True)
        samples = islice(self._schema.iter_samples(place.schema), 8)
        return [one for one in (*samples, *values) if self._schema.accepts(place.schema, one)][:_MAX_POOL]

    def accepts(self, request: ToolRequest) -> bool:
        """Return True if the tool accepts the arguments of a request."""
        return self._schema.accepts_arguments(request.arguments)
