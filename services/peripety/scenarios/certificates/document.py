"""Document of a certificate: canonical JSON, named by its hash.

It contains only the result, not the machine or the time. Equal inputs result in equal bytes.
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
    """Return the canonical document of a certificate."""
    return sim.canonical(fields(certificate))


def fields(certificate: Certificate) -> dict[str, Any]:
    """Return the certificate as JSON values."""
    return {**_KIND, **_adapter().dump_python(certificate, mode="json")}


def certificate_hash(document: bytes) -> str:
    """Return the SHA-256 of a document in hex, which is the name of the certificate."""
    return hashlib.sha256(document).hexdigest()


def decode(document: bytes) -> Certificate:
    """Parse the document of a certificate; white space around it is ignored.

    Raises:
        InvalidArgumentError: `CERTIFICATE_INVALID`, the document is not a certificate in canonical form.
    """
    document = document.strip()
    try:
        # Canonical form writes large floats as integers, which exceed the limit of integer parsing.
        certificate = _adapter().validate_python(json.loads(document, parse_int=float))
        written = encode(certificate)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"/{segment}" for segment in first["loc"])
        raise _invalid(f"{place or 'the document'}: {first['msg']}") from None
    except (ValueError, RecursionError, InvalidArgumentError):
        raise _invalid("it is not JSON, or exceeds the limits for numbers, texts and depth") from None
    # Lenient conversions, such as a number in quotes, do not survive the round trip.
    if written != document:
        raise _invalid("it is not in canonical form, or has unknown keys: use the original file")
    return certificate


def _invalid(reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The document is not a certificate of this version: {reason}", code="CERTIFICATE_INVALID"
    )


@cache
def _adapter() -> TypeAdapter[Certificate]:
    """Return the type adapter, created on first use because that takes some milliseconds."""
    return TypeAdapter(Certificate)
