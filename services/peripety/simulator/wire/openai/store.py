"""Responses that are kept, so that later requests can continue or show them."""

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
    """What a response is kept under: nobody finds what was made with another key."""
    return f"{fingerprint(key)} {response_id}"


def entry(response: dict[str, Any], sent: list[dict[str, Any]]) -> Kept:
    """What is kept of a response, with the items that were sent for it."""
    return {"response": response, "input": [_shown(item, response["id"], at) for at, item in enumerate(sent)]}


def find(service: Service, key: str, response_id: str) -> Kept:
    """What is kept of a response.

    Raises:
        ApiError: there is none of this id.
    """
    _check_id("response_id", response_id)
    kept: Kept | None = service.objects(TABLE).get(kept_under(key, response_id))
    if kept is None:
        raise ApiError(ErrorKind.NOT_FOUND, f"Response with id '{response_id}' not found.")
    return kept


def delete(service: Service, key: str, response_id: str) -> None:
    """Forget a response."""
    service.objects(TABLE).put(kept_under(key, response_id), None)


def items(kept: Kept) -> dict[str, Any]:
    """The items that were sent for a response, as a list of one page, the newest first."""
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
    """Everything that was said up to a response, its own items included, oldest first.

    Raises:
        ApiError: the response, or one before it, is not there.
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
    """An item as it is listed: with an id and a status, and the content of a message in parts."""
    own = {"id": f"item_{response_id.removeprefix('resp_')}{at:02}", "status": "completed"}
    shown = own | {name: value for name, value in item.items() if value is not None}
    if isinstance(item.get("content"), str):
        kind = "output_text" if item["role"] == "assistant" else "input_text"
        shown["content"] = [{"type": kind, "text": item["content"]}]
    return shown
