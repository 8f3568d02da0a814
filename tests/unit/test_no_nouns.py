"""The engine is independent of any scenario: code, prompts, comments and tests contain no scenario nouns."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests" / "nouns.txt"
SCANNED = ("services", "simcore", "protos", "tests", "examples", "clients", ".ci", "Makefile", "compose.yaml")
NOT_OURS = {"target", "node_modules", "__pycache__"}
TEXTS_OF_USERS = {"agentdojo", "narrator_claims", "offline_reading", "plot_subjects", "tau2_retail"}
"""Folders of texts of users and narrators, and of benchmarks, which name what they like."""
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+")


def disallowed(text: str) -> re.Pattern[str]:
    lines = [line.strip() for line in text.splitlines() if not line.startswith("#")]
    return re.compile("|".join(f"(?:{line})" for line in lines if line), re.IGNORECASE)


def found(text: str, nouns: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield the index of a line and a word; the words of snake_case and camelCase names are words too."""
    for number, line in enumerate(text.splitlines()):
        for word in WORD.findall(line):
            if nouns.fullmatch(word) or nouns.fullmatch(word.removesuffix("s").removesuffix("S")):
                yield number, word


def files() -> Iterator[Path]:
    for name in SCANNED:
        top = ROOT / name
        candidates = sorted(top.rglob("*")) if top.is_dir() else [top]
        for path in candidates:
            if path.is_file() and path != LIST and not (NOT_OURS | TEXTS_OF_USERS).intersection(path.parts):
                yield path


def readable(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


@pytest.mark.slow(reason="reads the whole tree; make check runs it, too")
def test_no_noun_of_a_scenario_stands_in_the_tree() -> None:
    nouns = disallowed(LIST.read_text(encoding="utf-8"))
    hits = [
        f"{path.relative_to(ROOT)}:{number}: {word}"
        for path in files()
        for number, word in found(f"{path.name}\n{readable(path)}", nouns)
    ]
    assert not hits, "scenario nouns belong into user input and data files:\n" + "\n".join(hits)


@pytest.mark.parametrize("form", ["# a {}", "name_of_{}", "'{}s'", "the{}Name", "The {}.", '"{}": 1', "{}_1"])
def test_a_noun_is_found_wherever_it_hides(form: str) -> None:
    nouns = disallowed("# a comment\n\nglorp\n")
    ((number, word),) = found(f"first\n{form.format('Glorp')}", nouns)
    assert number == 1
    assert word.startswith("Glorp")


@pytest.mark.parametrize("line", ["glorpy", "reglorp", "glo rp", "# a comment"])
def test_a_longer_word_or_another_is_no_hit(line: str) -> None:
    assert not list(found(line, disallowed("# a comment\nglorp\n")))


def test_the_scan_reads_what_it_should() -> None:
    read = {path.relative_to(ROOT).parts[0] for path in files()}
    assert {"services", "tests", "protos", "Makefile"} <= read
    assert Path(__file__) in set(files())
