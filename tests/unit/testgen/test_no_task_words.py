"""The generator is independent of its benchmark: its prompts and searches name no part of a task."""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from support.repo.repository import ROOT
from support.testgen.graded_tests.commands import PROGRAMS
from support.testgen.graded_tests.policies import WHOLE
from support.testgen.graded_tests.scenarios import DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGES = tuple(ROOT / "services" / "peripety" / name for name in ("testgen", "author/test_author"))
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]+")
LONG = 4

# Ordinary words of tests, tools, programs and gRPC that tasks use too.
ORDINARY = frozenset(
    {
        "after", "count", "exhausted", "hidden", "list", "main", "mode", "next", "options", "parse", "path",
        "paths", "private", "read", "send", "size", "total", "write",
    },
)  # fmt: skip


def said(path: Path) -> Iterator[str]:
    """The texts of a file: of a program its strings, without what documents it."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield text
        return
    tree = ast.parse(text)
    documents = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield node.value


def files() -> list[Path]:
    return [
        path
        for package in PACKAGES
        for path in sorted(package.rglob("*"))
        if path.suffix in {".py", ".md", ".toml"}
    ]


def found(text: str, words: frozenset[str]) -> set[str]:
    """The words of a task that a text has, in any case, alone or as a part of a name."""
    whole = {word.lower() for word in WORD.findall(text)}
    return (whole | {part for word in whole for part in word.split("_")}) & words


def words_of_programs() -> Iterator[str]:
    for path in PROGRAMS.glob("*.py.txt"):
        yield path.name.partition(".")[0]
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield node.name
                yield from (part for part in node.name.split("_") if len(part) >= LONG)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.istitle():
                yield node.value


def words_of_scenarios() -> Iterator[str]:
    for document in DOCUMENTS.values():
        spec = json.loads(document())
        yield spec["id"]
        yield from spec["state"]
        for section in ("actions", "random_events", "loss_conditions", "win_conditions"):
            yield from (rule["id"] for rule in spec.get(section) or ())


def words_of_policies() -> Iterator[str]:
    for whole in WHOLE.values():
        spec: dict[str, Any] = whole().spec
        for tool in spec["tools"]:
            yield tool["server_name"]
            yield tool["tool_name"]
            yield from tool["input_schema"]["properties"]
        yield from (rule["id"] for rule in spec["rules"])


@pytest.fixture(scope="module")
def words() -> frozenset[str]:
    of_tasks = (*words_of_programs(), *words_of_scenarios(), *words_of_policies())
    named = {word.lower() for text in of_tasks for word in WORD.findall(text)}
    return frozenset(word for word in named - ORDINARY if len(word) >= LONG)


def test_no_word_of_a_task_stands_in_the_generator(words: frozenset[str]) -> None:
    hits = [
        f"{path.relative_to(ROOT)}: {', '.join(sorted(hit))}"
        for path in files()
        if (hit := set[str]().union(*(found(text, words) for text in said(path))))
    ]
    assert not hits, "tell the generator of no task:\n" + "\n".join(hits)


def test_each_task_has_words_of_its_own(words: frozenset[str]) -> None:
    assert {"read_span", "numeral", "weekday", "gather", "windfall", "act_1", "copy_to"} <= words


@pytest.mark.parametrize("form", ["Try {} twice.", "{}_of_it", '{{"{}": 1}}', "{}"])
@pytest.mark.parametrize("word", ["weekday", "Windfall", "numeral"])
def test_a_word_is_found_wherever_it_hides(words: frozenset[str], form: str, word: str) -> None:
    assert found(form.format(word), words) == {word.lower()}
    assert not found(form.format("something"), words)


def test_strings_are_read_and_documentation_is_not(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text('"""Says one."""\nX = "two"\n\n\ndef f():\n    """Three."""\n    return f"four {X}"\n')
    assert [*said(path)] == ["two", "four "]


def test_the_scan_reads_what_models_are_told() -> None:
    names = {path.relative_to(ROOT / "services" / "peripety").as_posix() for path in files()}
    assert {"testgen/prompts/system.md", "testgen/types.py", "testgen/prompts/user_messages.py"} <= names
