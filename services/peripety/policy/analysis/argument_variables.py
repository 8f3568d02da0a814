"""Diagram variables for one argument path: the region of the value, and the contents of an array."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety.policy.analysis.argument_schema import ANY_SCHEMA, ArgumentConstraint
from peripety.policy.analysis.condition_logic import evaluate_truth
from peripety.policy.analysis.decision_diagram import NO, YES
from peripety.policy.analysis.string_partitions import UNREADABLE, StringClasses
from peripety.policy.analysis.value_partitions import MISSING, Predicates, partition_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from peripety.policy.analysis.argument_schema import ArgumentSchema, Path
    from peripety.policy.analysis.condition_logic import Leaf, MatcherEntries
    from peripety.policy.analysis.decision_diagram import Diagrams
    from peripety.policy.analysis.value_partitions import Region


_MAX_COUNTED_ELEMENTS = 64
# Limit for padding an array to the `minItems` of its schema, which may be a billion.
_MAX_PADDING = 1000
_OUTCOMES = (True, None)


class AnalysisCache:
    """Cache of engine results and string classes, shared by all tools of a policy."""

    def __init__(self) -> None:
        self._truths: dict[tuple[str, Any], bool | None] = {}
        self._classes: dict[tuple[str, tuple[MatcherEntries, ...]], StringClasses] = {}

    def truth(self, leaf: Leaf, value: Any) -> bool | None:
        """Return whether a leaf holds for a value of its argument; None if it cannot be evaluated."""
        key = (leaf.key, _value_key(value))
        if key not in self._truths:
            self._truths[key] = evaluate_truth(leaf.logic, {"arguments": _nest_value(leaf.path, value)})
        return self._truths[key]

    def string_classes(self, kind: str, entries: Iterable[MatcherEntries]) -> StringClasses:
        """Return the classes of strings that the matchers with some entries distinguish."""
        key = (kind, tuple(entries))
        if key not in self._classes:
            self._classes[key] = StringClasses(kind, [one.values for one in key[1]])
        return self._classes[key]


def _nest_value(path: Path, value: Any) -> dict[str, Any]:
    if value is MISSING:
        return {}
    for segment in reversed(path):
        value = {segment: value}
    found: dict[str, Any] = value
    return found


@dataclass(slots=True)
class PathConditions:
    """The conditions on the value at one path.

    Attributes:
        matchers: the entries of each kind of matcher, with their numbers.
        leaves: the leaves of the logic, by their canonical text.
        has_outer: True if conditions also read a value that contains this one.
        has_inner: True if conditions also read parts of the value.
        is_listed: True if each value is a region of its own, because the schema lists the values.
    """

    matchers: dict[str, dict[MatcherEntries, int]] = field(default_factory=dict)
    leaves: dict[str, Leaf] = field(default_factory=dict)
    has_outer: bool = False
    has_inner: bool = False
    is_listed: bool = False

    def add_matcher(self, kind: str, entries: MatcherEntries) -> None:
        """Record the entries of a matcher."""
        numbers = self.matchers.setdefault(kind, {})
        numbers.setdefault(entries, len(numbers))


class ArgumentVariable:
    """An argument path as variables of diagrams.

    Args:
        path: segments of the path.
        conditions: the conditions on the value.
        constraint: the constraints of the schema on the value.
        schema: the schema of the tool.
        diagrams: the store that creates the variables.
        cache: the cache of engine results.
        all_values: True to include values that the schema rejects.
    """

    def __init__(
        self,
        path: Path,
        conditions: PathConditions,
        constraint: ArgumentConstraint,
        schema: ArgumentSchema,
        diagrams: Diagrams,
        cache: AnalysisCache,
        *,
        all_values: bool,
    ) -> None:
        self.path = path
        self._conditions = conditions
        self._diagrams = diagrams
        self._cache = cache
        self._all_values = all_values
        self._leaves = [*conditions.leaves.values()]
        self._needles = [*dict.fromkeys(_strict_key(one) for leaf in self._leaves for one in leaf.needles)]
        self._kinds = [*conditions.matchers]
        classes = tuple(cache.string_classes(kind, numbers) for kind, numbers in conditions.matchers.items())
        self.regions = partition_values(
            self._value_predicates(classes),
            constraint,
            schema,
            all_values=all_values,
        )
        self.variable = diagrams.variable([one.cost for one in self.regions])
        self._array = self._region_mask(lambda one: one.is_array)
        self.elements: list[Region] = []
        self._element_variables: list[int] = []
        self._array_schema = schema.narrow_to_type(constraint.schema, "array")
        if self._array:
            items = self._array_schema.get("items", ANY_SCHEMA)
            inner = ArgumentConstraint(items if isinstance(items, dict) else ANY_SCHEMA, optional=False)
            elements = self._element_predicates(classes)
            self.elements = partition_values(elements, inner, schema, all_values=all_values, elements=True)
            self._element_variables = [diagrams.variable((0.0, 0.1 + one.cost)) for one in self.elements]
        self._known: dict[Any, tuple[int, ...]] = {}

    def _value_predicates(self, classes: tuple[StringClasses, ...]) -> Predicates:
        literals: dict[Any, set[str]] = {}
        for leaf in self._leaves:
            for where, literal in leaf.literals:
                literals.setdefault(literal, set()).add(where)
        return Predicates(
            classes,
            literals,
            tuple(
                dict.fromkeys(one for leaf in self._leaves for one in leaf.needles if isinstance(one, str)),
            ),
            any(leaf.reads_numbers for leaf in self._leaves),
            self._logic,
        )

    def _logic(self, value: Any) -> tuple[Any, ...]:
        told: tuple[Any, ...] = tuple(self._cache.truth(leaf, value) for leaf in self._leaves)
        if self._conditions.is_listed:
            told = (*told, _value_key(value))
        if self._conditions.has_inner:
            told = (*told, isinstance(value, dict))
        return (*told, value is MISSING) if self._conditions.has_outer else told

    def _element_predicates(self, classes: tuple[StringClasses, ...]) -> Predicates:
        literals = {literal: {repr(literal)} for _, literal in self._needles}
        return Predicates(
            classes,
            literals,
            logic=lambda value: tuple(_strict_key(value) == one for one in self._needles),
        )

    def _region_mask(self, wanted: Callable[[Region], bool]) -> int:
        return sum(1 << number for number, one in enumerate(self.regions) if wanted(one))

    def _set_of_regions(self, wanted: Callable[[Region], bool]) -> int:
        return self._diagrams.value_in(self.variable, self._region_mask(wanted))

    def _set_with_element(self, wanted: Callable[[Region], bool]) -> int:
        chosen = (
            self._diagrams.value_in(has, 2)
            for has, one in zip(reversed(self._element_variables), reversed(self.elements), strict=True)
            if wanted(one)
        )
        return self._diagrams.intersection(self._array_set, self._diagrams.union_all(chosen))

    @property
    def _array_set(self) -> int:
        return self._diagrams.value_in(self.variable, self._array)

    def set_of_value(self, value: Any) -> int:
        """Return the set in which the argument has a value that the schema lists."""
        return self._set_of_regions(
            lambda one: any(_value_key(example) == _value_key(value) for example in one.examples),
        )

    def matcher_sets(self, kind: str, entries: MatcherEntries) -> tuple[int, int, int]:
        """Return three sets: a matcher cannot read a value, matches some value, fails on some value."""
        key = (kind, entries)
        known = self._known.get(key)
        if known is None:
            at, bit = self._kinds.index(kind), 1 << self._conditions.matchers[kind][entries]
            wanted: tuple[Callable[[Region], bool], ...] = (
                lambda one: one.classes[at] == UNREADABLE,
                lambda one: one.classes[at] >= 0 and bool(one.classes[at] & bit),
                lambda one: one.classes[at] >= 0 and not one.classes[at] & bit,
            )
            known = self._known[key] = tuple(
                self._diagrams.union(self._set_of_regions(one), self._set_with_element(one)) for one in wanted
            )
        unreadable, matching, other = known
        return unreadable, matching, other

    def leaf_sets(self, leaf: Leaf) -> tuple[int, int]:
        """Return the sets in which a leaf holds, and in which it cannot be evaluated."""
        known = self._known.get(leaf.key)
        if known is None:
            known = self._known[leaf.key] = tuple(
                self._diagrams.union(
                    self._non_arrays_with_outcome(leaf, outcome),
                    self._arrays_with_outcome(leaf, outcome),
                )
                for outcome in _OUTCOMES
            )
        holds, fails = known
        return holds, fails

    def _non_arrays_with_outcome(self, leaf: Leaf, outcome: object) -> int:
        """Return the set of values other than arrays for which a leaf has an outcome."""
        at = [one.key for one in self._leaves].index(leaf.key)
        return self._set_of_regions(lambda one: not one.is_array and one.logic[at] is outcome)

    def _arrays_with_outcome(self, leaf: Leaf, outcome: object) -> int:
        """Return the set of arrays for which a leaf has an outcome, by their elements or by being empty."""
        if not self._array:
            return NO
        if leaf.needles:
            at = self._needles.index(_strict_key(leaf.needles[0]))
            return self._set_with_element(lambda one: one.logic[at]) if outcome else NO
        some = self._set_with_element(lambda _one: True)
        return self._diagrams.if_then_else(
            some,
            self._array_set if self._cache.truth(leaf, ["some"]) is outcome else NO,
            self._array_set if self._cache.truth(leaf, []) is outcome else NO,
        )

    def possible_set(self, outer: ArgumentVariable | None) -> int:
        """Return the constraints that every accepted request fulfils.

        Args:
            outer: the variables of the value that contains this one, if there are any.
        """
        diagrams = self._diagrams
        found = YES
        if outer is not None:
            index = self.path[len(outer.path)].isdecimal()
            inside = outer._set_of_regions(lambda one: one.is_object or (one.is_array and index))  # noqa: SLF001 - same class
            found = diagrams.union(self._set_of_regions(lambda one: one.is_missing), inside)
        if not self.regions:
            return NO
        if self._array and not self._all_values:
            some = self._set_with_element(lambda _one: True)
            if self._array_schema.get("minItems", 0) > 0:
                found = diagrams.intersection(found, diagrams.if_then_else(self._array_set, some, YES))
            most = self._array_schema.get("maxItems")
            if most is not None and most < len(self._element_variables) <= _MAX_COUNTED_ELEMENTS:
                found = diagrams.intersection(
                    found,
                    diagrams.if_then_else(self._array_set, self._at_most_elements(int(most)), YES),
                )
        return found

    def _at_most_elements(self, most: int) -> int:
        rows = [YES] * (most + 1)
        for has in reversed(self._element_variables):
            present = self._diagrams.value_in(has, 2)
            rows = [
                self._diagrams.if_then_else(present, rows[left - 1] if left else NO, rows[left])
                for left in range(most + 1)
            ]
        return rows[most]

    def iter_examples(self) -> Iterator[Any]:
        """Yield example values of all regions."""
        for region in self.regions:
            yield from (one for one in region.examples if one is not MISSING)
        for element in self.elements:
            yield from ([one] for one in element.examples)

    def value_for(self, chosen: Mapping[int, int], attempt: int) -> Any:
        """Return a value in the chosen regions, or `MISSING`.

        Args:
            chosen: the values of variables; variables that are not in it may have any value.
            attempt: index of the example to return, from 0.

        Raises:
            LookupError: no example is known.
        """
        region = self.regions[chosen.get(self.variable, 0)]
        if not region.is_array:
            return _copy_example(region, attempt)
        present = [
            one for one, has in zip(self.elements, self._element_variables, strict=True) if chosen.get(has)
        ]
        values = [_copy_example(one, attempt) for one in present]
        missing = int(self._array_schema.get("minItems", 0)) - len(values)
        if missing > _MAX_PADDING:
            raise LookupError
        if missing > 0 and present:
            more = [example for one in present for example in one.examples if example not in values]
            values += (more + values * missing)[:missing]
        return values


def _copy_example(region: Region, attempt: int) -> Any:
    if not region.examples:
        raise LookupError
    value = region.examples[attempt % len(region.examples)]
    return value if value is MISSING else deepcopy(value)


def _value_key(value: Any) -> str:
    return "" if value is MISSING else repr(value)


def _strict_key(value: Any) -> tuple[str, Any]:
    """Return a scalar in a form whose equality is strict equality in JSONLogic."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return type(value).__name__, value if isinstance(value, str | bool) else None
    return "number", float(value)
