"""Source fragments of generated code: value kinds, bounds, local variables, costs and layout.

A slot is a changing value of a state with a local variable. Only values that some effect writes can change:
leaves (numbers, booleans, texts) and arrays of leaves. Each is assumed to preserve its first kind, which
every write is checked against. A value that is null or absent at first is `None` until written. Everything
else in the state is a constant.

A static check ensures that a compiled run cannot exceed the limits of a state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from peripety.engine._reference.effects import TURN_LIMIT
from peripety.engine._reference.jsonlogic import FUEL
from peripety.engine._reference.limits import MAX_PENDING, MAX_STATE_NODES, MAX_STATE_TEXT, measure
from peripety.engine.paths import MISSING, Path, get_child, lookup, parse_path, resolve_segment
from peripety.engine.strict_json import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.engine._reference.state import Rules


# Bound of numbers in generated code, far from overflow; a run with a larger number is abandoned.
MAX_NUMBER = 1e100
# Bound of texts in bytes, so that no text affects fuel or limits.
MAX_TEXT_BYTES = 1000


class NotLoweredError(Exception):
    """The scenario needs something that generated code cannot do exactly as the interpreter."""


class ValueKind(Enum):
    """Kind of a value, known before the run and constant."""

    NUMBER = "number"
    BOOLEAN = "boolean"
    TEXT = "text"
    NULL = "null"
    NUMBERS = "numbers"
    BOOLEANS = "booleans"
    TEXTS = "texts"

    @property
    def is_list(self) -> bool:
        """True for arrays, whose items are of one kind."""
        return self in _ITEMS

    @property
    def item_kind(self) -> ValueKind:
        """The kind of an array's items."""
        return _ITEMS[self]

    @property
    def array_kind(self) -> ValueKind:
        """The kind of an array of such values."""
        for many, item in _ITEMS.items():
            if item is self:
                return many
        raise NotLoweredError(f"an array of {self.value}")


_ITEMS = {
    ValueKind.NUMBERS: ValueKind.NUMBER,
    ValueKind.BOOLEANS: ValueKind.BOOLEAN,
    ValueKind.TEXTS: ValueKind.TEXT,
}


@dataclass(frozen=True)
class CodeFragment:
    """Python expression with what is known about its value.

    Attributes:
        text: the source.
        kind: the kind of its value.
        steps: upper bound of the interpreter's fuel and produced items.
        bound: upper bound of the magnitude of numbers in the value.
        length: maximum length of an array.
        may_fail: True if it may abandon the run.
        is_atom: True if it needs no parentheses as an operand.
        literal: the value if known: a number, boolean or text.
        may_be_null: True if the value may be null instead.
        absent: True if null means that nothing is there.
    """

    text: str
    kind: ValueKind
    steps: int = 1
    bound: float = 0.0
    length: int = 0
    may_fail: bool = False
    is_atom: bool = True
    literal: float | bool | str | None = None
    may_be_null: bool = False
    absent: bool = False

    @property
    def operand(self) -> str:
        """The source, in parentheses if needed."""
        return self.text if self.is_atom else f"({self.text})"


def production_cost(item: CodeFragment) -> int:
    """Return the interpreter's charge for a produced item: itself and its characters."""
    return 1 + (int(item.bound) if item.kind is ValueKind.TEXT else 0)


def combine(
    text: str,
    kind: ValueKind,
    items: list[CodeFragment],
    *,
    bound: float = 1.0,
    length: int = 0,
    steps: int = 0,
    fails: bool = False,
    atom: bool = False,
    null: bool = False,
) -> CodeFragment:
    """Build an operation over evaluated arguments, with one step and their cost."""
    return CodeFragment(
        text,
        kind,
        1 + steps + sum(item.steps for item in items),
        bound,
        length,
        may_fail=fails or any(item.may_fail for item in items),
        is_atom=atom,
        may_be_null=null,
    )


_LEAVES: dict[type, ValueKind] = {bool: ValueKind.BOOLEAN, float: ValueKind.NUMBER, str: ValueKind.TEXT}


@dataclass(frozen=True)
class Slot:
    """Local variable of the run.

    Attributes:
        name: the name of the variable.
        path: the path of its value in the state.
        kind: the kind of its value.
        initial: the first value; None or `MISSING` if it may be absent.
    """

    name: str
    path: Path
    kind: ValueKind
    initial: Any

    @property
    def is_optional(self) -> bool:
        """True if the value may be `None`."""
        return self.initial is None or self.initial is MISSING


@dataclass(frozen=True)
class Element:
    """Item of a changing array; it may not exist."""

    slot: Slot
    index: int


class SlotLayout:
    """Slots of a scenario, in path order.

    Raises:
        NotLoweredError: something other than leaves and arrays of leaves changes.
    """

    def __init__(self, rules: Rules) -> None:
        self._root = {"state": rules.initial}
        self.slots: dict[Path, Slot] = {}
        paths = sorted(set(_iter_written_paths(rules)), key=_path_sort_key)
        given = dict(_iter_written_leaves(rules))
        for path in paths:
            if any(path[:end] in self.slots for end in range(2, len(path))):
                continue  # an element of an array that is a slot itself
            initial = lookup(self._root, path)
            if initial is MISSING and not isinstance(lookup(self._root, path[:-1]), dict):
                raise NotLoweredError("a write to where nothing can be")
            if isinstance(initial, list):
                kind = get_items_kind(initial or [given.get(path, 0.0)]).array_kind
            else:
                is_empty = initial is None or initial is MISSING
                kind = get_leaf_kind(given.get(path, 0.0) if is_empty else initial)
            self.slots[path] = Slot(f"s{len(self.slots)}", path, kind, initial)

    def find_target(self, path: Path) -> Slot | Element:
        """Return the target of an effect."""
        if path in self.slots:
            return self.slots[path]
        slot, index = self.slots.get(path[:-1]), path[-1]
        if slot is None or not slot.kind.is_list or not isinstance(index, int):
            raise NotLoweredError("a write beside the slots")
        return Element(slot, index)

    def resolve_variable(self, variable: Path) -> Slot | Element | Any:
        """Return what a variable under `state` reads: a slot, an element, a constant, or `MISSING`."""
        value: Any = self._root
        path: Path = ()
        for segment in variable:
            step = resolve_segment(value, segment)
            slot = self.slots.get(path)
            if slot is not None:
                is_last = len(path) + 1 == len(variable)
                return Element(slot, step) if is_last and isinstance(step, int) else MISSING
            value, path = get_child(value, step), (*path, step)
        if path in self.slots:
            return self.slots[path]
        if any(slot.path[: len(path)] == path for slot in self.slots.values()):
            raise NotLoweredError("a part of the state that changes inside")
        return value


def get_leaf_kind(value: Any) -> ValueKind:
    """Return the kind of a leaf."""
    if value is None:
        return ValueKind.NULL
    if type(value) not in _LEAVES:
        raise NotLoweredError("not a leaf")
    return _LEAVES[type(value)]


def get_items_kind(items: list[Any]) -> ValueKind:
    """Return the common kind of an array's items; an empty array gets an arbitrary one."""
    kinds = {get_leaf_kind(item) for item in items} or {ValueKind.NUMBER}
    if len(kinds) > 1:
        raise NotLoweredError("an array of several kinds")
    return kinds.pop()


def iter_effects_with_rules(rules: Rules) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield every effect of the scenario, including those inside schedules, with its rule."""
    actions = [action for index in range(len(rules.actions)) for action in rules.list_actions(index)]
    pending = [(effect, rule) for rule in [*actions, *rules.events] for effect in rule["effects"]]
    while pending:
        effect, rule = pending.pop()
        yield effect, rule
        pending.extend((later, rule) for later in effect.get("effects", []))


def _iter_written_paths(rules: Rules) -> Iterator[Path]:
    yield from map(parse_path, rules.decay)
    yield from (parse_path(entry["path"]) for entry in rules.deals)
    for effect, _ in iter_effects_with_rules(rules):
        if effect["op"] == "patch":
            if not isinstance(effect["value"], dict):
                raise NotLoweredError("a patch with a derived value")
            path = parse_path(effect["path"])
            yield from ((*path, key) for key in effect["value"])
        elif "path" in effect:
            yield parse_path(effect["path"])


def _iter_written_leaves(rules: Rules) -> Iterator[tuple[Path, Any]]:
    """Yield a leaf written to each path; it determines the kind of an initially absent value."""
    for entry in rules.deals:
        yield from ((parse_path(entry["path"]), leaf) for leaf in entry["values"] if type(leaf) in _LEAVES)
    for effect, rule in iter_effects_with_rules(rules):
        value = effect.get("value")
        if isinstance(value, dict):
            path = parse_path(effect["path"])
            yield from (((*path, key), leaf) for key, leaf in value.items() if type(leaf) in _LEAVES)
        elif type(value) in _LEAVES and value not in rule.get("derives", {}):
            yield parse_path(effect["path"]), value


def _path_sort_key(path: Path) -> list[tuple[bool, Any]]:
    return [(isinstance(segment, int), segment) for segment in path]


# The longest horizon of the schema.
MAX_TURNS = 1000


@dataclass
class _Growth:
    """Growth of a slot in one turn: values written, sums added and factors.

    Texts are only written, so their growth is a length.
    """

    start: float = 0.0
    added: float = 0.0
    factor: float = 1.0

    def bound(self) -> float:
        """Return the largest magnitude within any run.

        Each effect is applied at most once a turn. In any order, an added amount is multiplied by at most all
        factors.
        """
        try:
            return (self.start + MAX_TURNS * self.added) * float(self.factor**MAX_TURNS)
        except OverflowError:
            return float("inf")


class CodegenContext:
    """One attempt to compile a scenario.

    Args:
        capacity: maximum length of an array in generated code.
        compute_bounds: bounds of slots by name, from an earlier attempt; writes to other slots are guarded.

    Attributes:
        names: constants that the source refers to.
    """

    def __init__(self, capacity: int, bounds: dict[str, float] | None = None) -> None:
        self.capacity = capacity
        self.names: dict[str, Any] = {}
        self.uses_turn = False
        self._bounds = bounds or {}
        self._growth: dict[str, _Growth] = {}
        self._steps = 0

    # --- constants ---

    def add_constant(self, value: Any) -> str:
        """Return the name of a constant; texts of the document never become source."""
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def literal_code(self, value: Any) -> CodeFragment:
        """Return the code of a JSON literal: a leaf, or an array of leaves of one kind."""
        if isinstance(value, list):
            return self._array_code(value)
        kind = get_leaf_kind(value)
        if kind is ValueKind.TEXT:
            size = self._text_size(value)
            return CodeFragment(self.add_constant(value), kind, bound=size, literal=value)
        bound = abs(float(value or 0))
        if bound > MAX_NUMBER:
            raise NotLoweredError("a number that large")
        return CodeFragment(repr(value), kind, bound=bound, literal=value)

    def _array_code(self, items: list[Any]) -> CodeFragment:
        codes = [self.literal_code(item) for item in items]
        return CodeFragment(
            self.add_constant(tuple(items)),
            get_items_kind(items).array_kind,
            bound=max((code.bound for code in codes), default=0.0),
            length=len(items),
        )

    @staticmethod
    def _text_size(text: str) -> int:
        size = len(text.encode("utf-8"))
        if size > MAX_TEXT_BYTES:
            raise NotLoweredError("a text that long")
        return size

    # --- slots ---

    def read_slot(self, place: Slot | Element) -> CodeFragment:
        """Return the code that reads a slot or an element."""
        if isinstance(place, Element):
            slot = place.slot
            bound = self._bound_of(slot)
            return CodeFragment(
                f"{slot.name}[{place.index}]",
                slot.kind.item_kind,
                bound=bound,
                may_fail=True,
            )
        return CodeFragment(
            place.name,
            place.kind,
            bound=self._bound_of(place),
            length=self.capacity if place.kind.is_list else 0,
            may_be_null=place.is_optional,
            absent=place.initial is MISSING,
        )

    def _bound_of(self, slot: Slot) -> float:
        limit = MAX_TEXT_BYTES if slot.kind in {ValueKind.TEXT, ValueKind.TEXTS} else MAX_NUMBER
        return min(limit, self._bounds.get(slot.name, limit))

    def is_guarded(self, slot: Slot) -> bool:
        """Return True if writes to the slot must check the limit."""
        return self._bounds.get(slot.name, MAX_NUMBER) >= MAX_NUMBER

    def record_growth(self, slot: Slot, *, to: float = 0.0, by: float = 0.0, times: float = 1.0) -> None:
        """Record the growth that an effect causes in a slot."""
        growth = self._growth.setdefault(slot.name, _Growth())
        growth.start = max(growth.start, to)
        growth.added += by
        growth.factor *= max(1.0, times)

    def compute_bounds(self) -> dict[str, float]:
        """Return the bounds of slots that stay within the limit."""
        bounds = {name: growth.bound() for name, growth in self._growth.items()}
        return {name: bound for name, bound in bounds.items() if bound < MAX_NUMBER}

    # --- costs ---

    def limit(self, code: CodeFragment) -> CodeFragment:
        """Return a number or text within the limit, with a check if the bound is not sufficient."""
        name, limit = ("brief", MAX_TEXT_BYTES) if code.kind is ValueKind.TEXT else ("held", MAX_NUMBER)
        if code.bound <= limit:
            return code
        return replace(code, text=f"{name}({code.text})", bound=limit, may_fail=True, is_atom=True)

    def charge_evaluation(self, code: CodeFragment, times: int = 1) -> CodeFragment:
        """Charge for a whole expression, evaluated several times in a turn; its fuel must suffice."""
        if code.steps > FUEL:
            raise NotLoweredError("an expression that may run out of fuel")
        self.charge((code.steps + code.length) * times)
        return code

    def charge(self, steps: int) -> None:
        """Add to the maximum cost of a turn, so that no call can reach its limit."""
        self._steps += steps
        if self._steps > TURN_LIMIT:
            raise NotLoweredError("a turn that may cost too many steps")


def check_state_limits(rules: Rules, layout: SlotLayout, capacity: int) -> None:
    """Compare the largest possible state of a compiled run with the limits.

    Raises:
        NotLoweredError: the state may exceed them.
    """
    tree = rules.initial_size
    kinds = [slot.kind for slot in layout.slots.values()]
    # A schedule has at most one pending entry. A text in it may refer to a derived value of any kind.
    schedules = [effect for effect, _ in iter_effects_with_rules(rules) if effect["op"] == "schedule"]
    entries = measure(schedules)
    derived = sum(_count_texts(effect["effects"]) for effect in schedules)
    arrays = sum(kind.is_list for kind in kinds) + derived
    # The key of an initially absent leaf counts as well.
    texts = 2 * len(kinds) + capacity * (kinds.count(ValueKind.TEXTS) + derived)
    if (
        tree.nodes + len(kinds) + entries.nodes + arrays * capacity > MAX_STATE_NODES
        or tree.text + entries.text + texts * MAX_TEXT_BYTES > MAX_STATE_TEXT
        or tree.depth > MAX_DEPTH
        or len(schedules) > MAX_PENDING
    ):
        raise NotLoweredError("a state that may outgrow its limits")


def _count_texts(effects: list[Any]) -> int:
    """Return the number of effects with a text as value, including nested ones."""
    return sum(
        isinstance(effect.get("value"), str) + _count_texts(effect.get("effects", [])) for effect in effects
    )


# Alternatives that are tested one after the other; more are bisected first.
_MAX_LINEAR_TESTS = 3


def indent(lines: list[str]) -> list[str]:
    """Indent lines as the body of a statement."""
    return [f"    {line}" for line in lines or ["pass"]]


def write_dispatch(variable: str, bodies: list[list[str]], first: int = 0) -> list[str]:
    """Return statements that execute the body whose number, counted from `first`, is in a variable."""
    if len(bodies) > _MAX_LINEAR_TESTS:
        half = len(bodies) // 2
        return [
            f"if {variable} < {first + half}:",
            *indent(write_dispatch(variable, bodies[:half], first)),
            "else:",
            *indent(write_dispatch(variable, bodies[half:], first + half)),
        ]
    lines: list[str] = []
    for number, body in enumerate(bodies, first):
        last = number == first + len(bodies) - 1
        test = f"{'el' if lines else ''}if {variable} == {number}:"
        lines += body or ["pass"] if last and not lines else ["else:" if last else test, *indent(body)]
    return lines
