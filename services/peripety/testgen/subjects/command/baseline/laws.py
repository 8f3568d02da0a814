"""Laws of functions, as statements that must be true: they are a source that does not depend on the program.

- Inverse functions by their names, such as `encode` and `decode`: one undoes the other.
- Functions that normalize, by their names: a second call changes nothing.
- Functions that compare, by their names: the opposite order gives the opposite result.
- Annotated results: each result has the type.

A name is a weak sign, so a law of names is used only if it holds for most of the tried values.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from peripety.testgen.subjects.command.python_program import PythonCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.testgen.subjects.command.baseline.documentation import DocumentedCall
    from peripety.testgen.subjects.command.baseline.values import SourceValue
    from peripety.testgen.subjects.command.python_mutants import PythonModule


_INVERSES = (
    ("encode", "decode"), ("dumps", "loads"), ("dump", "load"), ("serialize", "deserialize"),
    ("format", "parse"), ("escape", "unescape"), ("quote", "unquote"), ("compress", "decompress"),
    ("encrypt", "decrypt"), ("pack", "unpack"), ("to", "from"),
)  # fmt: skip
_NORMALIZING = re.compile(r"normali[sz]e|clean|strip|canonical|slug|dedup|unique|trim|collapse|underscore")
_COMPARING = re.compile(r"(^|_)(compar\w*|cmp)($|_)")
_PAIR_PATTERN = re.compile(r"([a-z]+)2([a-z]+)")
_MAX_SAMPLES = 10
_MIN_SAMPLES = 3
_SHARE = 0.75
_SIMPLE_TYPES = {"str", "int", "float", "bool", "bytes", "list", "dict", "tuple", "set"}


@dataclass(frozen=True, slots=True)
class LawCall:
    """A law for one value.

    Attributes:
        law: the law, equal for all values.
        call: a statement that prints True.
        citation: the law as a sentence.
        is_sure: True if it does not depend on names.
    """

    law: str
    call: PythonCall
    citation: str
    is_sure: bool = False


@dataclass(frozen=True, slots=True)
class _Function:
    """A function of a module: its samples are the arguments of calls, as source text."""

    module: str
    node: ast.FunctionDef
    samples: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def required(self) -> int:
        """The number of required arguments."""
        arguments = self.node.args
        return len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)


def iterate_laws(
    modules: Mapping[str, PythonModule],
    documented: Iterable[DocumentedCall],
    values: Iterable[SourceValue],
) -> Iterator[LawCall]:
    """Yield the laws of functions, for the values of their documentation and of their sources.

    Args:
        modules: the measured files by their key.
        documented: the examples of the documentation.
        values: the values of the sources.
    """
    samples = _collect_samples(documented, values)
    for key, module in modules.items():
        name = module.name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        if name.endswith("__main__"):
            continue
        functions = {
            node.name: _Function(name, node, (*samples[node.name], *samples[key, node.lineno]))
            for node in ast.parse(module.text).body
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        }
        for function in functions.values():
            yield from _result_laws(function)
            yield from _name_laws(function, functions)


def holding_laws(results: Iterable[tuple[LawCall, bool]]) -> list[LawCall]:
    """Return the laws to test, of which those by name must hold for most values.

    Args:
        results: laws, each with True if it holds for its value.
    """
    by_law: dict[str, list[tuple[LawCall, bool]]] = defaultdict(list)
    for law, holds in results:
        by_law[law.law].append((law, holds))
    kept = []
    for group in by_law.values():
        held = sum(holds for _, holds in group)
        is_usual = len(group) >= _MIN_SAMPLES and held >= _SHARE * len(group)
        kept += [law for law, _ in group if law.is_sure or is_usual]
    return kept


def _collect_samples(
    documented: Iterable[DocumentedCall],
    values: Iterable[SourceValue],
) -> defaultdict[str | tuple[str, int], list[str]]:
    samples: defaultdict[str | tuple[str, int], list[str]] = defaultdict(list)
    for example in documented:
        tree = ast.parse(example.shown).body[0]
        match tree:
            case ast.Expr(
                value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *_])
            ):
                if not example.is_error and all(
                    isinstance(part, ast.Constant | ast.UnaryOp | ast.USub | ast.List | ast.Tuple | ast.Load)
                    for part in ast.walk(first)
                ):
                    samples[name].append(ast.unparse(first))
    for value in values:
        for place in value.functions:
            samples[place].append(value.text if value.is_number else repr(value.text))
    return samples


def _result_laws(function: _Function) -> Iterator[LawCall]:
    annotation = function.node.returns
    if not isinstance(annotation, ast.Name) or annotation.id not in _SIMPLE_TYPES or function.required > 1:
        return
    kind = annotation.id
    law = f"type: {function.module}.{function.name} returns {kind}"
    for sample in islice(dict.fromkeys(function.samples), 2):
        code = f"isinstance({function.name}({sample}), {kind})"
        yield LawCall(law, PythonCall(function.module, code), law, is_sure=False)


def _name_laws(function: _Function, functions: Mapping[str, _Function]) -> Iterator[LawCall]:
    name, samples = function.name, [*islice(dict.fromkeys(function.samples), _MAX_SAMPLES)]
    if function.required == 1 and _NORMALIZING.search(name):
        law = f"law: {name} changes nothing the second time"
        for sample in samples:
            code = f"{name}({name}({sample})) == {name}({sample})"
            yield LawCall(law, PythonCall(function.module, code), law)
    if function.required == 2 and _COMPARING.search(name):  # noqa: PLR2004 - the two that are compared
        law = f"law: {name} gives the opposite result in the opposite order"
        for one, other in pairwise(samples):
            code = f"{name}({one}, {other}) == -{name}({other}, {one})"
            yield LawCall(law, PythonCall(function.module, code), law)
    inverse = functions.get(_inverse_name(name, functions))
    if inverse is not None and function.required == 1 and inverse.required == 1:
        law = f"law: {inverse.name} reverses {name}"
        for sample in samples:
            code = f"{inverse.name}({name}({sample})) == {sample}"
            yield LawCall(law, PythonCall(function.module, code), law)


def _inverse_name(name: str, functions: Mapping[str, _Function]) -> str:
    pair = _PAIR_PATTERN.fullmatch(name)
    if pair is not None:
        return f"{pair[2]}2{pair[1]}"
    words = name.split("_")
    for one, other in _INVERSES:
        for here, there in ((one, other), (other, one)):
            candidate = "_".join(there if word == here else word for word in words)
            if here in words and candidate in functions:
                return candidate
    return ""
