"""The fixture `llm_simulator`, in a project that is not ours."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from support.repo.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path


PLUGIN = "peripety.pytest_plugin"

SETTINGS = """
[tool.pytest.ini_options]
addopts = ["--strict-markers", "--strict-config"]
filterwarnings = ["error"]
"""

SCENARIO = """
[[responses]]
pattern = { type = "contains", text = "hello" }
response = "Hello!"
max_matches = 1
"""

TESTS = """
import json
from urllib.request import Request, urlopen

import pytest


def ask(url, text):
    body = {"model": "gpt-6", "messages": [{"role": "user", "content": text}]}
    headers = {"content-type": "application/json"}
    request = Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urlopen(request, timeout=10) as response:
        return json.load(response)["choices"][0]["message"]["content"]


@pytest.mark.parametrize("number", range(3))
@pytest.mark.llm_script("hello.toml")
def test_a_file_beside_the_test_is_served_to_each_test_anew(llm_simulator, number):
    assert ask(llm_simulator.url, "hello there") == "Hello!"
    llm_simulator.captured.assert_received("hello there")
    assert len(llm_simulator.captured) == 1


@pytest.mark.llm_script("hello.toml", seed=7)
def test_options_are_the_simulators(llm_simulator):
    assert llm_simulator.simulator.script.seed == 7


def test_a_scenario_can_be_loaded_in_the_test(llm_simulator):
    from peripety.llmsim import ScriptBuilder

    scenario = ScriptBuilder().respond_to("a", "A")
    first = llm_simulator.load(scenario).url
    assert ask(first, "a") == "A"
    assert ask(llm_simulator.load(scenario.build()).url, "a") == "A"
    assert len(llm_simulator.captured) == 1
    with pytest.raises(OSError):
        urlopen(first, timeout=10)


def test_without_a_scenario_the_fixture_says_what_to_do(llm_simulator):
    with pytest.raises(pytest.UsageError, match="llm_simulator.load"):
        llm_simulator.url
"""

UNUSED = f"""
import sys


def test_nothing_of_it_is_loaded_until_it_is_used():
    loaded = [name for name in sys.modules if name.startswith(("peripety.", "aiohttp"))]
    assert loaded == ["{PLUGIN}"]
"""


def run(project: Path, tests: str) -> subprocess.CompletedProcess[str]:
    (project / "pyproject.toml").write_text(SETTINGS)
    (project / "nested").mkdir()
    (project / "nested" / "hello.toml").write_text(SCENARIO)
    (project / "nested" / "test_it.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-p", PLUGIN, "--verbose", "-p", "no:cacheprovider"]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # without the plugins of our own tests
    return subprocess.run(
        command,
        cwd=project,
        env=alone,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_the_fixture_serves_scenarios_to_another_project(tmp_path: Path) -> None:
    result = run(tmp_path, TESTS)
    assert "6 passed" in result.stdout, result.stdout + result.stderr


def test_the_plugin_costs_nothing_where_it_is_not_used(tmp_path: Path) -> None:
    result = run(tmp_path, UNUSED)
    assert "1 passed" in result.stdout, result.stdout + result.stderr


@pytest.mark.slow(reason="runs pytest in a process of its own")
def test_a_failed_load_fails_the_test_alone(tmp_path: Path) -> None:
    tests = """
import pytest

@pytest.mark.llm_script("nothing.toml")
def test_broken(llm_simulator):
    pass

def test_other():
    pass
"""
    result = run(tmp_path, tests)
    assert "1 passed, 1 error" in result.stdout, result.stdout + result.stderr
    assert "nothing.toml" in result.stdout


def test_the_package_registers_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {PLUGIN: PLUGIN}
    assert hasattr(import_module(PLUGIN), "llm_simulator")
