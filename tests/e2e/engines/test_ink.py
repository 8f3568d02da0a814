"""The bridge for ink on Node.js: stories that play turns, over good and bad connections."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from support.repo.programs import LONGEST_SECONDS, are_in_order, run
from support.repo.repository import ROOT
from support.servers.engine_player import Edge, EnginePlayer
from support.typescript_package import PACKAGE, build_package

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow(reason="installs inkjs"), pytest.mark.timeout(LONGEST_SECONDS)]

CLIENT = ROOT / "clients" / "ink"
SAMPLES = ROOT / "clients" / "samples"
SAMPLE = CLIENT / "samples" / "first_turn.mjs"
STORY = CLIENT / "samples" / "story.ink"
TUTORIAL = ROOT / "docs" / "tutorials" / "ink-client.md"
MOST_LINES = 20


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the bridge, inkjs and the programs of the tests."""
    build_package()
    folder = tmp_path_factory.mktemp("ink")
    for path in (SAMPLE, STORY, CLIENT / "test" / "play_turn.mjs", SAMPLES / "scenario.json"):
        shutil.copy(path, folder)
    run(
        "npm",
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        "inkjs@^2.4.0",
        PACKAGE,
        CLIENT,
        folder=folder,
    )
    return folder


async def test_a_turn_survives_cuts(package: Path, edge: Edge) -> None:
    await EnginePlayer(("node", "play_turn.mjs"), package, received=2000).check_cuts(edge)


async def test_errors_have_reasons(package: Path, edge: Edge) -> None:
    player = EnginePlayer(("node", "play_turn.mjs"), package)
    player.check_errors(edge)
    await player.check_lost_server(edge)


def test_the_sample_streams_a_turn_in_a_few_lines(package: Path, edge: Edge) -> None:
    output = run("node", "first_turn.mjs", folder=package, PERIPETY_URL=edge.url)
    expected = (
        "turn: accepted\n...\nturn: narrativeChunk There is only the wind.\n...\nstory: Now it is 8.2.\n"
    )
    assert are_in_order(expected, output), output
    assert len(SAMPLE.read_text("utf-8").splitlines()) <= MOST_LINES


@pytest.mark.usefixtures("package")
def test_the_tutorial_reaches_a_streamed_turn(edge: Edge, tmp_path: Path) -> None:
    blocks = re.findall(r"```(\w*)\n(.*?)```", TUTORIAL.read_text("utf-8"), re.DOTALL)
    commands = [text for kind, text in blocks if kind == "sh"]
    texts = {kind: text for kind, text in blocks if kind != "sh"}
    assert commands[0].startswith("peripety serve")
    assert commands[1] == "(cd clients/typescript && npm ci && npm run build)\n"  # the fixture has built it
    assert texts[""] == STORY.read_text("utf-8")
    assert texts["js"] == SAMPLE.read_text("utf-8")
    (tmp_path / "clients").symlink_to(ROOT / "clients")
    run("sh", "-ec", commands[2], folder=tmp_path)
    folder = tmp_path / "build" / "first-story"
    (folder / "first_turn.mjs").write_text(texts["js"], encoding="utf-8")
    output = run("sh", "-ec", commands[3], folder=folder, PERIPETY_URL=edge.url)
    assert are_in_order(texts["text"], output), output
