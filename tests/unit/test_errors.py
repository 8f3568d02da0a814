"""Error classes: complete, documented, and checked kind by kind.

Catalogue of findings: every possible finding has an entry with a remedy.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from typing import TYPE_CHECKING, get_args

import pytest

from peripety import errors
from peripety.engine import ProofCode
from peripety.errors import (
    ErrorKind,
    FieldViolation,
    Finding,
    InvalidArgumentError,
    PeripetyError,
    Severity,
    SpecError,
    get_remedy,
    load_catalog,
)
from peripety.scenario.generation.model_client import _TOO_LARGE_CODES
from support.repo.repository import ALL_ERRORS, ROOT, example

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize("kind", ErrorKind)
def test_every_kind_has_a_class_that_is_the_first_of_its_kind(kind: ErrorKind) -> None:
    direct = [c for c in PeripetyError.__subclasses__() if c.kind is kind]
    assert len(direct) == 1


@pytest.mark.parametrize("error", ALL_ERRORS)
def test_every_class_is_exported_and_drawn_in_the_docstring(error: type[PeripetyError]) -> None:
    assert error.__name__ in errors.__all__
    assert f"{error.__name__} " in (errors.__doc__ or "")


@pytest.mark.parametrize("error", ALL_ERRORS)
def test_a_class_brings_its_own_code_unless_one_is_given(error: type[PeripetyError]) -> None:
    assert example(error, code=None).code == error.default_code
    assert example(error, code="OTHER").code == "OTHER"


def test_the_text_of_an_error_is_its_message_alone() -> None:
    error = InvalidArgumentError("a is required", details={"key": "value"})
    assert str(error) == "a is required"


def test_a_spec_error_shows_each_finding_as_a_violation_and_keeps_the_findings() -> None:
    findings = [Finding("A", "/b/0", "must be smaller"), Finding("C", "", "is empty", Severity.WARNING)]
    error = SpecError("refused", findings)
    assert [(v.field, v.reason) for v in error.violations] == [
        ("/b/0", "A: must be smaller"),
        ("/", "C: is empty"),
    ]
    assert error.findings == tuple(findings)
    assert isinstance(error, InvalidArgumentError)


@pytest.mark.parametrize(
    ("path", "field"),
    [(".seats[0].seat_id", "seats[0].seat_id"), ("seed", "seed"), ("/a/0", "/a/0"), ("", "")],
)
def test_a_field_path_never_has_a_leading_dot(path: str, field: str) -> None:
    assert FieldViolation(path, "is required").field == field


SOURCES = (ROOT / "services" / "peripety", ROOT / "simcore" / "python" / "peripety")
CODE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")
LONGEST_FIX = 200

# Codes for refused calls and unreadable requests; they do not describe a document.
REFUSALS = {
    "BAD_DOMAIN",
    "BAD_EMAIL",
    "BAD_VALUE",
    "CHANGE_INVALID",
    "ILLEGAL_PARAM",
    "OUT_OF_SCOPE",
    "PRECONDITION_FAILED",
    "REQUEST_INVALID",
    "ROLL_INVALID",
    "RUN_ENDED",
    "SNAPSHOT_INVALID",
    "SPEC_INVALID",
    "UNKNOWN_ACTION",
}
PAGE = ROOT / "docs/reference/findings.md"
KINDS = {code: kind for kinds in load_catalog().values() for code, kind in kinds.items()}


def test_no_code_has_two_entries() -> None:
    assert len(KINDS) == sum(len(kinds) for kinds in load_catalog().values())


@pytest.mark.slow(reason="reads the syntax tree of every module")
def test_whatever_the_sources_find_is_in_the_catalogue() -> None:
    missing = {f"{code} ({place})" for code, place in raised() if code not in KINDS.keys() | REFUSALS}
    assert not missing


@pytest.mark.slow(reason="reads the syntax tree of every module")
def test_the_catalogue_has_nothing_that_nobody_finds() -> None:
    assert KINDS.keys() <= {code for code, _ in raised()}


@pytest.mark.parametrize("code", sorted(KINDS))
def test_an_entry_says_in_whole_short_sentences_what_is_wrong_and_what_to_do(code: str) -> None:
    kind = KINDS[code]
    assert kind.means.endswith(".")
    assert kind.why.endswith(".")
    assert kind.fix.endswith(".")
    assert kind.means != kind.fix
    assert len(kind.fix) <= LONGEST_FIX


def test_the_page_explains_every_finding() -> None:
    headings = re.findall(r"^### `(\w+)`$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert headings == list(KINDS)


@pytest.mark.slow(reason="make check-generated runs it, too")
def test_the_page_is_up_to_date() -> None:
    subprocess.run([sys.executable, ROOT / "docs/generate_reference.py", "--check"], check=True)


def test_an_unknown_code_has_no_remedy() -> None:
    assert get_remedy("NEVER_HEARD_OF") == ""
    assert Finding("NEVER_HEARD_OF", "", "a").remedy == ""


def test_a_call_that_fails_because_of_a_document_names_the_way_out_of_each_finding() -> None:
    error = SpecError("refused", [Finding("DUPLICATE_ID", "/actions/1/id", "the id 'a' is taken.")])
    (violation,) = error.violations
    assert violation.field == "/actions/1/id"
    fix = KINDS["DUPLICATE_ID"].fix
    assert violation.reason == f"DUPLICATE_ID: the id 'a' is taken; fix: {fix}"


def raised() -> Iterator[tuple[str, str]]:
    """Yield every finding code in the sources, with its file."""
    yield from ((code, "engine/types.py") for code in get_args(ProofCode))
    yield from ((code, "scenario/generation/model_client.py") for code in _TOO_LARGE_CODES)
    for source, path in sorted((root, path) for root in SOURCES for path in root.rglob("*.py")):
        if path.is_relative_to(source / "api"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(
            isinstance(node, ast.Name) and node.id in {"Finding", "EngineError"} for node in ast.walk(tree)
        ):
            yield from ((code, f"{path.relative_to(source)}") for code in codes_in(tree))


def codes_in(tree: ast.Module) -> Iterator[str]:
    """The codes that a module gives to findings, directly, through functions of its own, or in tuples."""
    makers = {"Finding", "EngineError"}
    makers |= {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any(arg.arg == "code" for arg in node.args.args)
    }
    # Rows of a table of codes.
    makers |= {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and field.target.id.endswith("_code")
    }
    constants = dict(constants_in(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args, keywords=keywords):
                if name in makers:
                    yield from texts([*args, *(word.value for word in keywords if word.arg == "code")])
                    yield from texts(
                        [
                            constants[arg.id]
                            for arg in args
                            if isinstance(arg, ast.Name) and arg.id in constants
                        ]
                    )
            case ast.Return(value=ast.Tuple(elts=[first, *_])):
                yield from texts([first])


def constants_in(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """The constants of a module by name."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                yield from (
                    (one.id, value)
                    for one, value in zip(names, values, strict=False)
                    if isinstance(one, ast.Name)
                )


def texts(expressions: list[ast.expr]) -> Iterator[str]:
    """Those that are codes."""
    for expression in expressions:
        match expression:
            case ast.Constant(value=str(text)) if CODE.fullmatch(text):
                yield text
            case ast.IfExp(body=one, orelse=other):
                yield from texts([one, other])
