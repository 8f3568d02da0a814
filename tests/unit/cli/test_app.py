"""The commands, up to the services: what they take, print and return."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from peripety import engine
from peripety.cli import app as cli_app
from peripety.cli.app import COMMANDS, CommandEntry, app, load_command
from peripety.cli.output import explain_error
from peripety.errors import (
    FieldViolation,
    Finding,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    SpecError,
)
from peripety.llmsim.script.sources import ScriptError, ScriptProblem
from peripety.server.app import SERVICES
from peripety.version import __version__
from support.engine.specs import document, spec
from support.repo.repository import every_option

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def run(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin)


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "good.json"
    path.write_bytes(document())
    return str(path)


@pytest.fixture
def bad(tmp_path: Path) -> str:
    path = tmp_path / "bad.json"
    path.write_bytes(document(seed="seven"))
    return str(path)


def test_help_names_every_command() -> None:
    listing = run("--help")
    assert listing.exit_code == 0
    assert all(name in listing.stdout for name in ("play", "serve", "generate", "validate", "dry-run"))


@pytest.mark.parametrize(("name", "entry"), COMMANDS.items())
def test_the_list_shows_the_first_line_of_the_help_of_a_command(name: str, entry: CommandEntry) -> None:
    help_text = load_command(name).help
    assert help_text is not None
    assert help_text.split("\n\n")[0].split(". ")[0].rstrip(".") + "." == entry.summary
    assert f"  {entry.summary}\n" in run("--help").stdout


def test_commands_are_listed_under_headings_and_none_is_cut_off() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "peripety", "--help"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "60"},
    )
    lines = said.stdout.splitlines()
    places = [
        lines.index(heading) for heading in ("Play:", "Write and measure scenarios:", "Use language models:")
    ]
    assert places == sorted(places)
    assert max(map(len, lines)) <= 60
    shown = " ".join(said.stdout.split())
    assert all(f"{name} {entry.summary}" in shown for name, entry in COMMANDS.items())


def test_completion_can_be_installed() -> None:
    assert "--install-completion" in run("--help").stdout


@pytest.mark.parametrize(
    ("arguments", "error", "command"),
    [
        (["play", "--foo"], "error: no such option: --foo", "play"),
        (["play", "--seed", "-1"], "error: --seed must be at least 0", "play"),
        (["dry-run", "x", "--runs", "many"], "error: --runs must be a whole number", "dry-run"),
        (["models", "--provider", "x"], "error: --provider: unknown provider x; use one of", "models"),
        (["sessions", "rewind", "latest", "x"], "error: TURN must be a whole number", "sessions rewind"),
        (["sessions", "list", "--server", "host"], "error: --server must be host:port", "sessions list"),
        (
            ["testgen", "generate", "x", "--command"],
            "error: the command is missing: add it",
            "testgen generate",
        ),
        (["playy"], "error: no such command 'playy'. Did you mean 'play'", ""),
        (["certify"], "error: missing argument 'FILE'", "certify"),
    ],
)
def test_wrong_usage_is_told_in_the_style_of_all_errors(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    error: str,
    command: str,
) -> None:
    monkeypatch.setattr("sys.argv", ["peripety", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli_app.main()
    assert ended.value.code == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(error)
    assert second == f"  see: {f'peripety {command}'.strip()} --help"


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        (
            InvalidArgumentError("session_id: unknown session 'x'; list the sessions", code="X"),
            ["error: unknown session 'x'; list the sessions (X)"],
        ),
        (
            InvalidArgumentError(
                "two are wrong",
                code="X",
                violations=[
                    FieldViolation(".options.max_runs", "must be 1 or more"),
                    FieldViolation("/a/b", "c"),
                ],
            ),
            ["error: two are wrong (X)", "  max runs: must be 1 or more", "  /a/b: c"],
        ),
        (
            InvalidArgumentError(
                "model has no name; give one",
                code="X",
                violations=[FieldViolation("model", "has no name; give one")],
            ),
            ["error: model has no name; give one (X)"],
        ),
        (
            ScriptError("a.toml", [ScriptProblem(("responses", 0, "max_matches"), "is wrong")]),
            [
                "error: script a.toml is not valid: 1 problem (SCENARIO_INVALID)",
                "  responses[0].max_matches: is wrong (a.toml)",
            ],
        ),
    ],
)
def test_errors_name_no_field_of_a_request_and_repeat_nothing(
    capsys: pytest.CaptureFixture[str], error: InvalidArgumentError, lines: list[str]
) -> None:
    explain_error(error)
    assert capsys.readouterr().err.splitlines() == lines


@pytest.mark.parametrize(
    ("code", "command", "listing"),
    [
        ("UNKNOWN_SESSION", "play", "sessions"),
        ("UNKNOWN_RUN", "generate", "runs"),
        ("UNKNOWN_RUN", "testgen", "testgen"),
        ("UNKNOWN_RUN", "agent", "agent"),
        ("SCENARIO_NOT_FOUND", "play", "scenarios"),
        ("POLICY_NOT_FOUND", "policy", "policy"),
    ],
)
def test_an_unknown_object_names_the_command_that_lists_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: str, command: str, listing: str
) -> None:
    monkeypatch.setattr("sys.argv", ["peripety", command, "x"])
    explain_error(NotFoundError("unknown", code=code))
    assert capsys.readouterr().err.splitlines()[1:] == [f"  see: peripety {listing} list"]
    assert run(listing, "list", "--help").exit_code == 0


def every_command(name: str, command: Any) -> Iterator[tuple[str, ...]]:
    yield (name,)
    for child, grandchild in getattr(command, "commands", {}).items():
        yield from ((name, *path) for path in every_command(child, grandchild))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_shows_no_python_types_and_cuts_no_summary(name: str) -> None:
    for path in every_command(name, load_command(name)):
        shown = run(*path, "--help").stdout
        assert not re.search(
            r"<\w+[ >]|list\[|\{[A-Z]+\}[ \n]|\[\[|<=x|x>=|\w\.\.\.\n", shown[shown.index("\n") :]
        )


def test_version_names_the_core() -> None:
    assert (
        run("--version").stdout
        == f"peripety {__version__} (core: {engine.BACKEND} {engine.BACKEND_VERSION})\n"
    )


def test_ctrl_c_during_the_imports_prints_no_traceback() -> None:
    code = """
import signal, sys

class Interrupt:
    def find_spec(self, name, *rest):
        if name == "typer":
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a child in the background ignores it
sys.meta_path.insert(0, Interrupt())
from peripety.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "")


def test_help_and_usage_errors_load_neither_grpc_nor_the_engine() -> None:
    heavy = ["grpc", "pydantic", "sqlalchemy", "peripety.engine"]
    code = f"import sys, peripety.cli.app; print([name for name in {heavy} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout == "[]\n"


def test_valid_documents_give_zero(good: str) -> None:
    result = run("validate", good, good)
    assert result.exit_code == 0
    assert result.stdout == f"{good}: valid\n" * 2
    assert "2 valid, 0 invalid" in result.stderr


def test_findings_give_one_and_name_the_place(good: str, bad: str) -> None:
    result = run("validate", good, bad)
    assert result.exit_code == 1
    assert f"{bad}: invalid" in result.stdout
    assert " /seed: " in result.stdout


def test_a_file_that_cannot_be_read_gives_two_and_the_others_are_checked(good: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    result = run("validate", str(tmp_path / "absent"), str(empty), good)
    assert result.exit_code == 2
    assert result.stderr.count("error: cannot read") == 2
    assert f"{good}: valid" in result.stdout


def test_yaml_is_named_as_the_file_that_it_is_in(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text("a: 1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["peripety", "dry-run", "mine.yaml"])
    with pytest.raises(SystemExit) as ended:
        cli_app.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: cannot read mine.yaml: it is YAML")


def test_a_folder_is_looked_through_for_what_may_hold_specifications(good: str, tmp_path: Path) -> None:
    inner = tmp_path / "inner" / "inmost"
    inner.mkdir(parents=True)
    (inner / "many.jsonl").write_bytes(document() + b"\n" + document(seed=8))
    (inner / "notes.txt").write_bytes(b"none")
    result = run("validate", str(tmp_path))
    many = inner / "many.jsonl"
    assert sorted(result.stdout.splitlines()) == sorted(
        [f"{good}: valid", f"{many}:1: valid", f"{many}:2: valid"],
    )


def test_no_file_is_misuse() -> None:
    assert run("validate").exit_code == 2


def test_lines_from_standard_input_are_told_apart() -> None:
    result = run("validate", "-", stdin=document() + b"\n{}\n")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert {line for line in lines if line.startswith("-")} == {"-:1: valid", "-:2: invalid"}
    assert lines[lines.index("-:2: invalid") + 1].startswith("  error MISSING_KEY")


def test_verdicts_as_json_are_one_line_each_and_nothing_else(good: str, bad: str) -> None:
    result = run("validate", "--json", good, bad)
    verdicts = {line["file"]: line for line in map(json.loads, result.stdout.splitlines())}
    first, second = verdicts[good], verdicts[bad]
    assert first == {"file": good, "line": None, "valid": True, "findings": []}
    assert (second["file"], second["valid"], second["findings"][0]["path"]) == (bad, False, "/seed")
    assert set(second["findings"][0]) == {"code", "path", "message", "severity", "remedy"}


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b'{"a":1,"a":2}', b"NaN", b"[" * 10_000, b"[" + b" " * 50_000_000, b'{"a":"\\ud800"}'],
    ids=["empty", "not-utf8", "duplicate-key", "nan", "deep", "large", "lone-surrogate"],
)
def test_hostile_documents_are_findings(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "hostile.json"
    path.write_bytes(content)
    result = run("validate", "--json", str(path))
    assert result.exit_code == 1
    assert json.loads(result.stdout)["findings"]


@pytest.mark.parametrize("command", ["validate", "dry-run"])
def test_a_size_that_is_not_known_is_not_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    path = tmp_path / "large.json"
    path.write_bytes(b"[" + b" " * 2 * 1024 * 1024)
    monkeypatch.setattr("sys.argv", ["peripety", command, str(path)])
    with pytest.raises(SystemExit):
        cli_app.main()
    said = capsys.readouterr()
    assert "exceeds the limit of 1048576 bytes" in said.out + said.err
    assert "1048577" not in said.out + said.err


def test_dry_run_tells_how_often_the_scenario_is_lost(good: str) -> None:
    result = run("dry-run", good, "--runs", "8", "--persona", "idle")
    assert result.exit_code == 0
    assert "8 runs of at most" in result.stdout
    assert f"persona idle, core {engine.BACKEND}" in result.stdout


def test_dry_run_as_json_repeats_for_a_seed(good: str) -> None:
    first, again, other = (
        json.loads(run("dry-run", good, "--runs", "4", "--seed", seed, "--json").stdout)
        for seed in ("1", "1", "2")
    )
    assert first == again
    assert (first["seed"], other["seed"], first["runs"]) == (1, 2, 4)
    assert first["fail_rate"] == first["lost"] / 4
    assert len(first["spec_hash"]) == 64


def test_a_dry_run_in_pieces_is_the_dry_run_in_one(good: str) -> None:
    pieces = json.loads(run("dry-run", good, "--runs", "700", "--json").stdout)
    whole = engine.compile(document()).dry_run(runs=700)
    assert pieces.items() >= json.loads(json.dumps(asdict(whole))).items()


def test_no_piece_of_a_dry_run_keeps_ctrl_c_waiting(good: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def slow(program: engine.Program, *, runs: int, **options: Any) -> engine.DryRunReport:
        asked.append(runs)
        time.sleep(0.02 * runs)
        return play(program, runs=runs, **options)

    play = engine.Program.dry_run
    monkeypatch.setattr(engine.Program, "dry_run", slow)
    run("dry-run", good, "--runs", "40")
    assert sum(asked) == 40
    assert 1 < max(asked) <= 8


def test_dry_run_of_a_wrong_document_raises_its_findings(bad: str) -> None:
    assert isinstance(run("dry-run", bad).exception, SpecError)


@pytest.mark.parametrize("command", ["play", "generate"])
def test_a_description_that_is_too_long_is_refused_before_anything_starts(command: str) -> None:
    arguments = [command, "--description", "-", *(["--auto"] if command == "play" else [])]
    result = run(*arguments, stdin=b"x" * (1024 * 1024 + 1))
    assert isinstance(result.exception, InvalidArgumentError)


def test_play_without_a_terminal_asks_for_auto() -> None:
    result = run("play", "--description", "text")
    assert result.exit_code == 2
    assert "--auto" in result.stderr


@pytest.mark.parametrize("option", [("--turns", "0"), ("--seed", "-1"), ("--seed", str(2**53))])
def test_numbers_out_of_range_are_misuse(option: tuple[str, str]) -> None:
    result = run("play", "--auto", *option)
    assert result.exit_code == 2
    assert option[0] in result.stderr


def test_whatever_writes_a_file_is_told_where_in_one_way() -> None:
    assert {options for options in every_option() if {"--out", "-o"} & {*options}} == {("--out", "-o")}


def test_serve_knows_its_services() -> None:
    result = run("serve", "nothing")
    assert result.exit_code == 2
    assert all(name in result.stderr for name in SERVICES)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (
            InvalidArgumentError("It is wrong", code="X", violations=[FieldViolation("a.b", "say c")]),
            2,
            ["error: It is wrong (X)", "  b: say c"],
        ),
        (
            SpecError("Refused", [Finding("CODE", "/a", "the way out")]),
            1,
            ["(SPEC_INVALID)", "error CODE /a: the way out"],
        ),
        (
            UnicodeEncodeError("utf-8", "a\udcff", 1, 2, "surrogates not allowed"),
            2,
            ["error: argument is not UTF-8: 'a\\udcff'"],
        ),
        (InternalError("A defect", retry_after=2), 1, ["A defect (INTERNAL)", "retry in 2 s"]),
    ],
)
def test_errors_are_told_in_a_paragraph(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    code: int,
    words: list[str],
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("peripety.cli.app.app", fail)
    with pytest.raises(SystemExit) as stopped:
        cli_app.main()
    said = capsys.readouterr()
    assert stopped.value.code == code
    assert all(word in said.err for word in words)
    assert "Traceback" not in said.err
    assert said.out == ""


def test_an_unexpected_error_says_how_to_see_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("odd")

    monkeypatch.setattr("peripety.cli.app.app", fail)
    with pytest.raises(SystemExit, match=r"RuntimeError: odd \(PERIPETY_DEBUG=1"):
        cli_app.main()
    monkeypatch.setenv("PERIPETY_DEBUG", "1")
    with pytest.raises(RuntimeError, match="odd"):
        cli_app.main()


def test_spec_used_above_is_valid() -> None:
    assert not engine.validate(json.dumps(spec()))
