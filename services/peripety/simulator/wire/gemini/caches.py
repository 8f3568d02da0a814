"""Explicit caches: contents stored under a name, used as a prompt prefix."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Api, Prompt, Usage
from peripety.simulator.truth.bill import Ledger, bill, storage
from peripety.simulator.truth.cache.contents import DEFAULT_TTL, CachedContent, Contents
from peripety.simulator.truth.keys import fingerprint
from peripety.simulator.truth.models import catalogue
from peripety.simulator.wire.gemini import checks, requests
from peripety.simulator.wire.gemini.calls import key, page
from peripety.simulator.wire.gemini.proto import read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.simulator.wire.base import Call, Service

__all__ = ["create", "delete", "get", "listed", "prefixed", "update"]

_MESSAGE = "CachedContent"
_STORED = ("system_instruction", "tools", "tool_config", "contents")
_ID_LENGTH = 32
_LATEST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def prefixed(fields: Mapping[str, Any], call: Call, service: Service) -> Mapping[str, Any]:
    """Return a request with the stored contents that it names before its own.

    Raises:
        ApiError: the contents do not exist, or the request repeats members that are stored with them.
    """
    name = fields.get("cached_content")
    if name is None:
        return fields
    if any(each in fields for each in ("system_instruction", "tools", "tool_config")):
        raise checks.invalid(
            "CachedContent can not be used with GenerateContent request setting system_instruction, tools or "
            "tool_config.\n\nProposed fix: move those values to CachedContent from GenerateContent request.",
            "cached_content",
        )
    stored = _contents(service).get(name, _owner(call), service.now()).value
    return {**fields, **stored, "contents": [*stored.get("contents", ()), *fields.get("contents", ())]}


def create(call: Call, service: Service) -> dict[str, Any]:
    """Store contents."""
    fields = read(_MESSAGE, call.body)
    model = fields.get("model", "").removeprefix("models/")
    if not model:
        raise checks.invalid("* CreateCachedContentRequest.model: model is required\n", "model")
    checks.check_contents(fields, _MESSAGE, required=False)
    checks.check_tools(fields, _MESSAGE)
    tokens = Prompt(requests.blocks(fields)).tokens
    card = catalogue().find(model, Api.GEMINI)
    minimum = card.cache.minimum
    if tokens < minimum:
        raise checks.invalid(
            f"Cached content is too small. total_token_count={tokens}, min_total_token_count={minimum}"
        )
    now = service.now()
    value = {name: fields[name] for name in _STORED if name in fields}
    if "display_name" in fields:
        value["display_name"] = fields["display_name"]
    content = CachedContent(
        name=_new_name(call, service),
        owner=_owner(call),
        model=model,
        tokens=tokens,
        created=now,
        updated=now,
        expires=_expires(fields, now),
        value=value,
    )
    _contents(service).put(content)
    usage = Usage(tokens)
    Ledger(service.objects("bills")).add(content.owner, model, usage, bill(card, usage, now))
    _charge_storage(service, content, content.expires - now)
    return _written(content)


def get(call: Call, service: Service) -> dict[str, Any]:
    """Return stored contents."""
    return _written(_contents(service).get(_name(call), _owner(call), service.now()))


def listed(call: Call, service: Service) -> dict[str, Any]:
    """Return a page of all contents of the key."""
    mine = _contents(service).of(_owner(call), service.now())
    return page("cachedContents", [_written(content) for content in mine], call)


def update(call: Call, service: Service) -> dict[str, Any]:
    """Change the expiry time of stored contents, the only member that can be changed."""
    fields = read(_MESSAGE, call.body)
    unchangeable = fields.keys() - {"ttl", "expire_time", "name"}
    if unchangeable or not fields.keys() & {"ttl", "expire_time"}:
        raise checks.invalid(
            "* UpdateCachedContentRequest.update_mask: only ttl or expire_time can be updated\n"
        )
    now = service.now()
    contents = _contents(service)
    before = contents.get(_name(call), _owner(call), now)
    content = contents.extend(before.name, before.owner, now, expires=_expires(fields, now))
    _charge_storage(service, content, content.expires - before.expires)
    return _written(content)


def delete(call: Call, service: Service) -> dict[str, Any]:
    """Delete stored contents."""
    contents, now = _contents(service), service.now()
    content = contents.get(_name(call), _owner(call), now)
    contents.delete(content.name, content.owner, now)
    _charge_storage(service, content, now - content.expires)
    return {}


def _charge_storage(service: Service, content: CachedContent, seconds: float) -> None:
    """Charge the owner for storage time in advance, or refund it."""
    charged = storage(catalogue().find(content.model, Api.GEMINI), content.tokens, seconds, service.now())
    Ledger(service.objects("bills")).charge(content.owner, content.model, charged)


def _contents(service: Service) -> Contents:
    return Contents(service.objects("cachedContents"))


def _owner(call: Call) -> str:
    return fingerprint(key(call))


def _name(call: Call) -> str:
    return f"cachedContents/{call.params['id']}"


def _new_name(call: Call, service: Service) -> str:
    """Return an unused name. The same order of creation gives the same names in every run."""
    taken = service.objects("cachedContents")
    number = 0
    while True:
        seed = f"{_owner(call)} {service.now()} {number} ".encode() + call.body
        name = f"cachedContents/{hashlib.sha256(seed).hexdigest()[:_ID_LENGTH]}"
        if taken.get(name) is None:
            return name
        number += 1


def _expires(fields: Mapping[str, Any], now: float) -> float:
    expires = float(fields.get("expire_time", now + fields.get("ttl", DEFAULT_TTL)))
    if expires <= now:
        raise checks.invalid("* CachedContent.expiration: the expiration time must be in the future\n")
    if expires > _LATEST:
        raise checks.invalid(
            "* CachedContent.expiration: the expiration time must not be after the year 9999\n"
        )
    return expires


def _written(content: CachedContent) -> dict[str, Any]:
    shown = {"displayName": content.value["display_name"]} if "display_name" in content.value else {}
    return {
        "name": content.name,
        "model": f"models/{content.model}",
        **shown,
        "createTime": _timestamp(content.created),
        "updateTime": _timestamp(content.updated),
        "expireTime": _timestamp(content.expires),
        "usageMetadata": {"totalTokenCount": content.tokens},
    }


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
