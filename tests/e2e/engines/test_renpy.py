"""The Ren'Py client in Ren'Py on a virtual screen: turns over good and bad connections, and rolling back."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from support.repo.programs import LONGEST_SECONDS, are_in_order, run
from support.repo.repository import ROOT
from support.servers.engine_player import Edge, EnginePlayer
from support.servers.misbehaving_proxy import MisbehavingProxy

pytestmark = [pytest.mark.slow(reason="starts Ren'Py"), pytest.mark.timeout(LONGEST_SECONDS)]

CLIENT = ROOT / "clients" / "renpy"
SAMPLES = ROOT / "clients" / "samples"
SAMPLE = CLIENT / "samples" / "first_turn.rpy"
TUTORIAL = ROOT / "docs" / "tutorials" / "renpy-client.md"
ENGINE = Path("/usr/share/games/renpy/renpy.py")
SETTINGS = {"SDL_AUDIODRIVER": "dummy", "BROWSER": "true"}
MOST_LINES = 20
PRINTING = """
init python:
    def narrator(what, interact=True, **more):
        print("narrator", what, flush=True)
        if what.startswith("Turn"):
            renpy.quit()

label main_menu:
    return
"""


@pytest.fixture(autouse=True)
def _renpy() -> None:
    if not ENGINE.exists() or shutil.which("xvfb-run") is None:
        pytest.skip(
            "Ren'Py client: renpy or xvfb-run not found; "
            "apt-get install renpy python3-requests xvfb xauth libgl1-mesa-dri"
        )


def command(project: Path) -> tuple[str | Path, ...]:
    return (
        "xvfb-run",
        "-a",
        "timeout",
        "-k",
        "1",
        "60",
        "python3",
        CLIENT / "test/headless.py",
        project,
        "run",
    )


@pytest.fixture
def player(tmp_path: Path) -> EnginePlayer:
    (tmp_path / "game").mkdir()
    shutil.copy(CLIENT / "game" / "peripety.py", tmp_path / "game")
    shutil.copy(CLIENT / "test" / "play_turn.rpy", tmp_path / "game")
    return EnginePlayer(command(tmp_path), tmp_path, {**SETTINGS, "PATH": "/usr/bin:/bin"})


async def test_a_turn_survives_cuts(player: EnginePlayer, edge: Edge) -> None:
    await player.check_cuts(edge)


async def test_errors_have_reasons(player: EnginePlayer, edge: Edge) -> None:
    player.check_errors(edge)
    await player.check_lost_server(edge)


async def test_frames_go_on_while_a_turn_waits(player: EnginePlayer, edge: Edge) -> None:
    async with MisbehavingProxy(edge.url.removeprefix("http://"), has_frames=False).listening() as proxy:
        proxy.arm("delay", 1)
        url = f"http://{proxy.address}"
        (line,) = await asyncio.to_thread(player.play, url, edge.new_session(), "frames")
    turn, number, frames = line.split()
    assert (turn, number) == ("turn", "1")
    assert int(frames) > 20


def test_rolling_back_rewinds_the_session(player: EnginePlayer, edge: Edge) -> None:
    session_id = edge.new_session()
    first, second = player.play(edge.url, session_id, "rollback")
    assert first != second
    session = edge.read(f"/sessions/{session_id}")
    assert second == f"turn 1 ongoing {session['chain_hash']}"
    assert session["turn"] == 1


def test_the_tutorial_reaches_a_streamed_turn_in_a_few_lines(edge: Edge, tmp_path: Path) -> None:
    blocks = re.findall(r"```(sh|renpy)\n(.*?)```", TUTORIAL.read_text("utf-8"), re.DOTALL)
    commands = [text for kind, text in blocks if kind == "sh"]
    program = next(text for kind, text in blocks if kind == "renpy")
    assert commands[0].startswith("peripety serve")
    assert program == SAMPLE.read_text("utf-8")
    assert len(program.splitlines()) <= MOST_LINES
    (tmp_path / "clients").symlink_to(ROOT / "clients")
    run("sh", "-ec", commands[1], folder=tmp_path)
    project = tmp_path / "build" / "first-game"
    (project / "game" / "script.rpy").write_text(program, encoding="utf-8")
    (project / "game" / "printing.rpy").write_text(PRINTING, encoding="utf-8")
    output = run(*command(project), folder=tmp_path, PERIPETY_URL=edge.url, PATH="/usr/bin:/bin", **SETTINGS)
    assert are_in_order("narrator There is only the wind.\n...\nnarrator Turn", output), output
