"""Commands of the README for new users exist."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest

from support.repo.repository import ROOT, command_exists

README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands() -> list[list[str]]:
    """Each line of a shell block, without its comment and its assignments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    return [without_assignments(shlex.split(line, comments=True)) for line in lines]


def without_assignments(words: list[str]) -> list[str]:
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    return words


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_the_readme_shows_the_two_commands() -> None:
    assert ["make", "play"] in commands()
    assert ["make", "test"] in commands()


@pytest.mark.slow_after(4, reason="starts a process for each command")
@pytest.mark.parametrize("words", commands(), ids=shlex.join)
def test_the_command_exists(words: list[str]) -> None:
    program, *rest = words
    if program == "make":
        assert {word for word in rest if "=" not in word} <= make_targets()
    elif program.endswith("peripety"):
        assert command_exists(["peripety", *rest[: rest.index("|") if "|" in rest else None]])
    else:
        assert program in {"git", "cd", "docker", "bash"}


def test_every_link_into_the_repository_leads_somewhere() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert targets
    assert not [target for target in targets if not (ROOT / target).exists()]


def test_the_map_of_the_native_core_shows_all_of_its_files_and_no_others() -> None:
    readme = (ROOT / "simcore" / "README.md").read_text(encoding="utf-8")
    engine = re.search(r"^crates/simcore/ (.*?)^crates/simcore-py/", readme, re.MULTILINE | re.DOTALL)
    assert engine is not None
    named = set(re.findall(r"\b\w+(?:\.rs|/(?= |,|$))", engine[1], re.MULTILINE))
    source = ROOT / "simcore" / "crates" / "simcore" / "src"
    assert named == {path.name + "/" * path.is_dir() for path in source.iterdir()} - {"lib.rs"}


def test_scripts_named_in_the_readme_parse() -> None:
    for words in commands():
        if words[0] == "bash":
            subprocess.run(["bash", "-n", words[1]], cwd=ROOT, check=True)
