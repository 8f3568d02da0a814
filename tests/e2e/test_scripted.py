"""The provider `scripted`, as processes of their own that nothing is started beside."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from peripety.gateway.remote import RemoteModelGateway
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import GenerateRequest
from peripety.gateway.types.response import Usage
from peripety.rpc.channel import open_channel
from support.engine.specs import playable
from support.servers.processes import PERIPETY, ServerProcess, environment

if TYPE_CHECKING:
    from pathlib import Path


def script(home: Path) -> dict[str, str]:
    """Return the settings for a script that first writes a specification, and then repeats one answer."""
    first = {"pattern": {"type": "any"}, "response": playable().decode(), "max_matches": 1}
    document = {"responses": [first], "default_response": "as in the script", "keys": ["k"]}
    return configured(home, json.dumps(document))


def configured(home: Path, text: str) -> dict[str, str]:
    (home / "script.json").write_text(text)
    return {"MODEL_PROVIDER": "scripted", "PERIPETY_SCRIPT": str(home / "script.json")}


def peripety(
    home: Path,
    settings: dict[str, str],
    *arguments: str,
    said: str = "",
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PERIPETY, *arguments],
        input=said,
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
        env=environment(home, **settings),
    )


@pytest.mark.slow(reason="starts a process for each case")
def test_the_script_writes_what_is_generated(tmp_path: Path) -> None:
    done = peripety(tmp_path, script(tmp_path), "generate", "--description", "x", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["name"] == json.loads(playable())["name"]


def test_the_script_writes_what_is_played(tmp_path: Path) -> None:
    done = peripety(tmp_path, script(tmp_path), "play", "--auto", "-v", "--turns", "1", "--description", "x")
    assert done.returncode == 0, done.stderr
    assert "written by scripted/scripted" in done.stdout
    assert "\n> raise\n" in done.stdout


@pytest.mark.slow(reason="starts a server and a client")
async def test_the_script_answers_whoever_asks_the_server(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "gateway", script(tmp_path)) as server:
        async with open_channel(server.address) as channel:
            gateway = RemoteModelGateway(channel)
            request = GenerateRequest("s", (ChatMessage.user("a"),))
            await gateway.generate(request)
            completion = await gateway.generate(request)
    assert (completion.text, completion.provider, completion.model, completion.cost) == (
        "as in the script",
        "scripted",
        "scripted",
        0,
    )
    assert completion.usage != Usage()


@pytest.mark.slow_after(1, reason="starts a process for each case")
@pytest.mark.parametrize(
    ("text", "place"),
    [('{"responses": [\n{"respnse": "x"}]}', "script.json:2:"), ("{", "script.json:1:")],
)
def test_a_script_that_cannot_be_used_stops_the_start_and_says_where(
    tmp_path: Path,
    text: str,
    place: str,
) -> None:
    done = peripety(tmp_path, configured(tmp_path, text), "serve")
    assert (done.returncode, done.stdout) == (2, "")
    assert place in done.stderr


@pytest.mark.slow(reason="starts a process for each case")
def test_a_script_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    settings = configured(tmp_path, "{}") | {"PERIPETY_SCRIPT": str(tmp_path / "nowhere.toml")}
    done = peripety(tmp_path, settings, "serve")
    assert (done.returncode, "nowhere.toml" in done.stderr) == (2, True)


@pytest.mark.slow(reason="starts a process for each case")
def test_without_a_script_the_variable_is_named(tmp_path: Path) -> None:
    done = peripety(tmp_path, {"MODEL_PROVIDER": "scripted"}, "serve")
    assert (done.returncode, "PERIPETY_SCRIPT" in done.stderr) == (1, True)


@pytest.mark.slow(reason="starts a process for each case")
def test_a_service_that_asks_no_model_needs_no_script(tmp_path: Path) -> None:
    settings = {"MODEL_PROVIDER": "scripted", "PERIPETY_GATEWAY_ADDRESS": "127.0.0.1:1"}
    with ServerProcess(tmp_path, "scenarios", settings) as server:
        assert server.stop() == 0
