"""Selection of the API of a request: by its path, then by its headers, then by its model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pytest

from peripety.llmsim.server.routing import Router
from peripety.llmsim.types import Api
from peripety.llmsim.wire.base import Route, WireOperation

if TYPE_CHECKING:
    from peripety.llmsim.wire.base import Wire


@dataclass
class Paths:
    api: Api
    routes: list[Route]


def wire(api: Api, *routes: str) -> Wire:
    parsed = [
        Route(method, path, WireOperation.GENERATE, path)
        for method, path in (route.split() for route in routes)
    ]
    return cast("Wire", Paths(api, parsed))


ROUTER = Router(
    [
        wire(Api.OPENAI_CHAT, "POST /v1/chat/completions", "GET /v1/models", "GET /v1/models/{model}"),
        wire(Api.DEEPSEEK, "POST /v1/chat/completions"),
        wire(Api.OPENAI_RESPONSES, "POST /v1/responses", "GET /v1/responses/{id}"),
        wire(Api.ANTHROPIC, "POST /v1/messages", "GET /v1/models", "GET /v1/models/{model}"),
        wire(
            Api.GEMINI,
            "GET /v1/models",
            "POST /v1beta/models/{model}:generateContent",
            "POST /v1beta/models/{model}:streamGenerateContent",
        ),
        wire(Api.OLLAMA, "POST /api/chat"),
    ],
)


def chosen(path: str, headers: dict[str, str] | None = None, body: bytes = b"") -> Api:
    return ROUTER.select_target(ROUTER.targets_at(path), headers or {}, body).wire.api


@pytest.mark.parametrize(
    ("path", "api"),
    [("/v1/messages", Api.ANTHROPIC), ("/api/chat", Api.OLLAMA), ("/v1/responses", Api.OPENAI_RESPONSES)],
)
def test_a_path_of_one_api_is_that_apis(path: str, api: Api) -> None:
    assert chosen(path) is api


def test_a_segment_gives_its_name_up_to_the_verb() -> None:
    (target,) = ROUTER.targets_at("/v1beta/models/gemini-3.1-pro:streamGenerateContent")
    assert target.params == {"model": "gemini-3.1-pro"}
    assert target.route.path == "/v1beta/models/{model}:streamGenerateContent"


def test_a_quoted_slash_belongs_to_the_name() -> None:
    assert [target.params for target in ROUTER.targets_at("/v1/models/org%2Fmodel%3A1")] == [
        {"model": "org/model:1"},
    ] * 2


@pytest.mark.parametrize(
    "path",
    [
        "/v1beta/models/:generateContent",
        "/v1beta/models/a/b:generateContent",
        "/v1/models/",
        "/v1/Messages",
        "/",
        "",
        "*",
    ],
)
def test_other_paths_are_nobodys(path: str) -> None:
    assert ROUTER.targets_at(path) == []


@pytest.mark.parametrize(
    ("headers", "api"),
    [
        ({"anthropic-version": "2026-10-21", "authorization": "Bearer k"}, Api.ANTHROPIC),
        ({"x-goog-api-key": "k"}, Api.GEMINI),
        ({"authorization": "Bearer k"}, Api.OPENAI_CHAT),
        ({}, Api.OPENAI_CHAT),
    ],
)
def test_headers_tell_whose_models_are_asked_for(headers: dict[str, str], api: Api) -> None:
    assert chosen("/v1/models", headers) is api


@pytest.mark.parametrize(
    ("body", "api"),
    [
        (b'{"model": "deepseek-flash"}', Api.DEEPSEEK),
        (b'{"messages": [], "mod\\u0065l":"deepseek-v4-pro"}', Api.DEEPSEEK),
        (b'{"model": "gpt-6", "messages": [{"content": "ask deepseek-flash"}]}', Api.OPENAI_CHAT),
        (b'{"model": "gpt-6", "metadata": {"model": "deepseek-flash"}}', Api.OPENAI_CHAT),
        (b'{"model": ["deepseek"]}', Api.OPENAI_CHAT),
        (b'["deepseek"]', Api.OPENAI_CHAT),
        (b'{"model": "deepseek', Api.OPENAI_CHAT),
    ],
)
def test_the_models_name_tells_deepseek_from_openai(body: bytes, api: Api) -> None:
    assert chosen("/v1/chat/completions", {}, body) is api


@pytest.mark.parametrize(
    ("path", "headers", "api"),
    [
        ("/v1beta/nothing", {}, Api.GEMINI),
        ("/api/nothing", {}, Api.OLLAMA),
        ("/v1/messages/batches/1", {}, Api.ANTHROPIC),
        ("/v1/responses/1/2", {"x-api-key": "k"}, Api.OPENAI_RESPONSES),
        ("/v1/complete", {"anthropic-version": "2023-06-01"}, Api.ANTHROPIC),
        ("/v2", {"x-goog-api-key": "k"}, Api.GEMINI),
        ("/v2", {}, Api.OPENAI_CHAT),
    ],
)
def test_unknown_paths_are_answered_by_the_likeliest_api(
    path: str,
    headers: dict[str, str],
    api: Api,
) -> None:
    assert ROUTER.guess_wire(path, headers).api is api


def test_an_api_that_is_not_served_answers_for_nothing() -> None:
    router = Router([wire(Api.OLLAMA, "POST /api/chat")])
    assert router.guess_wire("/v1/messages", {}).api is Api.OLLAMA
