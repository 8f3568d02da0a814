"""Code generation for JSONLogic: Python expressions for values of known kinds.

Only operations with one obvious Python form are compiled; others raise `NotLoweredError`. A failing
expression raises at run time, or is not compiled if it would always fail.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from peripety.engine._reference.codegen.code import (
    MAX_NUMBER,
    MAX_TEXT_BYTES,
    CodeFragment,
    NotLoweredError,
    ValueKind,
    combine,
    production_cost,
)
from peripety.engine._reference.codegen.string_operators import TEXT_OPERATORS
from peripety.engine._reference.jsonlogic_operators import to_number
from peripety.engine.backend_protocol import EngineError
from peripety.engine.paths import Path, split_variable

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.engine._reference.codegen.code import CodegenContext


_NUMERIC = (ValueKind.NUMBER, ValueKind.BOOLEAN, ValueKind.NULL)
_NOTHING = CodeFragment("None", ValueKind.NULL)
# Variables of iterators in the source; a nested iterator sees only its own element.
_ELEMENT, _TOTAL = "x", "total"


class CodeScope(Protocol):
    """Resolver of variables."""

    def read_variable(self, path: Path) -> CodeFragment | None:
        """Return the code of a variable; None if it never exists."""


class ElementScope:
    """Scope of an iterator: the element only."""

    def __init__(self, element: CodeFragment) -> None:
        self._element = element

    def read_variable(self, path: Path) -> CodeFragment | None:
        """Return the element for the empty path; it has no members."""
        return None if path else self._element


class FoldScope:
    """Scope of `reduce`: the element and the accumulator."""

    def __init__(self, current: CodeFragment, accumulator: CodeFragment) -> None:
        self._variables: dict[Path, CodeFragment] = {("current",): current, ("accumulator",): accumulator}

    def read_variable(self, path: Path) -> CodeFragment | None:
        """Return one of the two variables; they have no members."""
        if not path:
            raise NotLoweredError("both at once")
        return self._variables.get(path)


class ExpressionCompiler:
    """Compiler of expressions."""

    def __init__(self, context: CodegenContext) -> None:
        self._context = context

    def condition(self, logic: Any, scope: CodeScope) -> CodeFragment:
        """Compile a condition to code with the same truth value in Python; `{}` is true."""
        return (
            CodeFragment("True", ValueKind.BOOLEAN, literal=True) if logic == {} else self.truth(logic, scope)
        )

    def truth(self, logic: Any, scope: CodeScope) -> CodeFragment:
        """Compile an expression of which only the truth value matters."""
        name, operand = _split_operation(logic)
        if name in {"and", "or"}:
            return self._join(name, [self.truth(item, scope) for item in _require_list(operand)])
        if name == "!!":
            code = self.truth(_require_single(operand), scope)
            return replace(code, steps=code.steps + 1)
        if name in {"if", "?:"} and len(_require_list(operand)) == 3:  # noqa: PLR2004 - if, then, else
            return self._choice(*[self.truth(item, scope) for item in operand])
        return self.value(logic, scope)

    def value(self, logic: Any, scope: CodeScope) -> CodeFragment:
        """Compile an expression for its value."""
        if isinstance(logic, list):
            return self._array([self.value(item, scope) for item in logic])
        if not isinstance(logic, dict):
            return self._context.literal_code(logic)
        name, operand = _split_operation(logic)
        if name not in _OPERATORS:
            raise NotLoweredError(f"the operator '{name}'")
        return _OPERATORS[name](self, operand, scope)

    def _values(self, operand: Any, scope: CodeScope) -> list[CodeFragment]:
        return [self.value(item, scope) for item in _require_list(operand)]

    # --- data ---

    def var(self, operand: Any, scope: CodeScope) -> CodeFragment:
        path, *rest = operand if isinstance(operand, list) and operand else [operand]
        if not isinstance(path, str) or len(rest) > 1:
            raise NotLoweredError("a variable path")
        default = self.value(rest[0], scope) if rest else replace(_NOTHING, steps=0)
        if default.may_fail:
            raise NotLoweredError("a default that may fail")
        found = scope.read_variable(split_variable(path))
        if found is not None and found.absent and rest:
            if default.kind is not found.kind:
                raise NotLoweredError("a default of another kind")
            code = self._choice(replace(found, text=f"{found.text} is None", is_atom=False), default, found)
            return replace(code, may_be_null=default.may_be_null)
        return replace(default if found is None else found, steps=2 + default.steps)

    def _array(self, items: list[CodeFragment]) -> CodeFragment:
        kinds = {item.kind for item in items}
        if len(kinds) != 1 or any(item.may_be_null for item in items):
            raise NotLoweredError("an array of several kinds, or of nothing")
        kind = kinds.pop().array_kind
        return combine(
            f"[{', '.join(item.text for item in items)}]",
            kind,
            items,
            bound=max(item.bound for item in items),
            length=len(items),
            steps=sum(production_cost(item) for item in items),
        )

    # --- control ---

    def conditional(self, operand: Any, scope: CodeScope) -> CodeFragment:
        items = _require_list(operand)
        code = self.value(items[-1], scope) if len(items) % 2 else _NOTHING
        code = replace(code, steps=code.steps + 1)
        for at in range(len(items) - 2 - len(items) % 2, -1, -2):
            condition, value = self.truth(items[at], scope), self.value(items[at + 1], scope)
            kinds = {value.kind, code.kind}
            if len(kinds - {ValueKind.NULL}) > 1 or (
                len(kinds) > 1 and (value.kind.is_list or code.kind.is_list)
            ):
                raise NotLoweredError("an 'if' of several kinds")
            kind = code.kind if value.kind is ValueKind.NULL else value.kind
            code = replace(self._choice(condition, value, code), kind=kind)
        return code

    @staticmethod
    def _choice(condition: CodeFragment, yes: CodeFragment, no: CodeFragment) -> CodeFragment:
        return combine(
            f"{yes.operand} if {condition.operand} else {no.operand}",
            yes.kind,
            [condition, yes, no],
            bound=max(yes.bound, no.bound),
            length=max(yes.length, no.length),
            null=any(code.may_be_null or code.kind is ValueKind.NULL for code in (yes, no)),
        )

    def logical(self, name: str, operand: Any, scope: CodeScope) -> CodeFragment:
        items = self._values(operand, scope)
        if len({item.kind for item in items}) > 1:
            raise NotLoweredError("a logical value of several kinds")
        return self._join(name, items)

    @staticmethod
    def _join(name: str, items: list[CodeFragment]) -> CodeFragment:
        if len(items) == 1:
            return replace(items[0], steps=items[0].steps + 1)
        return combine(
            f" {name} ".join(item.operand for item in items),
            items[0].kind,
            items,
            bound=max(item.bound for item in items),
            length=max(item.length for item in items),
            null=any(item.may_be_null for item in items),
        )

    def negation(self, operand: Any, scope: CodeScope) -> CodeFragment:
        code = self.truth(_require_single(operand), scope)
        return combine(f"not {code.operand}", ValueKind.BOOLEAN, [code])

    def to_boolean(self, operand: Any, scope: CodeScope) -> CodeFragment:
        code = self.truth(_require_single(operand), scope)
        return combine(f"not not {code.operand}", ValueKind.BOOLEAN, [code])

    # --- comparison ---

    def comparison(self, symbol: str, operand: Any, scope: CodeScope) -> CodeFragment:
        """Compile a comparison: Python chains comparisons as JSONLogic does, up to the first failure."""
        items = _require_two_or_more(self._values(operand, scope))
        texts = sum(item.kind is ValueKind.TEXT for item in items)
        if texts and texts < len(items) and len(items) > 2:  # noqa: PLR2004
            raise NotLoweredError("a chain of texts and numbers")
        if texts < len(items):
            items = [_to_comparable(item) for item in items]
        elif any(item.may_be_null for item in items):
            raise NotLoweredError("a comparison of texts that may be null")
        return self._chain(symbol, items)

    def identity(self, symbol: str, operand: Any, scope: CodeScope) -> CodeFragment:
        items = _require_two_or_more(self._values(operand, scope))
        if len({item.kind for item in items} - {ValueKind.NULL}) > 1 or any(
            item.kind.is_list for item in items
        ):
            raise NotLoweredError("an identity of arrays, or of several kinds")
        return self._chain(symbol, items)

    @staticmethod
    def _chain(symbol: str, items: list[CodeFragment]) -> CodeFragment:
        text = f" {symbol} ".join(item.operand for item in items)
        return combine(text, ValueKind.BOOLEAN, items, steps=len(items))

    # --- arithmetic ---

    def total(self, operand: Any, scope: CodeScope) -> CodeFragment:
        items = self._arguments(operand, scope)
        if isinstance(operand, dict) and items[0].kind is ValueKind.NUMBERS:
            (numbers,) = items
            bound = numbers.length * numbers.bound
            return self._number(f"sum_of({numbers.text})", items, bound, steps=numbers.length, atom=True)
        terms = [_to_number(item) for item in items]
        if len(terms) == 1:
            return replace(terms[0], steps=terms[0].steps + 1)
        return self._number(" + ".join(term.operand for term in terms), terms, _sum_bounds(terms))

    def product(self, operand: Any, scope: CodeScope) -> CodeFragment:
        factors = self._numbers(operand, scope)
        bound = 1.0
        for factor in factors:
            bound *= factor.bound
        # Adding 0 turns -0 into 0.
        return self._number(" * ".join(f.operand for f in factors) + " + 0.0", factors, bound)

    def difference(self, operand: Any, scope: CodeScope) -> CodeFragment:
        terms = self._numbers(operand, scope)
        texts = [term.operand for term in terms]
        return self._number(
            " - ".join(texts if len(texts) > 1 else ["0.0", *texts]),
            terms,
            _sum_bounds(terms),
        )

    def quotient(self, operand: Any, scope: CodeScope) -> CodeFragment:
        first, *divisors = self._numbers(operand, scope)
        if not divisors:
            first, divisors = CodeFragment("1.0", ValueKind.NUMBER, bound=1.0, steps=0), [first]
        bound = first.bound
        for divisor in divisors:
            # Division by zero raises and so abandons the run.
            bound = bound / abs(_known_value(divisor)) if _known_value(divisor) else float("inf")
        items = [first, *divisors]
        return self._number(
            " / ".join(item.operand for item in items) + " + 0.0",
            items,
            bound,
            fails=bound == float("inf"),
        )

    def remainder(self, operand: Any, scope: CodeScope) -> CodeFragment:
        first, *divisors = _require_two_or_more(self._numbers(operand, scope))
        code = first
        for divisor in divisors:
            code = self._number(
                f"fmod({code.text}, {divisor.text}) + 0.0",
                [code, divisor],
                code.bound,
                fails=not _known_value(divisor),
            )
        return code

    def extreme(self, name: str, operand: Any, scope: CodeScope) -> CodeFragment:
        items = self._arguments(operand, scope)
        if isinstance(operand, dict) and items[0].kind is ValueKind.NUMBERS:
            (numbers,) = items  # Python's min and max also raise for an empty array
            return combine(
                f"{name}({numbers.text})",
                ValueKind.NUMBER,
                items,
                bound=numbers.bound,
                steps=numbers.length,
                fails=True,
                atom=True,
            )
        if any(item.kind is not ValueKind.NUMBER or item.may_be_null for item in items):
            raise NotLoweredError("an extreme of something else than numbers")
        if len(items) == 1:
            return replace(items[0], steps=items[0].steps + 1)
        bound = max(item.bound for item in items)
        is_simple = all(item.text.isidentifier() or item.literal is not None for item in items)
        if len(items) == 2 and is_simple:  # noqa: PLR2004 - far faster than a call, and no work done twice
            first, second = (item.text for item in items)
            sign = "<" if name == "min" else ">"
            return combine(
                f"{second} if {second} {sign} {first} else {first}",
                ValueKind.NUMBER,
                items,
                bound=bound,
            )
        text = f"{name}({', '.join(item.text for item in items)})"
        return combine(text, ValueKind.NUMBER, items, bound=bound, atom=True)

    def _arguments(self, operand: Any, scope: CodeScope) -> list[CodeFragment]:
        return [
            self.value(item, scope)
            for item in (operand if isinstance(operand, list) and operand else [operand])
        ]

    def _numbers(self, operand: Any, scope: CodeScope) -> list[CodeFragment]:
        return [_to_number(item) for item in self._arguments(operand, scope)]

    def limit(self, code: CodeFragment) -> CodeFragment:
        """Return a value within the limits of generated code."""
        return self._context.limit(code)

    def _number(
        self,
        text: str,
        items: list[CodeFragment],
        bound: float,
        *,
        steps: int = 0,
        fails: bool = False,
        atom: bool = False,
    ) -> CodeFragment:
        code = combine(text, ValueKind.NUMBER, items, bound=bound, steps=steps, fails=fails, atom=atom)
        return self._context.limit(code)

    # --- arrays ---

    def contains(self, operand: Any, scope: CodeScope) -> CodeFragment:
        needle, haystack = _require_two(self._values(operand, scope))
        is_item = haystack.kind.is_list and haystack.kind.item_kind is needle.kind
        is_part = haystack.kind is needle.kind is ValueKind.TEXT and not (
            haystack.may_be_null or needle.may_be_null
        )
        if not is_item and not is_part:
            raise NotLoweredError("'in' of several kinds")
        text = f"{needle.operand} in {haystack.operand}"
        return combine(text, ValueKind.BOOLEAN, [needle, haystack], steps=haystack.length)

    def merge(self, operand: Any, scope: CodeScope) -> CodeFragment:
        parts = [_require_not_null(self.value(item, scope)) for item in _require_list(operand)]
        kinds = {part.kind if part.kind.is_list else part.kind.array_kind for part in parts}
        if len(kinds) > 1:
            raise NotLoweredError("an array of several kinds")
        texts = [f"*{part.operand}" if part.kind.is_list else part.text for part in parts]
        items = [
            (part.length, part.kind.item_kind) if part.kind.is_list else (1, part.kind) for part in parts
        ]
        steps = [
            n * production_cost(replace(part, kind=kind))
            for part, (n, kind) in zip(parts, items, strict=True)
        ]
        return combine(
            f"[{', '.join(texts)}]",
            kinds.pop(),
            parts,
            bound=max(part.bound for part in parts),
            length=sum(length for length, _ in items),
            steps=sum(steps),
            atom=True,
        )

    def quantify(self, name: str, operand: Any, scope: CodeScope) -> CodeFragment:
        elements, logic, inner = self._compile_iterator(operand, scope)
        body = self.truth(logic, inner)
        truths = f"[{body.text} for {_ELEMENT} in {elements.operand}]"
        # `all` of an empty array is false.
        texts = {"all": f"all({truths} or [False])", "some": f"any({truths})", "none": f"not any({truths})"}
        return self._iteration(texts[name], ValueKind.BOOLEAN, elements, body)

    def filter_items(self, operand: Any, scope: CodeScope) -> CodeFragment:
        elements, logic, inner = self._compile_iterator(operand, scope)
        body = self.truth(logic, inner)
        text = f"[{_ELEMENT} for {_ELEMENT} in {elements.operand} if {body.operand}]"
        code = self._iteration(text, elements.kind, elements, body)
        return replace(code, bound=elements.bound, length=elements.length, is_atom=True)

    def map_items(self, operand: Any, scope: CodeScope) -> CodeFragment:
        elements, logic, inner = self._compile_iterator(operand, scope)
        body = _require_not_null(self.value(logic, inner))
        text = f"[{body.text} for {_ELEMENT} in {elements.operand}]"
        code = self._iteration(
            text,
            body.kind.array_kind,
            elements,
            replace(body, steps=body.steps + production_cost(body)),
        )
        return replace(code, bound=body.bound, length=elements.length, is_atom=True)

    def fold(self, operand: Any, scope: CodeScope) -> CodeFragment:
        elements, logic, _ = self._compile_iterator(_require_list(operand)[:2], scope)
        if len(operand) != 3:  # noqa: PLR2004 - a start is required
            raise NotLoweredError("a fold without a start")
        start = _require_not_null(self.value(operand[2], scope))
        total = CodeFragment(
            _TOTAL,
            start.kind,
            bound=MAX_TEXT_BYTES if start.kind is ValueKind.TEXT else MAX_NUMBER,
        )
        body = _require_not_null(self.value(logic, FoldScope(self._element(elements), total)))
        if body.kind is not start.kind or start.kind.is_list:
            raise NotLoweredError("a fold that changes its kind")
        text = f"reduce(lambda {_TOTAL}, {_ELEMENT}: {body.text}, {elements.text}, {start.text})"
        code = self._iteration(text, body.kind, elements, body)
        return replace(
            code,
            bound=max(start.bound, body.bound),
            steps=code.steps + start.steps,
            may_fail=code.may_fail or start.may_fail,
            is_atom=True,
        )

    def _compile_iterator(self, operand: Any, scope: CodeScope) -> tuple[CodeFragment, Any, CodeScope]:
        source, logic = _require_two(_require_list(operand))
        elements = self.value(source, scope)
        if not elements.kind.is_list:
            raise NotLoweredError("an iterator over something else than an array")
        return elements, logic, ElementScope(self._element(elements))

    @staticmethod
    def _element(elements: CodeFragment) -> CodeFragment:
        return CodeFragment(_ELEMENT, elements.kind.item_kind, bound=elements.bound)

    @staticmethod
    def _iteration(text: str, kind: ValueKind, elements: CodeFragment, body: CodeFragment) -> CodeFragment:
        steps = 1 + elements.steps + elements.length * (body.steps + 1)
        return CodeFragment(
            text,
            kind,
            steps=steps,
            may_fail=elements.may_fail or body.may_fail,
            is_atom=False,
        )


def _split_operation(logic: Any) -> tuple[str, Any]:
    """Return the operator and operand of an operation; the operator of a value is ""."""
    if not isinstance(logic, dict):
        return "", None
    if len(logic) != 1:
        raise NotLoweredError("an object that is not an operation")
    ((name, operand),) = logic.items()
    return name, operand


def _require_list(operand: Any) -> list[Any]:
    if not isinstance(operand, list) or not operand:
        raise NotLoweredError("an operand that is not a list")
    return operand


def _require_single(operand: Any) -> Any:
    items = operand if isinstance(operand, list) else [operand]
    if len(items) != 1:
        raise NotLoweredError("not one argument")
    return items[0]


def _require_two(items: list[Any]) -> tuple[Any, Any]:
    if len(items) != 2:  # noqa: PLR2004
        raise NotLoweredError("not two arguments")
    return items[0], items[1]


def _require_two_or_more(items: list[CodeFragment]) -> list[CodeFragment]:
    if len(items) < 2:  # noqa: PLR2004
        raise NotLoweredError("fewer than two arguments")
    return items


def _to_comparable(item: CodeFragment) -> CodeFragment:
    """Return code that Python compares as a number; booleans already are."""
    return item if item.kind is ValueKind.BOOLEAN and not item.may_be_null else _to_number(item)


def _to_number(item: CodeFragment) -> CodeFragment:
    """Return code of the value as a number; null is 0."""
    if item.kind in {ValueKind.NUMBER, ValueKind.BOOLEAN} and item.may_be_null:
        item = replace(item, text=f"{item.operand} or 0.0", may_be_null=False, is_atom=False)
    if item.kind is ValueKind.NUMBER:
        return item
    if item.kind is ValueKind.BOOLEAN and item.literal is None:
        return replace(item, text=f"{item.operand} + 0.0", kind=ValueKind.NUMBER, bound=1.0, is_atom=False)
    if item.kind.is_list:
        raise NotLoweredError("a value that is never a number")
    if item.kind is ValueKind.TEXT and item.literal is None:
        return replace(
            item,
            text=f"held(as_number({item.text}))",
            kind=ValueKind.NUMBER,
            bound=MAX_NUMBER,
            may_fail=True,
            may_be_null=False,
            is_atom=True,
        )
    try:
        number = to_number(item.literal)
    except EngineError:
        raise NotLoweredError("a text that is not a number") from None
    if abs(number) > MAX_NUMBER:
        raise NotLoweredError("a number that large")
    return replace(item, text=repr(number), kind=ValueKind.NUMBER, bound=abs(number), literal=number)


def _require_not_null(item: CodeFragment) -> CodeFragment:
    """Return code that is never null."""
    if item.may_be_null:
        raise NotLoweredError("a value that may be null")
    return item


def _known_value(divisor: CodeFragment) -> float:
    """Return the value of a divisor; 0 if unknown or 0."""
    return float(divisor.literal) if isinstance(divisor.literal, float) else 0.0


def _sum_bounds(terms: list[CodeFragment]) -> float:
    return sum(term.bound for term in terms)


_OPERATORS: dict[str, Callable[[ExpressionCompiler, Any, CodeScope], CodeFragment]] = {
    "var": ExpressionCompiler.var,
    "if": ExpressionCompiler.conditional,
    "?:": ExpressionCompiler.conditional,
    "and": lambda self, operand, scope: self.logical("and", operand, scope),
    "or": lambda self, operand, scope: self.logical("or", operand, scope),
    "!": ExpressionCompiler.negation,
    "!!": ExpressionCompiler.to_boolean,
    "==": lambda self, operand, scope: self.comparison("==", operand, scope),
    "!=": lambda self, operand, scope: self.comparison("!=", operand, scope),
    "===": lambda self, operand, scope: self.identity("==", operand, scope),
    "!==": lambda self, operand, scope: self.identity("!=", operand, scope),
    "<": lambda self, operand, scope: self.comparison("<", operand, scope),
    "<=": lambda self, operand, scope: self.comparison("<=", operand, scope),
    ">": lambda self, operand, scope: self.comparison(">", operand, scope),
    ">=": lambda self, operand, scope: self.comparison(">=", operand, scope),
    "+": ExpressionCompiler.total,
    "-": ExpressionCompiler.difference,
    "*": ExpressionCompiler.product,
    "/": ExpressionCompiler.quotient,
    "%": ExpressionCompiler.remainder,
    "min": lambda self, operand, scope: self.extreme("min", operand, scope),
    "max": lambda self, operand, scope: self.extreme("max", operand, scope),
    "map": ExpressionCompiler.map_items,
    "filter": ExpressionCompiler.filter_items,
    "reduce": ExpressionCompiler.fold,
    "all": lambda self, operand, scope: self.quantify("all", operand, scope),
    "some": lambda self, operand, scope: self.quantify("some", operand, scope),
    "none": lambda self, operand, scope: self.quantify("none", operand, scope),
    "merge": ExpressionCompiler.merge,
    "in": ExpressionCompiler.contains,
    **TEXT_OPERATORS,
}
