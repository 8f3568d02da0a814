"""Stored responses, which later requests can continue or retrieve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.model import ApiError, ErrorKind
from peripety.simulator.truth.keys import fingerprint
from peripety.simulator.wire.openai.wording import invalid

if TYPE_CHECKING:
    from peripety.simulator.wire.base import Service

__all__ = ["TABLE", "Kept", "delete", "entry", "find", "history", "items", "kept_under"]

TABLE = "responses"

Kept = dict[str, Any]


def kept_under(key: str, response_id: str) -> str:
    """Return the storage key of a response; it depends on the API key, so that other keys cannot find it."""
    return f"{fingerprint(key)} {response_id}"


def entry(response: dict[str, Any], sent: list[dict[str, Any]]) -> Kept:
    """Return the stored value of a response, with its input items."""
    return {"response": response, "input": [_shown(item, response["id"], at) for at, item in enumerate(sent)]}


def find(service: Service, key: str, response_id: str) -> Kept:
    """Return a stored response.

    Raises:
        ApiError: the response does not exist.
    """
    _check_id("response_id", response_id)
    kept: Kept | None = service.objects(TABLE).get(kept_under(key, response_id))
    if kept is None:
        raise ApiError(ErrorKind.NOT_FOUND, f"Response with id '{response_id}' not found.")
    return kept


def delete(service: Service, key: str, response_id: str) -> None:
    """Delete a stored response."""
    service.objects(TABLE).put(kept_under(key, response_id), None)


def items(kept: Kept) -> dict[str, Any]:
    """Return the input items of a response as a list of one page, newest first."""
    sent = kept["input"][::-1]
    ids = [item["id"] for item in sent]
    return {
        "object": "list",
        "data": sent,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
        "has_more": False,
    }


def history(service: Service, key: str, response_id: str) -> list[dict[str, Any]]:
    """Return all items up to a response, including its own, oldest first.

    Raises:
        ApiError: the response, or an earlier one, does not exist.
    """
    _check_id("previous_response_id", response_id)
    table = service.objects(TABLE)
    turns: list[list[dict[str, Any]]] = []
    at: str | None = response_id
    while at is not None:
        kept: Kept | None = table.get(kept_under(key, at))
        if kept is None:
            message = f"Previous response with id '{at}' not found."
            raise invalid(message, "previous_response_id", "previous_response_not_found")
        turns.append([*kept["input"], *kept["response"]["output"]])
        at = kept["response"]["previous_response_id"]
    return [item for turn in reversed(turns) for item in turn]


def _check_id(name: str, response_id: str) -> None:
    if not response_id.startswith("resp"):
        message = f"Invalid '{name}': '{response_id}'. Expected an ID that begins with 'resp'."
        raise invalid(message, name, "invalid_value")


def _shown(item: dict[str, Any], response_id: str, at: int) -> dict[str, Any]:
    """Return an item as listed: with an id and a status, and message content in parts."""
    own = {"id": f"item_{response_id.removeprefix('resp_')}{at:02}", "status": "completed"}
    shown = own | {name: value for name, value in item.items() if value is not None}
    if isinstance(item.get("content"), str):
        kind = "output_text" if item["role"] == "assistant" else "input_text"
        shown["content"] = [{"type": kind, "text": item["content"]}]
    return shown
