"""Access checks: hosts, origins, media types, sizes and tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peripety.core.config import Config
from peripety.edge.app import serve_edge
from peripety.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from support.servers.apps import config_for
from support.servers.edge import EdgeClient, serving_edge

if TYPE_CHECKING:
    from pathlib import Path

JSON = {"content-type": "application/json"}
PATH = "/rpc/ScenarioService/ListScenarios"


@pytest.mark.asyncio(loop_scope="package")
@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"host": "example.org"}, 421, "HOST_REFUSED"),
        ({"host": "127.0.0.1.example.org"}, 421, "HOST_REFUSED"),
        ({"host": "user@localhost"}, 421, "HOST_REFUSED"),
        ({"host": "[::1"}, 421, "HOST_REFUSED"),
        ({"origin": "https://example.org"}, 403, "ORIGIN_REFUSED"),
        ({"origin": "null"}, 403, "ORIGIN_REFUSED"),
        ({"content-type": "text/plain"}, 415, "MEDIA_TYPE_UNSUPPORTED"),
        ({"content-type": "application/x-www-form-urlencoded"}, 415, "MEDIA_TYPE_UNSUPPORTED"),
        ({"content-type": ""}, 415, "MEDIA_TYPE_UNSUPPORTED"),
    ],
)
async def test_what_another_site_could_send_is_refused(
    edge: EdgeClient, headers: dict[str, str], status: int, code: str
) -> None:
    async with edge.http.post(edge.url + PATH, data=b"{}", headers=JSON | headers) as response:
        problem = await response.json(content_type=None)
    assert (response.status, problem["code"]) == (status, code)
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.asyncio(loop_scope="package")
async def test_names_of_this_machine_and_its_own_pages_enter(edge: EdgeClient) -> None:
    port = edge.url.rpartition(":")[2]
    for host in ("localhost", f"LOCALHOST:{port}", f"[::1]:{port}"):
        headers = JSON | {"host": host, "origin": f"http://{host}"}
        async with edge.http.post(edge.url + PATH, data=b"{}", headers=headers) as response:
            assert response.status == 200
            assert "frame-ancestors 'none'" in response.headers["content-security-policy"]


@pytest.mark.asyncio(loop_scope="package")
async def test_a_request_id_comes_back(edge: EdgeClient) -> None:
    for given, is_kept in (("my-id.1", True), ("odd id", False)):
        async with edge.http.get(f"{edge.url}/health", headers={"x-request-id": given}) as response:
            assert (response.headers["x-request-id"] == given) is is_kept


@pytest.mark.asyncio(loop_scope="package")
async def test_the_caller_whom_a_proxy_names_has_runs_of_its_own(edge: EdgeClient) -> None:
    body = {"description": "alpha wanes", "level": "static"}
    named: list[dict[str, str]] = [{"x-peripety-caller": name} for name in ("one", "zwei \u00fc", "three")]
    for headers in named[:2]:
        assert (await edge.post("/scenarios/generate", body, **headers))[0] == 200
    counts = []
    for headers in named:
        status, listed = await edge.post("/rpc/ScenarioService/ListScenarioRuns", {}, **headers)
        assert status == 200
        counts.append(len(listed["runs"]) if listed.get("runs") else 0)
    assert counts == [1, 1, 0]


async def test_other_origins_and_a_token_can_be_configured(tmp_path: Path) -> None:
    origin = "https://example.org"
    settings = {"edge_origins": (origin,), "edge_token": "secret", "edge_hosts": ("edge.example.org",)}
    async with serving_edge(tmp_path, **settings) as client:
        preflight = {"origin": origin, "access-control-request-method": "POST"}
        async with client.http.options(client.url + PATH, headers=preflight) as response:
            assert response.status == 204
            assert response.headers["access-control-allow-origin"] == origin
            assert "last-event-id" in response.headers["access-control-allow-headers"]
        status, problem = await client.post(PATH, origin=origin)
        assert (status, problem["code"]) == (401, "TOKEN_REQUIRED")
        status, _ = await client.post(PATH, authorization="Bearer other")
        assert status == 401
        headers = {"origin": origin, "authorization": "Bearer secret", "host": "edge.example.org"}
        async with client.http.post(client.url + PATH, json={}, headers=headers) as response:
            assert response.status == 200
            assert response.headers["access-control-allow-origin"] == origin
        async with client.http.get(f"{client.url}/docs") as response:
            assert response.status == 200


async def test_a_body_above_the_limit_is_refused_however_it_is_sent(tmp_path: Path) -> None:
    async with serving_edge(tmp_path, max_message_bytes=65_536) as client:
        body = b'{"description":"' + b"a" * 70_000 + b'"}'

        async def parts() -> object:
            yield body

        for data in (body, parts()):
            async with client.http.post(client.url + PATH, data=data, headers=JSON) as response:
                problem = await response.json(content_type=None)
            assert (response.status, problem["code"]) == (413, "BODY_TOO_LARGE")


async def test_an_edge_that_cannot_start_says_why(tmp_path: Path) -> None:
    open_edge = config_for(tmp_path, edge_listen="0.0.0.0:0")
    with pytest.raises(FailedPreconditionError, match="PERIPETY_EDGE_TOKEN"):
        async with serve_edge(open_edge, "127.0.0.1:1"):
            pass
    async with serve_edge(config_for(tmp_path, edge_listen="127.0.0.1:0"), "127.0.0.1:1") as url:
        taken = config_for(tmp_path, edge_listen=url.removeprefix("http://").rstrip("/"))
        with pytest.raises(UnavailableError, match="PERIPETY_EDGE_LISTEN"):
            async with serve_edge(taken, "127.0.0.1:1"):
                pass


def test_lists_of_the_environment_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERIPETY_EDGE_ORIGINS", "https://a.example, https://b.example:8443")
    monkeypatch.setenv("PERIPETY_EDGE_HOSTS", "a.example")
    config = Config.from_environment()
    assert config.edge_origins == ("https://a.example", "https://b.example:8443")
    assert config.edge_hosts == ("a.example",)
    monkeypatch.setenv("PERIPETY_EDGE_ORIGINS", "a.example/path")
    with pytest.raises(InvalidArgumentError, match="PERIPETY_EDGE_ORIGINS"):
        Config.from_environment()
