"""`peripety testgen` as a process of its own: every kind of subject, and what is done with its runs."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from support.engine.policies import policy_document, rule, tool
from support.repo.repository import ROOT
from support.servers.processes import PERIPETY, ServerProcess, environment, terminal
from support.testgen.suites import run_pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


EXAMPLES = ROOT / "examples"
RANGES = EXAMPLES / "testgen" / "ranges"
SCHEMA = {"type": "object", "properties": {"size": {"type": "integer", "minimum": 0, "maximum": 9}}}
COMMAND = ("--command", "--", "python3", "ranges.py")
SHORT = ("--max-rounds", "1", "--max-time", "40")

pytestmark = pytest.mark.timeout(300)


def peripety(home: Path, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PERIPETY, "testgen", *words],
        input=given,
        capture_output=True,
        check=False,
        text=True,
        timeout=280,
        env=environment(home),
    )


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory where tests of the example program were generated, as run `ranges`."""
    home = tmp_path_factory.mktemp("testgen")
    shutil.copytree(RANGES, home / "ranges")
    out = ("-o", str(home / "test_ranges.py"), "--task-id", "ranges", *SHORT)
    task = ("--file", str(RANGES / "task.md"), "--environment", str(home / "ranges"))
    done = peripety(home, "generate", *task, *out, *COMMAND)
    assert done.returncode == 0, done.stderr
    (home / "told.txt").write_text(done.stdout, encoding="utf-8")
    return home


@pytest.fixture(scope="module")
def run_id(home: Path) -> str:
    (listed,) = lines(peripety(home, "list", "--task-id", "ranges", "--json"))
    return str(listed["run_id"])


@pytest.mark.slow(reason="runs a whole generation")
def test_the_example_program_is_tested_and_the_end_says_how_well(home: Path, run_id: str) -> None:
    told = (home / "told.txt").read_text(encoding="utf-8").splitlines()
    assert told[0].startswith(f"{run_id}: Write `ranges.py`")
    assert any(line.startswith("● ") for line in told)
    assert any(line.startswith("  ✓ ") and " passed, " in line for line in told)
    assert any(line.startswith("  by its own assessment: ") for line in told)
    assert any("line coverage: " in line for line in told)
    assert any("mutants killed: " in line for line in told)
    assert any(line.startswith("  ended: ") for line in told)


@pytest.mark.slow(reason="generates a suite as a process")
def test_what_was_written_runs_and_fails_on_a_changed_program(home: Path, tmp_path: Path) -> None:
    module = home / "test_ranges.py"
    outcomes = run_pytest(module)
    assert set(outcomes.values()) == {"passed"}
    changed = tmp_path / "ranges"
    shutil.copytree(home / "ranges", changed)
    program = changed / "ranges.py"
    program.write_text(program.read_text(encoding="utf-8").replace("sorted(set(numbers))", "sorted(numbers)"))
    elsewhere = tmp_path / "test_changed.py"
    text = module.read_text(encoding="utf-8")
    elsewhere.write_text(text.replace(str(home / "ranges"), str(changed)), encoding="utf-8")
    assert "failed" in run_pytest(elsewhere).values()


@pytest.mark.slow(reason="starts a process for each command")
def test_the_tests_of_a_run_are_run_again_here_and_on_another_program(
    home: Path,
    run_id: str,
    tmp_path: Path,
) -> None:
    again = peripety(home, "run", run_id, "--repeat", "1")
    assert (again.returncode, again.stdout.splitlines()[-1].endswith(", 0 failed")) == (0, True), again.stderr
    (tmp_path / "ranges.py").write_text("print('1-3 5')\n", encoding="utf-8")
    cheat = peripety(home, "run", run_id, "--repeat", "1", "--environment", str(tmp_path), *COMMAND)
    assert cheat.returncode == 1, cheat.stderr
    assert "EXPECTATION_NOT_MET" in cheat.stdout


@pytest.mark.slow(reason="starts a process for each form")
def test_a_run_is_shown_and_written_in_every_form(home: Path, run_id: str, tmp_path: Path) -> None:
    shown = peripety(home, "show", run_id).stdout
    run = lines(peripety(home, "show", run_id, "--json"))[0]
    assert all(test["test_id"] in shown for test in run["tests"])
    document, report = tmp_path / "tests.json", tmp_path / "tests.xml"
    for out in (document, report):
        assert peripety(home, "export", run_id, "-o", str(out)).returncode == 0
    written = json.loads(document.read_bytes())
    assert [test["test_id"] for test in written["tests"]] == [test["test_id"] for test in run["tests"]]
    assert ET.fromstring(report.read_bytes()).get("tests") == str(len(run["tests"]))  # noqa: S314 - our own
    counting = peripety(home, "export", run_id, "--format", "json", "--counting-only").stdout
    assert len(json.loads(counting)["tests"]) == run["stats"]["quality"]["counting_tests"]


@pytest.mark.slow(reason="starts a server and runs a whole generation")
def test_events_are_told_again_by_whoever_resumes(home: Path, run_id: str) -> None:
    events = lines(peripety(home, "resume", run_id, "--json"))
    assert [event["sequence"] for event in events] == [*range(1, len(events) + 1)]
    assert "complete" in events[-1]


@pytest.mark.slow(reason="runs two whole generations")
def test_a_scenario_and_a_policy_are_tested_and_their_modules_run(tmp_path: Path) -> None:
    scenario, policy = tmp_path / "test_scenario.py", tmp_path / "test_policy.py"
    about = ("generate", "Whatever it says holds.", "--max-rounds", "2")
    spec = peripety(tmp_path, *about, "--scenario", str(EXAMPLES / "scenario.json"), "-o", str(scenario))
    assert spec.returncode == 0, spec.stderr
    small = rule("small", "allow", tools=["write"], logic={"<": [{"var": "arguments.size"}, 5]})
    document = tmp_path / "policy.json"
    document.write_bytes(policy_document(tools=[tool("write", input_schema=SCHEMA)], rules=[small]))
    rules = peripety(tmp_path, *about, "--policy", str(document), "-o", str(policy))
    assert rules.returncode == 0, rules.stderr
    assert "rule coverage: " in rules.stdout
    for module in (scenario, policy):
        assert set(run_pytest(module).values()) == {"passed"}


@pytest.mark.slow(reason="generates a suite as a process")
def test_words_alone_become_tests_that_nobody_claims_to_have_measured(tmp_path: Path) -> None:
    out = tmp_path / "test_words.py"
    text = "Names must have at least 3 characters and at most 10. A name never begins with a digit."
    done = peripety(tmp_path, "generate", "-", "--max-rounds", "2", "-o", str(out), given=text)
    assert done.returncode == 0, done.stderr
    assert "measured: nothing" in done.stdout
    assert set(run_pytest(out).values()) == {"skipped"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("server"), "all") as server:
        yield server


@pytest.mark.slow(reason="starts a server as a process")
def test_a_server_runs_no_command_unless_it_is_configured_to(served: ServerProcess, tmp_path: Path) -> None:
    where = ("--server", served.address, "--environment", str(RANGES))
    refused = peripety(tmp_path, "generate", "d", *where, *COMMAND)
    assert refused.returncode == 1
    assert "PERIPETY_TESTGEN_COMMANDS" in refused.stderr


@pytest.mark.slow(reason="starts a server and three commands")
def test_a_run_of_a_server_is_stopped_by_another_process_and_deleted(
    served: ServerProcess,
    tmp_path: Path,
) -> None:
    where = ("--server", served.address)
    words = ("testgen", "generate", "d", *where, "--scenario", str(EXAMPLES / "scenario.json"), "--json")
    with subprocess.Popen(
        [*PERIPETY, *words],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(tmp_path),
    ) as generating:
        assert generating.stdout is not None
        run_id = json.loads(generating.stdout.readline())["run_id"]
        cancelled = peripety(tmp_path, "cancel", run_id, *where)
        assert cancelled.returncode == 0, cancelled.stderr
        last = json.loads(generating.stdout.read().splitlines()[-1])
    assert last["complete"]["stats"]["stopped_by"] == "cancelled"
    assert generating.returncode == 0
    assert peripety(tmp_path, "delete", run_id, *where).returncode == 0
    gone = peripety(tmp_path, "show", run_id, *where)
    assert (gone.returncode, run_id in gone.stderr) == (1, True)


@pytest.mark.slow(reason="runs a whole generation twice")
def test_ctrl_c_at_a_terminal_leaves_a_run_that_is_gone_on_with(tmp_path: Path) -> None:
    words = ("testgen", "generate", "--file", str(RANGES / "task.md"), "--environment", str(RANGES))
    with terminal([*PERIPETY, *words, *SHORT, *COMMAND], environment(tmp_path)) as at:
        at.wait_for("○ ", 120)
        at.process.send_signal(signal.SIGINT)
        at.wait_for("continue with: peripety testgen resume ", 60)
        assert at.process.wait(60) == 130
        run_id = at.screen.rpartition("testgen resume ")[2].split()[0]
    events = lines(peripety(tmp_path, "resume", run_id, "--json"))
    assert [event["sequence"] for event in events] == [*range(1, len(events) + 1)]
    assert "complete" in events[-1]
