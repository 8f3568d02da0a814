"""Signed policies: a canonical JSON document of a policy, its version and hashes, with an Ed25519 signature.

The signature is over the canonical form of all other members, so it covers the rules, the foundation, the
tools, the name and the version. A bundle is read in this order: its shape, its signature by a trusted key,
its hashes, its policy. Each failure refuses the whole bundle.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from peripety.engine import canonicalize, compile_policy, parse
from peripety.errors import FailedPreconditionError, InvalidArgumentError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.engine import Policy


_BUNDLE_VERSION = "1.0"
_SIGNED_BEFORE = b"peripety policy bundle 1.0\n"
"""Start of the signed bytes, so that a signature for another purpose is not one of a bundle."""
_MEMBERS = {"bundle_version", "name", "version", "hashes", "policy", "signature"}
_FOUNDATION = ("invariants", "lists", "context")
_MOST_CHARACTERS = 64
_KEY_DIGITS = 16


@dataclass(frozen=True, slots=True)
class SignedPolicy:
    """A policy whose signature was verified.

    Attributes:
        name: the name of the policy, the same in all of its versions.
        version: its version, from 1.
        key_id: the id of the key that signed it.
        policy: the compiled policy.
    """

    name: str
    version: int
    key_id: str
    policy: Policy


def make_keys() -> tuple[bytes, bytes]:
    """Return a new private key and its public key, in PEM."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def read_private_key(pem: bytes) -> Ed25519PrivateKey:
    """Read a private key.

    Raises:
        InvalidArgumentError: `KEY_INVALID`; the text is not an Ed25519 key without a password.
    """
    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidArgumentError(
            "key: is not a private Ed25519 key in PEM without a password; make one with"
            " `peripety policy new-key`",
            code="KEY_INVALID",
        )
    return key


def read_public_key(pem: bytes) -> Ed25519PublicKey:
    """Read a public key.

    Raises:
        InvalidArgumentError: `KEY_INVALID`; the text is not a public Ed25519 key.
    """
    try:
        key = load_pem_public_key(pem)
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidArgumentError(
            "key: is not a public Ed25519 key in PEM; use the .pub file of `peripety policy new-key`",
            code="KEY_INVALID",
        )
    return key


def describe_key(key: Ed25519PublicKey) -> str:
    """Return the id of a key: the first digits of the SHA-256 of its raw bytes."""
    return hashlib.sha256(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()[:_KEY_DIGITS]


def sign_policy(policy: Policy, name: str, version: int, key: Ed25519PrivateKey) -> bytes:
    """Return the bundle of a policy, in canonical JSON.

    Args:
        policy: the policy.
        name: its name, 1 to 64 characters.
        version: its version, from 1.
        key: the key that signs it.

    Raises:
        InvalidArgumentError: a bundle cannot have this name, version or policy.
    """
    bundle: dict[str, Any] = {
        "bundle_version": _BUNDLE_VERSION,
        "name": name,
        "version": version,
        "hashes": _hash_parts(policy.spec),
        "policy": policy.spec,
    }
    public = key.public_key()
    bundle["signature"] = {
        "algorithm": "Ed25519",
        "key_id": describe_key(public),
        "value": key.sign(_to_signed_bytes(bundle)).hex(),
    }
    data = canonicalize(bundle)
    try:
        open_bundle(data, [public])
    except FailedPreconditionError as error:
        raise InvalidArgumentError(error.message) from None
    return data


def open_bundle(data: bytes, trusted: Iterable[Ed25519PublicKey]) -> SignedPolicy:
    """Verify a bundle, and return its policy.

    Args:
        data: the bundle.
        trusted: the keys of which one must have signed it.

    Raises:
        FailedPreconditionError: `POLICY_UNTRUSTED`; it is not a sound bundle, or not signed by a trusted key.
        SpecError: the policy is invalid, although it is signed.
    """
    bundle = _parse_bundle(data)
    signature = bundle["signature"]
    keys = {describe_key(key): key for key in trusted}
    key = keys.get(signature["key_id"])
    if key is None:
        raise _untrusted(f"it is signed by the key {signature['key_id']}, which is not trusted")
    try:
        key.verify(bytes.fromhex(signature["value"]), _to_signed_bytes(bundle))
    except (InvalidSignature, ValueError):
        raise _untrusted("its signature is wrong: it was changed, or signed by another key") from None
    if bundle["hashes"] != _hash_parts(bundle["policy"]):
        raise _untrusted("its hashes are not those of its policy")
    policy = compile_policy(canonicalize(bundle["policy"]))
    return SignedPolicy(bundle["name"], int(bundle["version"]), signature["key_id"], policy)


class TrustedPolicyReader:
    """Reader of the signed policy of an enforcement point, which never returns to an older version.

    Args:
        trusted: the keys of which one must have signed each bundle.
    """

    def __init__(self, trusted: Iterable[Ed25519PublicKey]) -> None:
        self._trusted = tuple(trusted)
        self._newest: tuple[str, int] | None = None

    def read(self, data: bytes) -> Policy:
        """Return the policy of a bundle.

        Raises:
            FailedPreconditionError: `POLICY_UNTRUSTED`; as `open_bundle`, or it is another policy or an older
                version than the one that was read before.
            SpecError: as `open_bundle`.
        """
        opened = open_bundle(data, self._trusted)
        name, version = self._newest or (opened.name, opened.version)
        if opened.name != name:
            raise _untrusted(f"it is the policy {opened.name!r}, not {name!r}; start again to use it")
        if opened.version < version:
            raise _untrusted(f"version {opened.version} is older than version {version}; sign a newer one")
        self._newest = name, opened.version
        return opened.policy


def _untrusted(reason: str) -> FailedPreconditionError:
    return FailedPreconditionError(f"the policy bundle is refused: {reason}", code="POLICY_UNTRUSTED")


def _parse_bundle(data: bytes) -> dict[str, Any]:
    """Parse a bundle, and check the types of its members; the policy is checked later."""
    try:
        bundle = parse(data)
    except SpecError as error:
        raise _untrusted(f"it is not a JSON document: {error.findings[0].message}") from None
    if isinstance(bundle, dict) and "policy_version" in bundle:
        raise _untrusted("it is a policy without a signature; use `peripety policy export`")
    if not isinstance(bundle, dict) or bundle.keys() != _MEMBERS:
        raise _untrusted(f"it must have exactly the members {', '.join(sorted(_MEMBERS))}")
    signature, version, name = bundle["signature"], bundle["version"], bundle["name"]
    is_signature = (
        isinstance(signature, dict)
        and signature.keys() == {"algorithm", "key_id", "value"}
        and all(isinstance(value, str) for value in signature.values())
    )
    wrong = {
        "bundle_version": bundle["bundle_version"] != _BUNDLE_VERSION,
        "name": not isinstance(name, str) or not 0 < len(name) <= _MOST_CHARACTERS,
        "version": isinstance(version, bool) or not isinstance(version, int) or version < 1,
        "hashes": not isinstance(bundle["hashes"], dict),
        "policy": not isinstance(bundle["policy"], dict),
        "signature": not is_signature or signature["algorithm"] != "Ed25519",
    }
    for member, is_wrong in wrong.items():
        if is_wrong:
            raise _untrusted(f"its member {member} is not one of version {_BUNDLE_VERSION}")
    return bundle


def _to_signed_bytes(bundle: Mapping[str, Any]) -> bytes:
    return _SIGNED_BEFORE + canonicalize({name: bundle[name] for name in bundle if name != "signature"})


def _hash_parts(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of a policy, its tools and its foundation, so that bundles can be compared."""
    parts = {
        "policy": spec,
        "tools": spec.get("tools", []),
        "foundation": {name: spec[name] for name in _FOUNDATION if name in spec},
    }
    return {name: hashlib.sha256(canonicalize(part)).hexdigest() for name, part in parts.items()}
