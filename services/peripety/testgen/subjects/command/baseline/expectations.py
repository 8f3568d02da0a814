"""Examples in the documentation of a Python program: doctests, and commands in a README.

An example is an expectation with a source, because its author has written down what the program must do.

Laws of functions, as statements that must be true: they are a source that does not depend on the program.

- Inverse functions by their names, such as `encode` and `decode`: one undoes the other.
- Functions that normalize, by their names: a second call changes nothing.
- Functions that compare, by their names: the opposite order gives the opposite result.
- Annotated results: each result has the type.

A name is a weak sign, so a law of names is used only if it holds for most of the tried values.
"""

from __future__ import annotations

import ast
import doctest
import re
import shlex
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from peripety.testgen.subjects.command.python_program import PythonCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.testgen.subjects.command.baseline.values import SourceValue
    from peripety.testgen.subjects.command.python_mutants import PythonModule


_MAX_CITED = 200
_MAX_EXPECTED = 2_000
_SKIPPING = (doctest.SKIP, doctest.ELLIPSIS, doctest.NORMALIZE_WHITESPACE)
# Addresses, and results that are not written down in full.
_VOLATILE_PATTERN = re.compile(r" at 0x[0-9a-fA-F]+|\.\.\.")
_FENCE_PATTERN = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)
_PROMPT_PATTERN = re.compile(r"^\s*[$%] +(\S.*)$")
_RESULT_PATTERN = re.compile(
    r"#\s*(?:(?:outputs?|results?|returns?|prints):|[=-]+>|\N{RIGHTWARDS ARROW})(.+)", re.IGNORECASE
)
_ERROR_PATTERN = re.compile(r"(?:[\w]+\.)*(\w+)(: .*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DocumentedCall:
    """An example of a function.

    Attributes:
        function: the name of the function, or of the file.
        call: the statements, with those before them that they depend on.
        shown: the statement that is shown.
        expected: the printed result.
        citation: the place and the text of the example.
        is_error: True if the example raises an exception.
        whole: the statements, with all those before them; None if these are the same.
        is_incomplete: True if the statements leave out one before them whose effect is not known.
    """

    function: str
    call: PythonCall
    shown: str
    expected: str
    citation: str
    is_error: bool = False
    whole: PythonCall | None = None
    is_incomplete: bool = False


@dataclass(frozen=True, slots=True)
class DocumentedCommand:
    """A command in a README.

    Attributes:
        arguments: the arguments after the name of the program.
        expected: the documented output; None if none is shown.
        citation: the place and the text of the example.
    """

    arguments: tuple[str, ...]
    expected: str | None
    citation: str


_Documented: TypeAlias = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def dotted_name(module: PythonModule) -> str:
    """Return the name that a measured file is imported by."""
    return module.name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def iterate_documented_calls(modules: Mapping[str, PythonModule]) -> Iterator[DocumentedCall]:
    """Yield the examples of docstrings that print a complete result.

    Args:
        modules: the measured files by their key.
    """
    for module in modules.values():
        name = dotted_name(module)
        if name.endswith("__main__"):
            continue
        for node, owner in _iterate_documented(ast.parse(module.text), ""):
            text = ast.get_docstring(node, clean=False)
            is_private = re.search(r"(^|\.)_[^_]", owner) is not None
            if text and not is_private:
                start = node.body[0].lineno
                yield from _iterate_examples(text, name, owner, f"{module.name}, line", start)


def iterate_readme_calls(text: str, module: str) -> Iterator[DocumentedCall]:
    """Yield the examples of Python in a README.

    Args:
        text: the README.
        module: the package that it is about.
    """
    yield from _iterate_examples(text, module, module, "README, line", 1)


def _iterate_documented(tree: _Documented, owner: str) -> Iterator[tuple[_Documented, str]]:
    """Yield the nodes with a docstring, with their dotted names."""
    yield tree, owner
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _iterate_documented(node, f"{owner}.{node.name}".strip("."))


def _iterate_examples(text: str, module: str, owner: str, place: str, start: int) -> Iterator[DocumentedCall]:
    try:
        # A code block of Markdown ends where the output ends.
        examples = doctest.DocTestParser().get_examples(_FENCE_PATTERN.sub("", text))
    except ValueError:
        return
    setup: list[str] = []
    before: list[str] = []
    is_incomplete = False
    for example in examples:
        source = example.source.strip()
        tree = _parse(source)
        if tree is None:
            continue
        wanted = example.want if example.exc_msg else _documented_result(example)
        if not wanted:
            if not isinstance(tree.body[0], ast.Expr):
                setup.append(source)
                before.append(source)
            else:
                silent = _silent_source(tree)
                before += [silent] if silent else []
                is_incomplete = True
            continue
        expected = _error_text(example.exc_msg) if example.exc_msg else wanted
        is_usable = not (
            any(example.options.get(option) for option in _SKIPPING)
            or _VOLATILE_PATTERN.search(expected)
            or len(expected) > _MAX_EXPECTED
            or len(tree.body) > 1
        )
        if is_usable:
            line = start + example.lineno
            cited = f"{place} {line}: >>> {source} {expected}"[:_MAX_CITED]
            short, whole = (
                PythonCall(module, "\n".join([*_import_once(one), source])) for one in (setup, before)
            )
            yield DocumentedCall(
                owner,
                short,
                source,
                expected,
                cited,
                bool(example.exc_msg),
                None if whole == short else whole,
                is_incomplete,
            )
        silent = "" if example.exc_msg else _silent_source(tree)
        before += [silent] if silent else []


def _import_once(statements: Iterable[str]) -> Iterator[str]:
    seen = set()
    for statement in statements:
        if statement not in seen or not statement.startswith(("import ", "from ")):
            yield statement
        seen.add(statement)


def _silent_source(tree: ast.Module) -> str:
    """Return a call as a statement that shows no value; empty for another expression, or one that prints."""
    match tree.body:
        case [ast.Expr(ast.Call(func) as call)] if not (isinstance(func, ast.Name) and func.id == "print"):
            return f"_ = {ast.unparse(call)}"
        case _:
            return ""


def _documented_result(example: doctest.Example) -> str:
    """Return the result of an example; a comment is one if it is marked, as in `# Output: 1` or `# => 1`."""
    lines = example.want.rstrip("\n").split("\n")
    if not example.want:
        lines = [line for line in example.source.rstrip().split("\n")[-1:] if _RESULT_PATTERN.search(line)]
    elif not all(line.startswith("#") for line in lines):
        return example.want.rstrip("\n")
    found = _RESULT_PATTERN.search(lines[0]) if lines else None
    is_in_text = found is not None and found[0] in ast.unparse(ast.parse(example.source))
    if found is None or is_in_text:
        return ""
    return "\n".join([found[1].strip(), *(line.lstrip("# ") for line in lines[1:])])


def _parse(source: str) -> ast.Module | None:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return tree if tree.body else None


def _error_text(message: str) -> str:
    """Return the text of an exception without the module of its class."""
    found = _ERROR_PATTERN.fullmatch(message.strip())
    return message.strip() if found is None else f"{found[1]}{found[2] or ''}".removesuffix(": ").strip()


def iterate_documented_commands(text: str, names: Iterable[str]) -> Iterator[DocumentedCommand]:
    """Yield the commands in a README with the output that follows them.

    Args:
        text: the README.
        names: the names that the program is called by.
    """
    lines = text.splitlines()
    known = {*names}
    for number, line in enumerate(lines):
        found = _PROMPT_PATTERN.match(line)
        if found is None or any(sign in found[1] for sign in "|<>;&`$"):
            continue
        try:
            words = shlex.split(found[1], comments=True)
        except ValueError:
            continue
        while words and words[0] in {"python", "python3", "-m", "sudo"}:
            del words[0]
        if not words or words[0].rpartition("/")[2] not in known:
            continue
        indent = line[: len(line) - len(line.lstrip())]
        output = _following_output(lines[number + 1 :], indent)
        shown = " ".join([found[1], *output])[:_MAX_CITED]
        expected = "\n".join(output) if output and not _VOLATILE_PATTERN.search("\n".join(output)) else None
        yield DocumentedCommand(tuple(words[1:]), expected, f"README, line {number + 1}: $ {shown}")


def _following_output(lines: list[str], indent: str) -> list[str]:
    output: list[str] = []
    for line in lines:
        is_end = (
            not line.strip() or line.strip().startswith(("```", "$", "%", "#")) or not line.startswith(indent)
        )
        if is_end:
            break
        output.append(line.removeprefix(indent).rstrip())
    return output


_INVERSES = (
    ("encode", "decode"), ("dumps", "loads"), ("dump", "load"), ("serialize", "deserialize"),
    ("format", "parse"), ("escape", "unescape"), ("quote", "unquote"), ("compress", "decompress"),
    ("encrypt", "decrypt"), ("pack", "unpack"), ("to", "from"),
)  # fmt: skip
_NORMALIZING = re.compile(
    r"normali[sz]e|clean|strip|canonical|slug|dedup|unique|trim|collapse|underscore|(^|_)sort(ed)?($|_)"
)
_COMPARING = re.compile(r"(^|_)(compar\w*|cmp)($|_)")
_SYMMETRIC = re.compile(r"(^|_)(distance|similarity|gcd|lcm|union|intersect\w*|overlaps?)($|_)")
_PAIR_PATTERN = re.compile(r"([a-z]+)2([a-z]+)")
_MAX_SAMPLES = 10
_MAX_TYPED = 2
_MIN_SAMPLES = 3
_SHARE = 0.75
_SIMPLE_TYPES = {"str", "int", "float", "bool", "bytes", "list", "dict", "tuple", "set"}


@dataclass(frozen=True, slots=True)
class Law:
    """A law of a function.

    Attributes:
        text: the law as a sentence, equal for all values.
        module: the module of the function.
        function: the function whose arguments are the values.
        code: an expression that is true, with `{0}` and `{1}` in place of the values.
        arity: the number of values.
        is_sure: True if it does not depend on names.
    """

    text: str
    module: str
    function: str
    code: str
    arity: int = 1
    is_sure: bool = False

    def apply(self, *values: str) -> LawCall:
        """Return the law for values, as source text."""
        return self.of_code(self.code.format(*values))

    def of_code(self, code: str) -> LawCall:
        """Return the law for the values in a statement."""
        return LawCall(self.text, PythonCall(self.module, code), self.text, self.is_sure)


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
        functions = _functions_of(module, samples, key)
        for function in functions.values():
            values_of = {one.name: [*dict.fromkeys(one.samples)] for one in functions.values()}
            for law in _laws_of(function, functions):
                some = values_of[law.function][: _MAX_TYPED if law.is_sure else _MAX_SAMPLES]
                yield from (law.apply(*row) for row in (pairwise(some) if law.arity > 1 else zip(some)))


def laws_of_function(module: PythonModule, name: str) -> list[Law]:
    """Return the laws of a function, and of its inverse function.

    Args:
        module: its file.
        name: its name.
    """
    functions = _functions_of(module, defaultdict(list), "")
    found = (law for function in functions.values() for law in _laws_of(function, functions))
    return [law for law in found if re.search(rf"\b{re.escape(name)}\(", law.code)]


def _functions_of(
    module: PythonModule,
    samples: Mapping[str | tuple[str, int], list[str]],
    key: str,
) -> dict[str, _Function]:
    """Return the public functions of a file by name; none for the file that starts a package."""
    name = dotted_name(module)
    if name.endswith("__main__"):
        return {}
    return {
        node.name: _Function(name, node, (*samples[node.name], *samples[key, node.lineno]))
        for node in ast.parse(module.text).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }


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


def _laws_of(function: _Function, functions: Mapping[str, _Function]) -> Iterator[Law]:
    name = function.name
    returned = function.node.returns
    kinds = [] if returned is None else _kinds_of(returned)
    if returned is not None and kinds and function.required <= 1:
        text = (
            f"type: {function.module}.{name} returns {ast.unparse(function.node.returns or ast.Constant(0))}"
        )
        shown = kinds[0] if len(kinds) == 1 else f"({', '.join(kinds)})"
        yield Law(text, function.module, name, f"isinstance({name}({{0}}), {shown})", is_sure=True)
    if function.required == 1 and _NORMALIZING.search(name):
        text = f"law: {name} changes nothing the second time"
        yield Law(text, function.module, name, f"{name}({name}({{0}})) == {name}({{0}})")
    if function.required == 2:  # noqa: PLR2004 - the two that are compared
        for pattern, sign, adjective in ((_COMPARING, "-", "opposite"), (_SYMMETRIC, "", "same")):
            if pattern.search(name):
                text = f"law: {name} gives the {adjective} result in the opposite order"
                code = f"{name}({{0}}, {{1}}) == {sign}{name}({{1}}, {{0}})"
                yield Law(text, function.module, name, code, arity=2)
    inverse = functions.get(_inverse_name(name, functions))
    if inverse is not None and function.required == 1 and inverse.required == 1:
        text = f"law: {inverse.name} reverses {name}"
        yield Law(text, function.module, name, f"{inverse.name}({name}({{0}})) == {{0}}")


def _kinds_of(annotation: ast.expr) -> list[str]:
    """Return the classes of an annotation; none if a part of it is not a class of the builtins."""
    match annotation:
        case ast.Name(id="float"):
            return ["float", "int"]  # as in type checkers
        case ast.Name(id=name) if name in _SIMPLE_TYPES:
            return [name]
        case ast.Constant(value=None):
            return ["type(None)"]
        case ast.Subscript(value=ast.Name(id=name)) if name in _SIMPLE_TYPES:
            return [name]
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            one, other = _kinds_of(left), _kinds_of(right)
            return [*one, *other] if one and other else []
    return []


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
