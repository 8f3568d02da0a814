"""Mutation operators for Python syntax trees.

They are the standard operators of the field (A. J. Offutt et al., "An Experimental Determination of
Sufficient Mutant Operators", 1996), adapted to Python.
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Changed", "changes_of"]

Changed: TypeAlias = "Iterator[tuple[str, ast.AST]]"
"""Replacement nodes, each with the stable name of its operator."""

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}


def changes_of(node: ast.AST) -> Changed:
    """Yield the replacements of a node in a stable order; none for most nodes."""
    for kind, change in _OPERATORS:
        if isinstance(node, kind):
            yield from change(node)


def _compare(node: Any) -> Changed:
    for index, comparison in enumerate(node.ops):
        for other in _COMPARISONS[type(comparison)]:
            yield "change_comparison", _with(node, ops=[*node.ops[:index], other(), *node.ops[index + 1 :]])


def _arithmetic(node: Any) -> Changed:
    other = _ARITHMETIC.get(type(node.op))
    if other is not None:
        yield "change_arithmetic", _with(node, op=other())


def _boolean(node: Any) -> Changed:
    yield "swap_and_or", _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    for index in range(len(node.values)):
        rest = [*node.values[:index], *node.values[index + 1 :]]
        yield "drop_operand", rest[0] if len(rest) == 1 else _with(node, values=rest)


def _sign(node: Any) -> Changed:
    if isinstance(node.op, ast.Not | ast.USub):
        yield "drop_sign", node.operand


def _constant(node: Any) -> Changed:
    match node.value:
        case bool():
            yield "flip_boolean", _with(node, value=not node.value)
        case int() | float():
            yield "shift_number", _with(node, value=node.value + 1)
            yield "shift_number", _with(node, value=node.value - 1)
        case str():
            yield "change_text", _with(node, value="" if node.value else "x")
        case bytes():
            yield "change_text", _with(node, value=b"" if node.value else b"x")


def _condition(node: Any) -> Changed:
    yield "negate_condition", _with(node, test=ast.UnaryOp(ast.Not(), node.test))


def _result(node: Any) -> Changed:
    if node.value is not None:
        yield "drop_result", _with(node, value=ast.Constant(None))


def _jump(node: Any) -> Changed:
    other = ast.Continue() if isinstance(node, ast.Break) else ast.Break()
    yield "swap_jump", ast.copy_location(other, node)


def _filter(node: Any) -> Changed:
    if node.ifs:
        yield "drop_filter", _with(node, ifs=[])


def _bound(node: Any) -> Changed:
    for name in ("lower", "upper", "step"):
        if getattr(node, name) is not None:
            yield "drop_bound", _with(node, **{name: None})


def _statement(node: Any) -> Changed:
    yield "drop_statement", ast.copy_location(ast.Pass(), node)


_OPERATORS: tuple[tuple[Any, Callable[[Any], Changed]], ...] = (
    (ast.Compare, _compare),
    (ast.BinOp | ast.AugAssign, _arithmetic),
    (ast.BoolOp, _boolean),
    (ast.UnaryOp, _sign),
    (ast.Constant, _constant),
    (ast.If | ast.While | ast.IfExp, _condition),
    (ast.Return, _result),
    (ast.Break | ast.Continue, _jump),
    (ast.comprehension, _filter),
    (ast.Slice, _bound),
    (ast.Expr | ast.AugAssign | ast.Raise | ast.Assert, _statement),
)


def _with(node: Any, **fields: Any) -> Any:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed
