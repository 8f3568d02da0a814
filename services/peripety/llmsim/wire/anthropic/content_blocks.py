"""Content blocks: the members of each type, the roles that may use it, and its token count."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.llmsim.determinism import is_own_signature
from peripety.llmsim.provider_rules import models
from peripety.llmsim.types import CacheBreakpoint, SimRole
from peripety.llmsim.wire.anthropic.errors import invalid_request
from peripety.llmsim.wire.base import block_cache_key
from peripety.llmsim.wire.request_parser import Fields, JsonType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


# Token count of an image or a binary document; the provider's count depends on its size.
IMAGE_TOKENS = 1600
PAGE_TOKENS = 3000

# Blocks that cannot have a breakpoint.
KINDS_WITHOUT_BREAKPOINT = frozenset({"thinking", "redacted_thinking"})

_TTLS = ("5m", "1h")
_IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")

_USER_READERS = frozenset({"tool_result", "container_upload"})
_ASSISTANT_READERS = frozenset({"tool_use", "thinking", "redacted_thinking", "server_tool_use"})
_MEDIA = frozenset({"image", "document", "search_result"})
# Blocks of server tools in a history are not checked.
_OPAQUE = (
    "bash_code_execution_tool_result",
    "code_execution_tool_result",
    "container_upload",
    "server_tool_use",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "web_fetch_tool_result",
    "web_search_tool_result",
)


@dataclass(frozen=True, slots=True)
class ContentBlock:
    """A block of a message or of the system prompt.

    Attributes:
        type: its type.
        value: its members, as sent.
        path: its path in the body.
        marker: the cache breakpoint on it.
    """

    type: str
    value: Mapping[str, Any]
    path: tuple[str | int, ...]
    marker: CacheBreakpoint | None = None

    @property
    def cacheable(self) -> bool:
        """True if the block can have a breakpoint."""
        return self.type not in KINDS_WITHOUT_BREAKPOINT

    def cache_key(self, role: SimRole) -> bytes:
        """Return the cache key: the block and its role, without markers and unset members."""
        return block_cache_key(
            {**{k: v for k, v in self.value.items() if v is not None}, "role": role},
            "cache_control",
        )

    @property
    def tokens(self) -> int:
        """Number of input tokens."""
        return _block_tokens(self.value)

    @property
    def has_image(self) -> bool:
        """True if the block contains an image."""
        nested = self.value.get("content")
        return self.type == "image" or (
            isinstance(nested, list)
            and any(isinstance(each, dict) and each.get("type") == "image" for each in nested)
        )

    @property
    def text(self) -> str:
        """The text of a text block or of a tool result."""
        if self.type == "text":
            return str(self.value["text"])
        nested = self.value.get("content", "")
        if isinstance(nested, str):
            return nested
        return "\n".join(each["text"] for each in nested if each.get("type") == "text")


def read_blocks(fields: Fields, name: str, role: SimRole, *, strict: bool) -> list[ContentBlock]:
    """Parse the content of a message: a text, or blocks.

    Args:
        fields: the message.
        name: the member that holds the content.
        role: the role of the message.
        strict: True to apply the rules of the newer API version.

    Raises:
        ApiError: a block is not valid, or not allowed for this role.
    """
    value = fields.get(name, JsonType.STRING, JsonType.ARRAY)
    if isinstance(value, str):
        return [_text_block(value, fields.path_of(name))] if value else []
    blocks = [_read_block(block, _MESSAGE) for block in fields.objects(name)]
    for block in blocks:
        _check_role(block, role, strict=strict)
    return blocks


def read_system(fields: Fields) -> list[ContentBlock]:
    """Parse the system prompt: a text, or text blocks."""
    value = fields.get("system", JsonType.STRING, JsonType.ARRAY, default="")
    if isinstance(value, str):
        return [_text_block(value, fields.path_of("system"))] if value else []
    return [_read_block(block, {"text": _text}) for block in fields.objects("system")]


def read_marker(fields: Fields) -> CacheBreakpoint | None:
    """Parse the member `cache_control`."""
    control = fields.object("cache_control", None)
    if control is None:
        return None
    control.choice("type", ("ephemeral",))
    control.reject_others("type", "ttl")
    return CacheBreakpoint(control.choice("ttl", _TTLS, "5m"))


def _text_block(text: str, place: tuple[str | int, ...]) -> ContentBlock:
    if not text.strip():
        raise invalid_request("text content blocks must contain non-whitespace text", place[:1])
    return ContentBlock("text", {"type": "text", "text": text}, place)


_Readers = dict[str, "Callable[[Fields], None]"]


def _read_block(fields: Fields, readers: _Readers) -> ContentBlock:
    type_ = fields.text("type")
    if type_ not in readers:
        expected = ", ".join(f"'{name}'" for name in sorted(readers))
        raise invalid_request(
            f"Input tag '{type_}' found using 'type' does not match any of the expected tags: {expected}",
            fields.path,
        )
    # The type is a step of the path, as in the messages of the provider.
    tagged = Fields(fields.value, fields.path_of(type_), fields.messages)
    readers[type_](tagged)
    return ContentBlock(type_, fields.value, fields.path, read_marker(tagged))


def _check_role(block: ContentBlock, role: SimRole, *, strict: bool) -> None:
    allowed = {
        SimRole.USER: block.type not in _ASSISTANT_READERS,
        SimRole.ASSISTANT: block.type not in _USER_READERS and not (strict and block.type == "document"),
        SimRole.SYSTEM: block.type == "text",
    }
    if not allowed[role]:
        owner = "user" if block.type in _USER_READERS | _MEDIA else "assistant"
        raise invalid_request(f"`{block.type}` blocks can only be in `{owner}` messages", block.path[:2])
    if strict and role is SimRole.USER and block.type == "text" and block.value.get("citations"):
        raise invalid_request(
            "citations are not permitted on text blocks of user messages",
            (*block.path, "text", "citations"),
        )


# ---- what each type holds


def _text(fields: Fields) -> None:
    fields.reject_others("type", "text", "citations", "cache_control")
    text = fields.text("text")
    fields.get("citations", JsonType.ARRAY, default=None)
    if text.strip():
        return
    if text == "" and fields.value.get("cache_control") is not None:
        raise invalid_request("cache_control cannot be set for empty text blocks", fields.path)
    what = "be non-empty" if text == "" else "contain non-whitespace text"
    raise invalid_request(f"text content blocks must {what}", fields.path[:1])


def _image(fields: Fields) -> None:
    fields.reject_others("type", "source", "transformations", "cache_control")
    fields.object("transformations", None)
    _check_source(fields, {"base64": _IMAGE_TYPES, "url": (), "file": ()})


def _document(fields: Fields) -> None:
    fields.reject_others("type", "source", "citations", "context", "title", "cache_control")
    fields.object("citations", None)
    fields.text("context", None)
    fields.text("title", None)
    kinds = {"base64": ("application/pdf",), "text": ("text/plain",), "url": (), "file": (), "content": ()}
    _check_source(fields, kinds)


def _check_source(fields: Fields, kinds: Mapping[str, Sequence[str]]) -> None:
    """Check the source of an image or a document. `kinds` has the media types per source type."""
    source = fields.object("source")
    kind = source.choice("type", tuple(kinds))
    source = Fields(source.value, source.path_of(kind), source.messages)
    if kind in ("url", "file"):
        member = "url" if kind == "url" else "file_id"
        source.reject_others("type", member)
        source.text(member)
    elif kind == "content":
        source.reject_others("type", "content")
        if isinstance(source.get("content", JsonType.STRING, JsonType.ARRAY), list):
            for block in source.objects("content"):
                _read_block(block, {"text": _text, "image": _image})
    else:
        source.reject_others("type", "media_type", "data")
        source.choice("media_type", kinds[kind])
        source.text("data")


def _search_result(fields: Fields) -> None:
    fields.reject_others("type", "content", "source", "title", "citations", "cache_control")
    fields.text("source")
    fields.text("title")
    fields.object("citations", None)
    for block in fields.objects("content"):
        _read_block(block, {"text": _text})


def _thinking(fields: Fields) -> None:
    fields.reject_others("type", "thinking", "signature")
    fields.text("thinking")
    if not is_own_signature(fields.text("signature")):
        raise invalid_request("Invalid `signature` in `thinking` block", fields.path[:-1])


def _redacted_thinking(fields: Fields) -> None:
    fields.reject_others("type", "data")
    fields.text("data")


def _tool_use(fields: Fields) -> None:
    fields.reject_others("type", "id", "name", "input", "caller", "toolset_name", "cache_control")
    _call_id(fields, "id")
    fields.text("name")
    fields.object("input")


def _tool_result(fields: Fields) -> None:
    fields.reject_others("type", "tool_use_id", "content", "is_error", "toolset_name", "cache_control")
    _call_id(fields, "tool_use_id")
    fields.flag("is_error", default=None)
    if isinstance(fields.get("content", JsonType.STRING, JsonType.ARRAY, default=""), list):
        for block in fields.objects("content"):
            if "cache_control" in block:
                raise invalid_request("Extra inputs are not permitted", block.path_of("cache_control"))
            _read_block(block, _RESULT)


def _call_id(fields: Fields, name: str) -> None:
    if not _CALL_ID.fullmatch(fields.text(name)):
        raise invalid_request("String should match pattern '^[a-zA-Z0-9_-]+$'", fields.path_of(name))


def _accept_any(_fields: Fields) -> None:
    """Accept any members."""


_RESULT: _Readers = {
    "text": _text,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
    "tool_reference": _accept_any,
    "browser_state": _accept_any,
}
_MESSAGE: _Readers = {
    "text": _text,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
    "thinking": _thinking,
    "redacted_thinking": _redacted_thinking,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    **dict.fromkeys(_OPAQUE, _accept_any),
}


# ---- what it weighs


def _block_tokens(block: Mapping[str, Any]) -> int:
    match block.get("type"):
        case "text":
            return models.count_tokens(block["text"])
        case "image":
            return IMAGE_TOKENS
        case "document":
            return _document_tokens(block["source"])
        case "tool_result" if isinstance(block.get("content"), list):
            return models.count_tokens(block["tool_use_id"]) + sum(map(_block_tokens, block["content"]))
        case "tool_result":
            return models.count_tokens(block["tool_use_id"]) + models.count_tokens(block.get("content", ""))
        case _:
            return models.count_tokens(block_cache_key(block, "type", "cache_control").decode())


def _document_tokens(source: Mapping[str, Any]) -> int:
    match source["type"]:
        case "text":
            return models.count_tokens(source["data"])
        case "content":
            inner = source["content"]
            return models.count_tokens(inner) if isinstance(inner, str) else sum(map(_block_tokens, inner))
        case _:
            return PAGE_TOKENS
