"""The Godot client on Godot 3: the files for Godot 4, in the form that the script derives."""

from __future__ import annotations

import re
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from support.repo.programs import LONGEST_SECONDS, are_in_order, run
from support.repo.repository import ROOT
from support.servers.engine_player import Edge, EnginePlayer

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow(reason="starts Godot"), pytest.mark.timeout(LONGEST_SECONDS)]

CLIENT = ROOT / "clients" / "godot"
SAMPLES = ROOT / "clients" / "samples"
SAMPLE = CLIENT / "samples" / "first_turn.gd"
TUTORIAL = ROOT / "docs" / "tutorials" / "godot-client.md"
ENGINE = ("godot3-server", "--path", ".")
LOCALE = {"LANG": "en_US.UTF-8"}
MOST_LINES = 20


@pytest.fixture(autouse=True)
def _godot() -> None:
    if shutil.which("godot3-server") is None:
        pytest.skip("Godot client: godot3-server not found; apt-get install godot3-server")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of Godot 3 with the sample as its scene, and the scene of the tests."""
    program = CLIENT / "to_godot3.py"
    addon = "addons/peripety"
    sources = [*CLIENT.glob("samples/*"), *CLIENT.glob("test/*")]
    run(sys.executable, program, CLIENT / addon / "protocol.gd", tmp_path / addon, folder=tmp_path)
    run(sys.executable, program, *sources, tmp_path, folder=tmp_path)
    scene = (tmp_path / "main.tscn").read_text("utf-8").replace("first_turn.gd", "play_turn.gd")
    (tmp_path / "test.tscn").write_text(scene, encoding="utf-8")
    shutil.copy(SAMPLES / "scenario.json", tmp_path)
    return tmp_path


async def test_a_turn_survives_cuts(project: Path, edge: Edge) -> None:
    await EnginePlayer((*ENGINE, "test.tscn"), project, LOCALE).check_cuts(edge)


async def test_errors_have_reasons(project: Path, edge: Edge) -> None:
    player = EnginePlayer((*ENGINE, "test.tscn"), project, LOCALE)
    player.check_errors(edge)
    await player.check_lost_server(edge)


def test_the_sample_streams_a_turn_in_a_few_lines(project: Path, edge: Edge) -> None:
    output = run(*ENGINE, folder=project, PERIPETY_URL=edge.url, **LOCALE)
    assert are_in_order("accepted\n...\nnarrative_chunk There is only the wind.\n...\ndiff\n", output), output
    assert "SCRIPT ERROR" not in output
    assert len(SAMPLE.read_text("utf-8").splitlines()) <= MOST_LINES


def test_the_tutorial_reaches_a_streamed_turn(edge: Edge, tmp_path: Path) -> None:
    blocks = re.findall(r"```(sh|gdscript|text)\n(.*?)```", TUTORIAL.read_text("utf-8"), re.DOTALL)
    commands = [text for kind, text in blocks if kind == "sh"]
    program, expected = (text for kind, text in blocks if kind != "sh")
    assert commands[0].startswith("peripety serve")
    assert program == SAMPLE.read_text("utf-8")
    shutil.copytree(
        CLIENT, tmp_path / "clients" / "godot", ignore=shutil.ignore_patterns("test", "first_turn.gd")
    )
    shutil.copytree(SAMPLES, tmp_path / "clients" / "samples")
    run("sh", "-ec", commands[1], folder=tmp_path)
    (tmp_path / "build" / "first-game" / "first_turn.gd").write_text(program, encoding="utf-8")
    output = run("sh", "-ec", commands[2], folder=tmp_path, PERIPETY_URL=edge.url, **LOCALE)
    assert are_in_order(expected, output), output
