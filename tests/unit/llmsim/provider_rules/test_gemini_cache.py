"""Gemini's caches, the implicit and the explicit ones, and APIs that report none."""

from __future__ import annotations

import pytest

from peripety.llmsim.provider_rules.prompt_cache import (
    DEFAULT_CONTENT_TTL,
    CachedContent,
    CachedContents,
    SimPromptCaches,
)
from peripety.llmsim.state import StateTable
from peripety.llmsim.types import Api, ApiError, ApiErrorKind
from support.gateway.requests import NOW, Client, block, prompt


@pytest.mark.parametrize(
    ("model", "minimum"),
    [("gemini-2.5-flash", 2048), ("gemini-2.5-pro", 2048), ("gemini-3.1-pro-preview", 4096)],
)
def test_what_was_sent_before_is_read_from_the_minimum_on(model: str, minimum: int) -> None:
    somebody = Client(Api.GEMINI, model)
    for tokens, read in ((minimum - 1, 0), (minimum, minimum)):
        asked = prompt(block("report ", tokens))
        assert somebody.ask(asked).read == 0
        visit = somebody.ask(asked)
        assert (visit.read, visit.written, visit.fresh) == (read, {}, tokens - read)


def test_models_before_2_5_cache_nothing_by_themselves() -> None:
    somebody = Client(Api.GEMINI, "gemini-2.0-flash")
    somebody.ask(prompt(block("report ", 9000)))
    assert somebody.ask(prompt(block("report ", 9000))).read == 0


@pytest.mark.parametrize(("api", "model"), [(Api.OLLAMA, "llama3.2"), (Api.IN_PROCESS, "claude-test")])
def test_local_models_report_no_cache(api: Api, model: str) -> None:
    somebody = Client(api, model)
    somebody.ask(prompt(block("report ", 9000)))
    visit = somebody.ask(prompt(block("report ", 9000)))
    assert (visit.read, visit.written, visit.fresh) == (0, {}, 9000)


# ---- explicit


STORED = block("report ", 3000)


@pytest.fixture
def contents() -> CachedContents:
    return CachedContents(StateTable())


def stored(name: str = "cachedContents/1", owner: str = "one", created: float = NOW) -> CachedContent:
    expires = created + DEFAULT_CONTENT_TTL
    return CachedContent(name, owner, "gemini-2.5-pro", 3000, created, created, expires, {"contents": []})


def test_stored_contents_are_there_for_an_hour(contents: CachedContents) -> None:
    contents.put(stored())
    assert contents.get("cachedContents/1", "one", NOW + 3599) == stored()
    with pytest.raises(ApiError) as error:
        contents.get("cachedContents/1", "one", NOW + 3600)
    assert error.value.kind is ApiErrorKind.PERMISSION
    assert contents.list_for_owner("one", NOW + 3600) == []


def test_stored_contents_are_their_owners(contents: CachedContents) -> None:
    contents.put(stored())
    with pytest.raises(ApiError):
        contents.get("cachedContents/1", "another", NOW)
    with pytest.raises(ApiError):
        contents.delete("cachedContents/1", "another", NOW)
    assert contents.list_for_owner("another", NOW) == []


def test_stored_contents_are_listed_from_the_latest_on(contents: CachedContents) -> None:
    for number in (1, 3, 2):
        contents.put(stored(f"cachedContents/{number}", created=NOW + number))
    assert [each.name[-1] for each in contents.list_for_owner("one", NOW + 9)] == ["3", "2", "1"]


def test_the_end_of_stored_contents_can_be_moved(contents: CachedContents) -> None:
    contents.put(stored())
    changed = contents.set_expiry("cachedContents/1", "one", NOW + 10, expires=NOW + 9000)
    assert (changed.updated, changed.expires) == (NOW + 10, NOW + 9000)
    assert contents.get("cachedContents/1", "one", NOW + 8999) == changed


def test_deleted_contents_are_gone(contents: CachedContents) -> None:
    contents.put(stored())
    contents.delete("cachedContents/1", "one", NOW)
    with pytest.raises(ApiError):
        contents.get("cachedContents/1", "one", NOW)


def asking(model: str = "gemini-2.5-pro") -> Client:
    table = StateTable()
    CachedContents(table).put(stored())
    return Client(Api.GEMINI, model, caches=SimPromptCaches(StateTable(), table))


def test_a_prompt_that_begins_with_stored_contents_reads_them() -> None:
    asked = prompt(STORED, block("summarise", 12, message=1), cachedContent="cachedContents/1")
    visit = asking().ask(asked)
    assert (visit.read, visit.written, visit.fresh) == (3000, {}, 12)


def test_stored_contents_cannot_be_used_with_another_model() -> None:
    with pytest.raises(ApiError) as error:
        asking("gemini-2.5-flash").look(prompt(STORED, cachedContent="cachedContents/1"))
    assert error.value.message == (
        "Model used by GenerateContent request (models/gemini-2.5-flash) and CachedContent "
        "(models/gemini-2.5-pro) has to be the same."
    )


def test_contents_that_are_not_there_cannot_be_used() -> None:
    with pytest.raises(ApiError) as error:
        asking().look(prompt(STORED, cachedContent="cachedContents/2"))
    assert (error.value.kind, error.value.message) == (
        ApiErrorKind.PERMISSION,
        "CachedContent not found (or permission denied)",
    )
