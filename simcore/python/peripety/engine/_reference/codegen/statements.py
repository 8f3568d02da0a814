"""Code generation for derived values and effects, on local variables.

A list of effects is a transaction. In generated code, the first effect that fails abandons the run, and
nothing is rolled back. Changes are not recorded, and the log is not part of a state.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from peripety.engine._reference import limits
from peripety.engine._reference.codegen.code import (
    MAX_NUMBER,
    MAX_TURNS,
    CodeFragment,
    CodegenContext,
    Element,
    NotLoweredError,
    Slot,
    SlotLayout,
    ValueKind,
    write_dispatch,
)
from peripety.engine._reference.codegen.expressions import ExpressionCompiler
from peripety.engine._reference.effects import find_derive_names
from peripety.engine._reference.limits import handling_cost, measure
from peripety.engine.paths import MISSING, Path, lookup_variable, parse_path
from peripety.engine.rng import stream_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.engine._reference.state import Rules


CodeFragments = dict[str, CodeFragment]

# The interpreter's charge for changing a leaf: the change, both values, and a long text.
_CHANGE_STEPS = 4


class RuleCodeScope:
    """Variables in scope of a rule."""

    def __init__(
        self,
        rules: Rules,
        layout: SlotLayout,
        context: CodegenContext,
        params: CodeFragments | None = None,
        derives: CodeFragments | None = None,
    ) -> None:
        self._layout = layout
        self._context = context
        self._entities = {"entities": rules.entities}
        self._named = {"params": params or {}, "derives": derives if derives is not None else {}}

    def read_variable(self, path: Path) -> CodeFragment | None:
        """Return the code of a variable: state, parameter, derived value, turn, or entity."""
        if not path:
            raise NotLoweredError("everything at once")
        root, *rest = path
        if root == "state":
            return self._from_state(path)
        if root == "turn":
            self._context.uses_turn = self._context.uses_turn or not rest
            return None if rest else CodeFragment("now", ValueKind.NUMBER, bound=MAX_TURNS)
        if root in self._named:
            return self._from_names(self._named[str(root)], rest)
        found = lookup_variable(self._entities, path)
        return None if found is MISSING else self._context.literal_code(found)

    def _from_state(self, path: Path) -> CodeFragment | None:
        found = self._layout.resolve_variable(path)
        if found is MISSING:
            return None
        return (
            self._context.read_slot(found)
            if isinstance(found, Slot | Element)
            else self._context.literal_code(found)
        )

    @staticmethod
    def _from_names(named: CodeFragments, rest: list[str | int]) -> CodeFragment | None:
        if not rest:
            raise NotLoweredError("all names at once")
        code = named.get(str(rest[0]))
        if code is not None and code.kind.is_list and len(rest) > 1:
            raise NotLoweredError("an element of a derived value")
        return code if len(rest) == 1 else None


class RuleCompiler:
    """Compiler of the rules of a scenario.

    Attributes:
        scheduled_statements: statements of each schedule, by its number.
    """

    def __init__(self, rules: Rules, layout: SlotLayout, context: CodegenContext) -> None:
        self._rules = rules
        self._layout = layout
        self._context = context
        self._expressions = ExpressionCompiler(context)
        self._schedule_ids: list[str] = []
        self.scheduled_statements: list[list[str]] = []

    def create_scope(
        self,
        params: CodeFragments | None = None,
        derives: CodeFragments | None = None,
    ) -> RuleCodeScope:
        """Return the scope of a rule."""
        return RuleCodeScope(self._rules, self._layout, self._context, params, derives)

    def compile_condition(
        self,
        logic: Any,
        params: CodeFragments | None = None,
        times: int = 1,
    ) -> CodeFragment:
        """Compile a condition that is evaluated several times in a turn."""
        code = self._expressions.condition(logic, self.create_scope(params))
        return self._context.charge_evaluation(code, times)

    def compile_rule(self, rule: dict[str, Any], params: CodeFragments | None = None) -> list[str]:
        """Return the statements of an action or event: derived values, then effects."""
        lines, derives = self._compile_derives(rule.get("derives", {}), params)
        return lines + self._compile_effects(rule["effects"], derives)

    def compile_deals(self) -> list[str]:
        """Return the statements that draw the hidden truths of a run."""
        lines: list[str] = []
        for entry in self._rules.deals:
            target, values = self._target(parse_path(entry["path"])), entry["values"]
            key = self._context.add_constant(stream_key(f"deal:{entry['id']}"))
            lines.append(f"dealt = (draw(seed, {key}, 0, 0) >> 32) * {len(values)} >> 32")
            outcomes = [self.set(target, self._context.literal_code(value)) for value in values]
            lines += write_dispatch("dealt", outcomes)
        return lines

    def compile_decay(self) -> list[str]:
        """Return the statements of decay, in path order."""
        lines: list[str] = []
        for text in sorted(self._rules.decay):
            effect = {"op": "dec", "path": text, "value": self._rules.decay[text]}
            lines += self._compile_effects([effect], {})
        return lines

    # --- derived values ---

    def _compile_derives(
        self,
        expressions: dict[str, Any],
        params: CodeFragments | None,
    ) -> tuple[list[str], CodeFragments]:
        """Compile derived values in dependency order, otherwise by name."""
        lines: list[str] = []
        derives: CodeFragments = {}
        scope = self.create_scope(params, derives)

        def visit(name: str) -> None:
            if name in derives:
                return
            for other in sorted(find_derive_names(expressions[name]) & expressions.keys()):
                visit(other)
            code = self._context.charge_evaluation(self._expressions.value(expressions[name], scope))
            variable = f"d{len(derives)}"
            lines.append(f"{variable} = {_copy_source(code)}")
            derives[name] = _variable_code(variable, code)

        for name in sorted(expressions):
            visit(name)
        return lines, derives

    # --- effects ---

    def _compile_effects(self, effects: list[Any], derives: CodeFragments) -> list[str]:
        lines: list[str] = []
        for effect in effects:
            lines += self._compile_effect(effect, derives)
        return lines

    def _compile_effect(self, effect: dict[str, Any], derives: CodeFragments) -> list[str]:
        operation = effect["op"]
        if operation == "addlog":
            return []
        if operation == "schedule":
            return self._compile_schedule(effect, derives)
        path = parse_path(effect["path"])
        if operation == "patch":
            return self._compile_patch(path, effect["value"])
        target = self._target(path)
        value = self._resolve(effect["value"], derives) if "value" in effect else None
        return _EFFECT_COMPILERS[operation](self, target, value)

    def _compile_patch(self, path: Path, values: dict[str, Any]) -> list[str]:
        lines: list[str] = []
        for key in sorted(values):
            lines += self.set(self._target((*path, key)), self._context.literal_code(values[key]))
        return lines

    def _resolve(self, value: Any, derives: CodeFragments) -> CodeFragment:
        """Return a literal, or the derived value that a string refers to."""
        return (
            derives[value]
            if isinstance(value, str) and value in derives
            else self._context.literal_code(value)
        )

    def _target(self, path: Path) -> Slot | Element:
        self._context.charge(_CHANGE_STEPS)
        return self._layout.find_target(path)

    def _array(self, target: Slot | Element) -> str:
        if isinstance(target, Element) or not target.kind.is_list:
            raise NotLoweredError("a value that is not an array")
        return target.name

    def set(self, target: Slot | Element, value: CodeFragment) -> list[str]:
        slot, kind = _find_slot(target)
        is_empty = value.kind.is_list and value.length == 0
        is_null = value.kind is ValueKind.NULL
        if value.kind is not kind and not is_null and not (is_empty and kind.is_list):
            raise NotLoweredError("a value that changes its kind")
        if (is_null or value.may_be_null) and (isinstance(target, Element) or slot.initial is not None):
            raise NotLoweredError("a null that is new here")
        if value.length > self._context.capacity:
            raise NotLoweredError("an array that long")
        self._context.record_growth(slot, to=value.bound)
        if kind.is_list:
            self._context.charge(_CHANGE_STEPS * self._context.capacity)
        return [f"{_target_source(target)} = {_copy_source(value)}", *self._clamp(target)]

    def pop(self, target: Slot | Element, _value: CodeFragment) -> list[str]:
        return [f"{self._array(target)}.pop()"]

    def push(self, target: Slot | Element, value: CodeFragment) -> list[str]:
        name = self._array(target)
        slot = target.slot if isinstance(target, Element) else target
        if value.kind is not slot.kind.item_kind or value.may_be_null:
            raise NotLoweredError("an item of another kind")
        self._context.record_growth(slot, to=value.bound)
        return [f"{name}.append({value.text})", f"if len({name}) > {self._context.capacity}: raise Deopt"]

    def add(self, target: Slot | Element, value: CodeFragment) -> list[str]:
        return self._compile_arithmetic(target, value, "{} += {}")

    def subtract(self, target: Slot | Element, value: CodeFragment) -> list[str]:
        return self._compile_arithmetic(target, value, "{} -= {}")

    def multiply(self, target: Slot | Element, value: CodeFragment) -> list[str]:
        return self._compile_arithmetic(target, value, "{0} = {0} * {1} + 0.0")  # adding 0 turns -0 into 0

    def _compile_arithmetic(self, target: Slot | Element, value: CodeFragment, form: str) -> list[str]:
        """Compile arithmetic on a number; bounds rule out overflow, or a guard abandons the run."""
        slot, kind = _find_slot(target)
        if kind is not ValueKind.NUMBER or value.kind is not ValueKind.NUMBER or value.may_be_null:
            raise NotLoweredError("arithmetic on something else than numbers")
        if "*" in form:
            self._context.record_growth(slot, times=value.bound)
        else:
            self._context.record_growth(slot, by=value.bound)
        name = _target_source(target)
        lines = [form.format(name, value.text)]
        if isinstance(target, Slot) and slot.is_optional:
            lines.insert(0, f"if {name} is None: raise Deopt")
        if self._context.is_guarded(slot):
            lines.append(f"if not {-MAX_NUMBER!r} <= {name} <= {MAX_NUMBER!r}: raise Deopt")
        return lines + self._clamp(target)

    def _clamp(self, target: Slot | Element) -> list[str]:
        """Return the statements that limit a number to its bounds."""
        limits = self._rules.bounds.limits.get(target.path) if isinstance(target, Slot) else None
        if limits is None:
            return []
        name = _target_source(target)
        tests = ((name, "<", limits[0]), (name, ">", limits[1]))
        return [
            f"if {name} {test} {limit!r}: {name} = {limit!r}"
            for name, test, limit in tests
            if isfinite(limit)
        ]

    # --- schedules ---

    def _compile_schedule(self, effect: dict[str, Any], derives: CodeFragments) -> list[str]:
        """Append an entry to the schedule, with the derived values that its effects need."""
        used = sorted(_find_derive_names(effect["effects"]) & derives.keys())
        frozen = {name: _variable_code(f"f{position}", derives[name]) for position, name in enumerate(used)}
        number = len(self.scheduled_statements)
        self.scheduled_statements.append([])
        unpacked = [f"{', '.join(code.text for code in frozen.values())}, = values"] if frozen else []
        self.scheduled_statements[number] = unpacked + self._compile_effects(effect["effects"], frozen)
        size = measure(effect)
        self._context.charge(1 + handling_cost(size.nodes, size.text))
        self._context.charge(sum(_CHANGE_STEPS * code.length for code in frozen.values()))
        entry = self._schedule_number(effect["id"])
        values = "".join(f"{derives[name].text}, " for name in used).rstrip()
        return [
            f"pending.pop({entry}, None)",
            f"pending[{entry}] = {self._due_source(effect)}, {number}, ({values})",
        ]

    def _schedule_number(self, name: str) -> int:
        if name not in self._schedule_ids:
            self._schedule_ids.append(name)
        return self._schedule_ids.index(name)

    def _due_source(self, effect: dict[str, Any]) -> str:
        clock = self._rules.turn_minutes
        if "at" in effect:
            return f"max({limits.duration_in_turns(effect['at'], clock)}, turn + 1)"
        return f"turn + {limits.duration_in_turns(effect['after'], clock)}"


_EFFECT_COMPILERS: dict[str, Callable[[RuleCompiler, Any, Any], list[str]]] = {
    "set": RuleCompiler.set,
    "inc": RuleCompiler.add,
    "dec": RuleCompiler.subtract,
    "mul": RuleCompiler.multiply,
    "push": RuleCompiler.push,
    "pop": RuleCompiler.pop,
}


def _find_slot(target: Slot | Element) -> tuple[Slot, ValueKind]:
    """Return the slot that a write changes, and the kind of the written value."""
    return (target.slot, target.slot.kind.item_kind) if isinstance(target, Element) else (target, target.kind)


def _target_source(target: Slot | Element) -> str:
    return f"{target.slot.name}[{target.index}]" if isinstance(target, Element) else target.name


def _variable_code(name: str, value: CodeFragment) -> CodeFragment:
    """Return the code of a variable that holds a value."""
    return CodeFragment(
        name,
        value.kind,
        bound=value.bound,
        length=value.length,
        may_be_null=value.may_be_null,
    )


def _copy_source(code: CodeFragment) -> str:
    """Return code that copies an array, since arrays are changed in place."""
    return f"[*{code.operand}]" if code.kind.is_list else code.text


def _find_derive_names(effects: list[Any]) -> set[str]:
    """Return the strings in effects that may refer to derived values."""
    names = set()
    for effect in effects:
        value = effect.get("value")
        names |= {value} if isinstance(value, str) else set()
        names |= _find_derive_names(effect.get("effects", []))
    return names
