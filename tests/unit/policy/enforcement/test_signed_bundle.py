"""Signed policies: what is accepted, and that every other bundle is refused."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine import ToolRequest, canonicalize, compile_policy
from peripety.errors import FailedPreconditionError, InvalidArgumentError
from peripety.policy.enforcement.approvals import ApprovalQueue
from peripety.policy.enforcement.enforcement_point import Enforcer, PolicyFile
from peripety.policy.enforcement.signed_bundle import (
    TrustedPolicyReader,
    make_keys,
    open_bundle,
    read_private_key,
    read_public_key,
    sign_policy,
)
from support.engine.policies import policy_document, rule, tool

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = [tool("one", "alpha", input_schema={"type": "object"})]
POLICY = compile_policy(
    policy_document(
        tools=TOOLS, rules=[rule("a", "allow")], lists={"l": {"kind": "path", "values": ["/a"]}}, name="é"
    )
)
CLOSED = compile_policy(policy_document(tools=TOOLS, rules=[rule("b", "deny")]))
PRIVATE = read_private_key(make_keys()[0])
PUBLIC = PRIVATE.public_key()
OTHER = read_private_key(make_keys()[0])
BUNDLE = sign_policy(POLICY, "guard", 3, PRIVATE)


def _changed(**members: Any) -> bytes:
    return canonicalize({**json.loads(BUNDLE), **members})


def test_a_bundle_has_the_policy_its_version_and_its_key() -> None:
    opened = open_bundle(BUNDLE, [OTHER.public_key(), PUBLIC])
    assert (opened.name, opened.version, opened.policy.policy_hash) == ("guard", 3, POLICY.policy_hash)
    assert canonicalize(json.loads(BUNDLE)) == BUNDLE
    assert sign_policy(POLICY, "guard", 3, PRIVATE) == BUNDLE
    hashes = json.loads(BUNDLE)["hashes"]
    assert hashes["policy"] == POLICY.policy_hash
    other = json.loads(sign_policy(CLOSED, "guard", 4, PRIVATE))["hashes"]
    assert (hashes["tools"] == other["tools"], hashes["foundation"] == other["foundation"]) == (True, False)


_PARSED = json.loads(BUNDLE)
_RULES = {**_PARSED["policy"], "rules": [rule("a", "allow", roles=["a"])]}
WRONG = {
    "name": _changed(name="other"),
    "version": _changed(version=4),
    "policy": _changed(policy=_RULES),
    "hashes": _changed(hashes={**_PARSED["hashes"], "tools": "0" * 64}),
    "signature": _changed(signature={**_PARSED["signature"], "value": "00" * 64}),
    "short signature": _changed(signature={**_PARSED["signature"], "value": "00"}),
    "no hex": _changed(signature={**_PARSED["signature"], "value": "zz"}),
    "algorithm": _changed(signature={**_PARSED["signature"], "algorithm": "none"}),
    "no signature": canonicalize({name: one for name, one in _PARSED.items() if name != "signature"}),
    "null signature": _changed(signature=None),
    "extra member": _changed(extra=1),
    "format": _changed(bundle_version="2.0"),
    "boolean version": _changed(version=True),
    "policy without a bundle": POLICY.document,
    "duplicate key": BUNDLE.replace(b'"version":3', b'"version":3,"version":3'),
    "garbage": b"{",
    "list": b"[]",
    "empty": b"",
}


@pytest.mark.parametrize("name", WRONG)
def test_every_change_refuses_the_bundle(name: str) -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        open_bundle(WRONG[name], [PUBLIC])
    assert caught.value.code == "POLICY_UNTRUSTED"


def test_an_untrusted_key_and_its_claim_to_be_another_are_refused() -> None:
    by_other = sign_policy(POLICY, "guard", 3, OTHER)
    claimed = json.loads(by_other)
    claimed["signature"]["key_id"] = _PARSED["signature"]["key_id"]
    for data in (by_other, canonicalize(claimed)):
        with pytest.raises(FailedPreconditionError):
            open_bundle(data, [PUBLIC])
    with pytest.raises(FailedPreconditionError):
        open_bundle(BUNDLE, [])


@pytest.mark.parametrize("place", range(0, len(BUNDLE), 97))
def test_a_changed_byte_refuses_the_bundle(place: int) -> None:
    data = BUNDLE[:place] + bytes([BUNDLE[place] ^ 1]) + BUNDLE[place + 1 :]
    with pytest.raises(FailedPreconditionError):
        open_bundle(data, [PUBLIC])


def test_what_cannot_be_bundled_and_what_is_no_key_is_named() -> None:
    for name, version in (("", 1), ("a" * 65, 1), ("a", 0)):
        with pytest.raises(InvalidArgumentError):
            sign_policy(POLICY, name, version, PRIVATE)
    private, public = make_keys()
    for read, pem in ((read_private_key, public), (read_public_key, private), (read_public_key, b"")):
        with pytest.raises(InvalidArgumentError) as caught:
            read(pem)
        assert caught.value.code == "KEY_INVALID"


def test_an_enforcement_point_takes_newer_versions_of_its_policy_only(tmp_path: Path) -> None:
    path = tmp_path / "policy.bundle"
    enforcer = Enforcer(
        PolicyFile(path, TrustedPolicyReader([PUBLIC]).read),
        "alpha",
        (),
        ApprovalQueue(1.0, lambda: 1.0),
        lambda: 1.0,
    )
    enforcer.set_listed_tools({"one": ("", {"type": "object"})})

    def decide(data: bytes) -> tuple[bool, str]:
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        verdict = asyncio.run(enforcer.decide("one", {}))
        assert enforcer.list_open_tools() == ({"one"} if verdict.is_forwarded else set())
        return verdict.is_forwarded, verdict.reason

    assert decide(BUNDLE) == (True, "")
    assert not decide(sign_policy(CLOSED, "guard", 4, PRIVATE))[0]
    is_forwarded, reason = decide(BUNDLE)
    assert (is_forwarded, "version 3 is older than version 4" in reason) == (False, True)
    is_forwarded, reason = decide(sign_policy(POLICY, "other", 9, PRIVATE))
    assert (is_forwarded, "it is the policy 'other'" in reason) == (False, True)
    assert not decide(sign_policy(POLICY, "guard", 9, OTHER))[0]
    assert not decide(POLICY.document)[0]
    assert decide(sign_policy(POLICY, "guard", 5, PRIVATE)) == (True, "")
    assert POLICY.decide(ToolRequest("alpha", "one", {})).rule_id == "a"
