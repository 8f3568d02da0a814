"""The document of a certificate: canonical JSON, named by its hash.

It holds what the certificate says and nothing of who computed it, or when: the same question has the same
bytes.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from peripety import sim
from peripety.errors import InvalidArgumentError
from peripety.scenarios.certificates.model import Certificate

__all__ = ["certificate_hash", "decode", "encode", "fields"]

_KIND = {"kind": "peripety.certificate", "version": 1}


def encode(certificate: Certificate) -> bytes:
    """The canonical document of a certificate."""
    return sim.canonical(fields(certificate))


def fields(certificate: Certificate) -> dict[str, Any]:
    """The same as JSON values."""
    return {**_KIND, **_adapter().dump_python(certificate, mode="json")}


def certificate_hash(document: bytes) -> str:
    """SHA-256 of a document, in hex: the name of the certificate."""
    return hashlib.sha256(document).hexdigest()


def decode(document: bytes) -> Certificate:
    """A certificate from its document; white space around it does not matter.

    Raises:
        InvalidArgumentError: `CERTIFICATE_INVALID`, the document is no certificate in canonical form.
    """
    document = document.strip()
    try:
        # Canonical form writes large floats as integers, too long for what is read as an int.
        certificate = _adapter().validate_python(json.loads(document, parse_int=float))
        written = encode(certificate)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"/{segment}" for segment in first["loc"])
        raise _invalid(f"{place or 'the document'}: {first['msg']}") from None
    except (ValueError, RecursionError, InvalidArgumentError):
        raise _invalid(
            "it is not JSON, or beyond what the engine takes for numbers, texts and depth"
        ) from None
    # What was understood too kindly, such as a number in quotes, is not written like that.
    if written != document:
        raise _invalid(
            "it is not in canonical form, or has keys that a certificate has not: take it as it was written"
        )
    return certificate


def _invalid(reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The document is no certificate of this version: {reason}", code="CERTIFICATE_INVALID"
    )


@cache
def _adapter() -> TypeAdapter[Certificate]:
    """Made when first wanted: it takes some milliseconds, which most commands can do without."""
    return TypeAdapter(Certificate)
