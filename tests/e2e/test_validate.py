"""Many specifications on the command line, as a process that may be stopped and killed."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from peripety.scenario.spec_generator.generator import generate_spec
from support.scenario.batches import EASY, GOOD, WRONG, named
from support.servers.processes import PERIPETY, environment, terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


DICE = ("--level", "dry-run", "--max-runs", "64")


def validate(home: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*PERIPETY, "validate", *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=90,
        env=environment(home),
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def by_line(output: str) -> dict[int, dict[str, Any]]:
    """The verdicts by the lines of their documents, each of which has one."""
    verdicts = [json.loads(line) for line in output.splitlines()]
    found = {verdict["line"]: verdict for verdict in verdicts}
    assert len(found) == len(verdicts)
    return found


@pytest.mark.slow(reason="validates hundreds of specifications")
def test_hundreds_of_specifications_are_summed_up(tmp_path: Path) -> None:
    specs = [generate_spec(3, index) for index in range(300)]
    (tmp_path / "many.jsonl").write_bytes(b"\n".join([*specs, WRONG, b"{", specs[0]]))
    (tmp_path / "one.json").write_bytes(GOOD)
    done = validate(tmp_path, str(tmp_path), "--json")
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 304
    assert sum(json.loads(line)["valid"] for line in done.stdout.splitlines()) == 302
    first, *codes = done.stderr.splitlines()
    assert first.startswith("302 valid, 2 invalid, 0 unreadable in ")
    assert sorted(code.split()[1] for code in codes) == sorted({code.split()[1] for code in codes})


@pytest.mark.slow(reason="starts a process for each level")
def test_levels_decide_what_passes(tmp_path: Path) -> None:
    (tmp_path / "two.jsonl").write_bytes(EASY + b"\n" + GOOD)
    assert validate(tmp_path, str(tmp_path / "two.jsonl")).returncode == 0
    done = validate(tmp_path, str(tmp_path / "two.jsonl"), "--json", *DICE)
    assert done.returncode == 1
    found = by_line(done.stdout)
    assert found[1]["findings"][0]["code"] == "TOO_EASY"
    assert found[2]["valid"]
    assert found[2]["dry_run"]["runs"] == 64
    assert len(found[2]["spec_hash"]) == 64


def test_rows_of_parquet_are_known_by_their_ids(tmp_path: Path) -> None:
    table = pa.table(
        {"id": ["a", "b", None], "spec": [GOOD.decode(), WRONG.decode(), None], "more": [1, 2, 3]},
    )
    parquet.write_table(table, tmp_path / "rows.parquet")
    done = validate(tmp_path, str(tmp_path / "rows.parquet"), "--json")
    assert done.returncode == 1
    found = by_line(done.stdout)
    assert {line: (verdict.get("id"), verdict["valid"]) for line, verdict in found.items()} == {
        1: ("a", True),
        2: ("b", False),
        3: (None, False),
    }


@pytest.mark.slow(reason="starts a process for each case")
@pytest.mark.parametrize("content", [b"PAR1 words", None])
def test_parquet_that_cannot_be_used_is_a_clear_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "rows.parquet"
    if content is None:
        parquet.write_table(pa.table({"words": ["x"]}), path)
    else:
        path.write_bytes(content)
    done = validate(tmp_path, str(path))
    assert done.returncode == 2
    assert f"error: cannot read {path}: " in done.stderr
    assert "Traceback" not in done.stderr
    assert ("column spec with the specifications is missing" in done.stderr) is (content is None)


@contextmanager
def running(home: Path, *arguments: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process, which blocks once its output fills the unread pipe."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a child in the background ignores it
    process = subprocess.Popen(
        [*PERIPETY, "validate", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home),
        **options,
    )
    signal.signal(signal.SIGINT, before)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow(reason="starts a process for each kill")
def test_nothing_is_lost_or_done_again_after_a_kill(tmp_path: Path) -> None:
    documents = [named(str(index % 2_900)) for index in range(3_000)]
    many, ledger = tmp_path / "many.jsonl", tmp_path / "ledger"
    many.write_bytes(b"\n".join(documents))
    arguments = (str(many), "--json", *DICE, "--resume", str(ledger))
    with running(tmp_path, *arguments) as killed:
        assert killed.stdout is not None
        told = [json.loads(killed.stdout.readline()) for _ in range(50)]
        killed.kill()
        killed.wait()
    kept = marked(ledger)
    assert {verdict["spec_hash"] for verdict in told} <= kept
    assert len(kept) < 2_900

    done = validate(tmp_path, *arguments)
    found = by_line(done.stdout)
    assert sorted(found) == list(range(1, 3_001))
    assert {verdict["spec_hash"] for verdict in found.values() if verdict.pop("total", 0) == 7_777} == kept
    assert all(found[verdict["line"]] == verdict for verdict in told)


def marked(ledger: Path) -> set[str]:
    """The specifications whose verdicts are in a file, and mark those, so that they are known again."""
    with closing(sqlite3.connect(ledger)) as database, database:
        rows = database.execute("SELECT name, record FROM verdicts").fetchall()
        for name, record in rows:
            changed = json.dumps({**json.loads(record), "total": 7_777}).encode()
            database.execute("UPDATE verdicts SET record = ? WHERE name = ?", (changed, name))
    return {name.hex() for name, _ in rows}


@pytest.mark.slow(reason="starts a process and interrupts it")
@pytest.mark.parametrize("is_kept", [False, True])
def test_ctrl_c_says_how_to_go_on(tmp_path: Path, is_kept: bool) -> None:
    (tmp_path / "many.jsonl").write_bytes(b"\n".join(named(str(index)) for index in range(3_000)))
    resume = ["--resume", str(tmp_path / "ledger")] if is_kept else []
    with running(tmp_path, str(tmp_path / "many.jsonl"), "--json", *DICE, *resume) as stopped:
        assert stopped.stdout is not None
        stopped.stdout.readline()
        stopped.send_signal(signal.SIGINT)
        _, said = stopped.communicate(timeout=30)
    assert stopped.returncode == 130
    expected = f"from the verdicts in {tmp_path / 'ledger'}" if is_kept else "add --resume FILE"
    assert expected.encode() in said
    assert b"Traceback" not in said


def test_lines_are_judged_as_they_arrive_and_ctrl_c_ends_the_waiting(tmp_path: Path) -> None:
    with running(tmp_path, "-", stdin=subprocess.PIPE) as waiting:
        assert waiting.stdin is not None
        assert waiting.stdout is not None
        waiting.stdin.write(GOOD + b"\n" + EASY + b"\n")
        waiting.stdin.flush()
        assert {waiting.stdout.readline() for _ in range(2)} == {b"-:1: valid\n", b"-:2: valid\n"}
        waiting.send_signal(signal.SIGINT)
        said = waiting.stderr.read() if waiting.stderr else b""
        assert waiting.wait(30) == 130
    assert b"Traceback" not in said
    assert b"Fatal" not in said


def test_a_person_at_a_terminal_sees_verdicts_and_the_summary(tmp_path: Path) -> None:
    (tmp_path / "many.jsonl").write_bytes(b"\n".join(named(str(index)) for index in range(50)))
    with terminal([*PERIPETY, "validate", str(tmp_path / "many.jsonl")], environment(tmp_path)) as person:
        person.wait_for("50 valid, 0 invalid")
        assert person.process.wait(timeout=30) == 0
        assert all(f"many.jsonl:{line}: valid" in person.screen for line in range(1, 51))


def test_a_resume_file_of_another_kind_is_misuse(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_bytes(GOOD)
    done = validate(tmp_path, str(tmp_path / "one.json"), "--resume", str(tmp_path / "one.json"))
    assert done.returncode == 2
    assert "RESUME_UNUSABLE" in done.stderr
    assert (tmp_path / "one.json").read_bytes() == GOOD
