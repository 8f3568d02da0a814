"""Derived values and effects to Python statements: what `effects` does to the tree, done to slots.

A list of effects is a transaction; here the first effect that cannot be applied leaves the run, so nothing
is ever rolled back. Changes are not recorded, and the log is not part of a state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._pure import durations
from peripety.sim._pure.compiled.code import LIMIT, Code, Kind, NotLoweredError
from peripety.sim._pure.compiled.draft import MAX_TURNS, Draft
from peripety.sim._pure.compiled.expressions import Expressions
from peripety.sim._pure.compiled.slots import Element, Layout, Slot
from peripety.sim._pure.execution import derive_names
from peripety.sim._pure.paths import MISSING, Path, lookup_variable, parse_path
from peripety.sim._pure.size import measure, steps_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.sim._pure.state import Rules

__all__ = ["RuleScope", "RuleWriter"]

Codes = dict[str, Code]

# What the interpreter charges for a change of a leaf: itself, the values before and after, a lot of text.
_CHANGE_STEPS = 4


class RuleScope:
    """What the variables of a rule mean."""

    def __init__(
        self,
        rules: Rules,
        layout: Layout,
        draft: Draft,
        params: Codes | None = None,
        derives: Codes | None = None,
    ) -> None:
        self._layout = layout
        self._draft = draft
        self._entities = {"entities": rules.entities}
        self._named = {"params": params or {}, "derives": derives if derives is not None else {}}

    def read(self, path: Path) -> Code | None:
        """A variable: of the state, a parameter, a derived value, the turn, or a fact about an entity."""
        if not path:
            raise NotLoweredError("everything at once")
        root, *rest = path
        if root == "state":
            return self._from_state(path)
        if root == "turn":
            self._draft.uses_turn = self._draft.uses_turn or not rest
            return None if rest else Code("now", Kind.NUMBER, bound=MAX_TURNS)
        if root in self._named:
            return self._from_names(self._named[str(root)], rest)
        found = lookup_variable(self._entities, path)
        return None if found is MISSING else self._draft.literal(found)

    def _from_state(self, path: Path) -> Code | None:
        found = self._layout.find(path)
        if found is MISSING:
            return None
        return self._draft.read(found) if isinstance(found, Slot | Element) else self._draft.literal(found)

    @staticmethod
    def _from_names(named: Codes, rest: list[str | int]) -> Code | None:
        if not rest:
            raise NotLoweredError("all names at once")
        code = named.get(str(rest[0]))
        if code is not None and code.kind.is_list and len(rest) > 1:
            raise NotLoweredError("an element of a derived value")
        return code if len(rest) == 1 else None


class RuleWriter:
    """Lowers the rules of a scenario into a draft.

    Attributes:
        later: the statements of each schedule, by the number under which it is pending.
    """

    def __init__(self, rules: Rules, layout: Layout, draft: Draft) -> None:
        self._rules = rules
        self._layout = layout
        self._draft = draft
        self._expressions = Expressions(draft)
        self._schedule_ids: list[str] = []
        self.later: list[list[str]] = []

    def scope(self, params: Codes | None = None, derives: Codes | None = None) -> RuleScope:
        """The scope of a rule."""
        return RuleScope(self._rules, self._layout, self._draft, params, derives)

    def condition(self, logic: Any, params: Codes | None = None, times: int = 1) -> Code:
        """A condition, evaluated so often in a turn."""
        code = self._expressions.condition(logic, self.scope(params))
        return self._draft.evaluation(code, times)

    def rule(self, rule: dict[str, Any], params: Codes | None = None) -> list[str]:
        """The statements of an action or event: its derived values, then its effects."""
        lines, derives = self._derived(rule.get("derives", {}), params)
        return lines + self._effects(rule["effects"], derives)

    def decay(self) -> list[str]:
        """The statements of decay, in the order of its paths."""
        lines: list[str] = []
        for text in sorted(self._rules.decay):
            effect = {"op": "dec", "path": text, "value": self._rules.decay[text]}
            lines += self._effects([effect], {})
        return lines

    # --- derived values ---

    def _derived(self, expressions: dict[str, Any], params: Codes | None) -> tuple[list[str], Codes]:
        """Each after those it reads, by name otherwise."""
        lines: list[str] = []
        derives: Codes = {}
        scope = self.scope(params, derives)

        def visit(name: str) -> None:
            if name in derives:
                return
            for other in sorted(derive_names(expressions[name]) & expressions.keys()):
                visit(other)
            code = self._draft.evaluation(self._expressions.value(expressions[name], scope))
            variable = f"d{len(derives)}"
            lines.append(f"{variable} = {_copied(code)}")
            derives[name] = _variable(variable, code)

        for name in sorted(expressions):
            visit(name)
        return lines, derives

    # --- effects ---

    def _effects(self, effects: list[Any], derives: Codes) -> list[str]:
        lines: list[str] = []
        for effect in effects:
            lines += self._effect(effect, derives)
        return lines

    def _effect(self, effect: dict[str, Any], derives: Codes) -> list[str]:
        operation = effect["op"]
        if operation == "addlog":
            return []
        if operation == "schedule":
            return self._schedule(effect, derives)
        path = parse_path(effect["path"])
        if operation == "patch":
            return self._patch(path, effect["value"])
        target = self._target(path)
        value = self._resolved(effect["value"], derives) if "value" in effect else None
        return _WRITERS[operation](self, target, value)

    def _patch(self, path: Path, values: dict[str, Any]) -> list[str]:
        lines: list[str] = []
        for key in sorted(values):
            lines += self.set(self._target((*path, key)), self._draft.literal(values[key]))
        return lines

    def _resolved(self, value: Any, derives: Codes) -> Code:
        """A literal, or the derived value that a string names."""
        return derives[value] if isinstance(value, str) and value in derives else self._draft.literal(value)

    def _target(self, path: Path) -> Slot | Element:
        self._draft.charge(_CHANGE_STEPS)
        return self._layout.target(path)

    def _array(self, target: Slot | Element) -> str:
        if isinstance(target, Element) or not target.kind.is_list:
            raise NotLoweredError("an array that is none")
        return target.name

    def set(self, target: Slot | Element, value: Code) -> list[str]:
        slot, kind = _holder(target)
        is_empty = value.kind.is_list and value.length == 0
        is_null = value.kind is Kind.NULL
        if value.kind is not kind and not is_null and not (is_empty and kind.is_list):
            raise NotLoweredError("a value that changes its kind")
        if (is_null or value.null) and (isinstance(target, Element) or slot.initial is not None):
            raise NotLoweredError("a null that is new here")
        if value.length > self._draft.capacity:
            raise NotLoweredError("an array that long")
        self._draft.grows(slot, to=value.bound)
        if kind.is_list:
            self._draft.charge(_CHANGE_STEPS * self._draft.capacity)
        return [f"{_written(target)} = {_copied(value)}"]

    def pop(self, target: Slot | Element, _value: Code) -> list[str]:
        return [f"{self._array(target)}.pop()"]

    def push(self, target: Slot | Element, value: Code) -> list[str]:
        name = self._array(target)
        slot = target.slot if isinstance(target, Element) else target
        if value.kind is not slot.kind.item or value.null:
            raise NotLoweredError("an item of another kind")
        self._draft.grows(slot, to=value.bound)
        return [f"{name}.append({value.text})", f"if len({name}) > {self._draft.capacity}: raise Deopt"]

    def add(self, target: Slot | Element, value: Code) -> list[str]:
        return self._changed(target, value, "{} += {}")

    def subtract(self, target: Slot | Element, value: Code) -> list[str]:
        return self._changed(target, value, "{} -= {}")

    def multiply(self, target: Slot | Element, value: Code) -> list[str]:
        return self._changed(target, value, "{0} = {0} * {1} + 0.0")  # -0, which a product may be, becomes 0

    def _changed(self, target: Slot | Element, value: Code, form: str) -> list[str]:
        """Arithmetic on a number; an overflow is ruled out by bounds, or leaves the run."""
        slot, kind = _holder(target)
        if kind is not Kind.NUMBER or value.kind is not Kind.NUMBER or value.null:
            raise NotLoweredError("arithmetic on something else than numbers")
        if "*" in form:
            self._draft.grows(slot, times=value.bound)
        else:
            self._draft.grows(slot, by=value.bound)
        name = _written(target)
        lines = [form.format(name, value.text)]
        if isinstance(target, Slot) and slot.is_optional:
            lines.insert(0, f"if {name} is None: raise Deopt")
        if self._draft.is_guarded(slot):
            lines.append(f"if not {-LIMIT!r} <= {name} <= {LIMIT!r}: raise Deopt")
        return lines

    # --- schedules ---

    def _schedule(self, effect: dict[str, Any], derives: Codes) -> list[str]:
        """Put an entry at the end of what is pending; it brings along the derived values that it needs."""
        used = sorted(_derived_names(effect["effects"]) & derives.keys())
        frozen = {name: _variable(f"f{position}", derives[name]) for position, name in enumerate(used)}
        number = len(self.later)
        self.later.append([])
        unpacked = [f"{', '.join(code.text for code in frozen.values())}, = values"] if frozen else []
        self.later[number] = unpacked + self._effects(effect["effects"], frozen)
        size = measure(effect)
        self._draft.charge(1 + steps_for(size.nodes, size.text))
        self._draft.charge(sum(_CHANGE_STEPS * code.length for code in frozen.values()))
        entry = self._entry(effect["id"])
        values = "".join(f"{derives[name].text}, " for name in used).rstrip()
        return [
            f"pending.pop({entry}, None)",
            f"pending[{entry}] = {self._due(effect)}, {number}, ({values})",
        ]

    def _entry(self, name: str) -> int:
        if name not in self._schedule_ids:
            self._schedule_ids.append(name)
        return self._schedule_ids.index(name)

    def _due(self, effect: dict[str, Any]) -> str:
        clock = self._rules.turn_minutes
        if "at" in effect:
            return f"max({durations.turns(effect['at'], clock)}, turn + 1)"
        return f"turn + {durations.turns(effect['after'], clock)}"


_WRITERS: dict[str, Callable[[RuleWriter, Any, Any], list[str]]] = {
    "set": RuleWriter.set,
    "inc": RuleWriter.add,
    "dec": RuleWriter.subtract,
    "mul": RuleWriter.multiply,
    "push": RuleWriter.push,
    "pop": RuleWriter.pop,
}


def _holder(target: Slot | Element) -> tuple[Slot, Kind]:
    """The slot that a write changes, and the kind of what is written there."""
    return (target.slot, target.slot.kind.item) if isinstance(target, Element) else (target, target.kind)


def _written(target: Slot | Element) -> str:
    return f"{target.slot.name}[{target.index}]" if isinstance(target, Element) else target.name


def _variable(name: str, value: Code) -> Code:
    """A variable that holds a value."""
    return Code(name, value.kind, bound=value.bound, length=value.length, null=value.null)


def _copied(code: Code) -> str:
    """A value of its own: arrays are changed in place."""
    return f"[*{code.operand}]" if code.kind.is_list else code.text


def _derived_names(effects: list[Any]) -> set[str]:
    """The strings in effects that may stand for derived values."""
    names = set()
    for effect in effects:
        value = effect.get("value")
        names |= {value} if isinstance(value, str) else set()
        names |= _derived_names(effect.get("effects", []))
    return names
