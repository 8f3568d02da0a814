"""Long commands end at any moment, by a kill or by Ctrl-C, and the next command continues there."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from peripety.llmsim.server.runner import serve_in_thread
from support.llmsim.simulator import Answering, Gate
from support.policy.models import ScriptedModel
from support.policy.policies import TruePolicy
from support.scenario.generation import GRADES, GatedModel, good_specs, patient
from support.servers.processes import PERIPETY, ServerProcess, environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from peripety.llmsim.script.types import ScriptResponse
    from peripety.llmsim.simulator import Simulator
    from peripety.llmsim.types import SimRequest

pytestmark = pytest.mark.slow(reason="starts and kills processes")


@dataclass
class Shell:
    """Commands of one user, who has one database and one model."""

    home: Path
    settings: dict[str, str]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            [*PERIPETY, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            env=environment(self.home, **self.settings),
            text=True,
        )

    def run(self, *arguments: str) -> str:
        """Run a command to its end, and return its output."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        return out

    def runs(self) -> list[dict[str, Any]]:
        """The runs that are listed."""
        return [json.loads(line) for line in self.run("runs", "list", "--json").splitlines()]


@contextmanager
def shell(home: Path, model: Simulator) -> Iterator[Shell]:
    with serve_in_thread(model) as upstream:
        yield Shell(
            home,
            {
                "MODEL_PROVIDER": "openai",
                "OPENAI_API_BASE": f"{upstream.url}/v1",
                "OPENAI_API_KEY": "k",
                "MODEL_NAME": "gpt-5",
            },
        )
    model.close()


def author(gate: Gate) -> GatedModel:
    """A model whose first answer has findings, and which waits before the repair."""
    return GatedModel(patient(GRADES["wrong field names"], good_specs()[0]), gate)


GENERATE = ("generate", "--description", "alpha wanes", "--seed", "7", "--level", "static", "--json")


def test_a_killed_generation_is_taken_up_by_the_repeated_command_and_pays_no_answer_twice(
    tmp_path: Path,
) -> None:
    gate = Gate(2)
    model = author(gate)
    with shell(tmp_path, model) as user:
        process = user.start(*GENERATE)
        assert gate.reached.wait(60)
        process.kill()
        process.communicate(timeout=20)
        (run,) = user.runs()
        assert (run["state"], run["method"], run["title"]) == ("running", "GenerateScenario", "alpha wanes")
        gate.opened.set()
        spec = json.loads(user.run(*GENERATE))
        assert [one["id"] for one in spec["actions"]] == [one["id"] for one in good_specs()[0]["actions"]]
        (after,) = user.runs()
        assert (after["run_id"], after["state"]) == (run["run_id"], "completed")
        answered = [len(request.messages) for request in model.requests]
        assert answered.count(1) == 1
        shown = [json.loads(line) for line in user.run("runs", "show", run["run_id"], "--json").splitlines()]
        kinds = [next(iter(set(one) - {"sequence", "run_id"})) for one in shown[1:]]
        assert [kind for kind in kinds if kind != "progress"] == [
            "draft",
            "findings",
            "repaired",
            "completed",
        ]


def test_ctrl_c_names_the_command_that_follows_the_run_again(tmp_path: Path) -> None:
    gate = Gate(2)
    model = author(gate)
    with shell(tmp_path, model) as user:
        process = user.start(*GENERATE)
        assert gate.reached.wait(60)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 130
        told = re.search(r"follow it with: peripety (generate --follow [0-9a-f-]{36})\n", said)
        assert told is not None, said
        gate.opened.set()
        assert json.loads(user.run(*told[1].split(), "--json"))["actions"]
        assert [len(request.messages) for request in model.requests].count(1) == 1


def test_on_a_server_the_work_goes_on_without_its_client(tmp_path: Path) -> None:
    gate = Gate(2)
    model = author(gate)
    with shell(tmp_path, model) as user, ServerProcess(tmp_path / "server", settings=user.settings) as server:
        process = user.start(*GENERATE, "--server", server.address)
        assert gate.reached.wait(60)
        process.kill()
        process.communicate(timeout=20)
        gate.opened.set()
        (line,) = user.run("runs", "list", "--json", "--server", server.address).splitlines()
        run_id = json.loads(line)["run_id"]
        assert json.loads(user.run("generate", "--follow", run_id, "--json", "--server", server.address))
        assert len(model.requests) == 2
        server.kill()
        with ServerProcess(tmp_path / "server", settings=user.settings) as again:
            assert json.loads(user.run("generate", "--follow", run_id, "--json", "--server", again.address))
            user.run("runs", "delete", run_id, "--server", again.address)
            assert not user.run("runs", "list", "--server", again.address)
        assert len(model.requests) == 2


def test_a_killed_compilation_of_a_policy_is_taken_up_and_pays_no_answer_twice(tmp_path: Path) -> None:
    true = TruePolicy.made_up(1, "few_by_server")
    gate, write = Gate(3), ScriptedModel(true, seed=1)

    def answer(request: SimRequest) -> ScriptResponse:
        gate.wait()
        return write(request)

    model = Answering(answer)
    sources = tmp_path / "policy"
    sources.mkdir()
    (sources / "constitution.md").write_text(true.order().constitution)
    (sources / "tools.json").write_text(json.dumps(true.spec["tools"]))
    foundation = {key: true.spec[key] for key in ("invariants", "lists") if key in true.spec}
    (sources / "foundation.json").write_text(json.dumps(foundation))
    with shell(tmp_path, model) as user:
        process = user.start("policy", "compile", str(sources), "--max-cost", "1000000")
        assert gate.reached.wait(60)
        process.kill()
        process.communicate(timeout=20)
        before = len(model.requests)
        gate.opened.set()
        out = tmp_path / "out"
        user.run("policy", "compile", str(sources), "--max-cost", "1000000", "-o", str(out))
        assert (out / "policy.json").exists()
        ((state, method),) = [(run["state"], run["method"]) for run in user.runs()]
        assert (state, method) == ("completed", "CompilePolicy")
        # Calls run one at a time under a cost limit: all but the one in flight were answered.
        asked = [(one.system, one.messages) for one in model.requests]
        for question in asked[: before - 1]:
            assert asked.count(question) == 1
