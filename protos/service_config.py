"""Writes `clients/service-config.json`, the gRPC service config of every client, from the contract.

    python protos/service_config.py            write the files (`make generate`)
    python protos/service_config.py --check    only compare; exit 1 when a committed file is out of date

The Python and the Go client have copies, because a package contains only files of its own folder.

A call is retried if its method declares an `idempotency_level`. The timeout of a method is the longest time
that a client may wait for it; a caller can only shorten it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

PROTOS = Path(__file__).resolve().parent
CLIENTS = PROTOS.parent / "clients"
FILES = (
    CLIENTS / "service-config.json",
    CLIENTS / "python/peripety/client/service-config.json",
    CLIENTS / "go/service-config.json",
)

UNARY = "60s"
COMPUTED = "300s"
ANSWER = "600s"
LONG = "86400s"
EXCEPTIONS: dict[str, str | None] = {
    # Unary calls that run programs or simulations.
    "AnalyzePolicy": COMPUTED,
    "CompareBranches": COMPUTED,
    "CreateSession": COMPUTED,
    "DiffPolicies": COMPUTED,
    "DecidePartially": COMPUTED,
    "ExplainPolicy": COMPUTED,
    "InspectScenario": COMPUTED,
    "VerifyPolicy": COMPUTED,
    # Streams of one answer of a model.
    "Generate": ANSWER,
    "GenerateObject": ANSWER,
    "ResumeTurn": ANSWER,
    "TakeTurn": ANSWER,
    # A session or the calls of a proxy may be followed for days.
    "WatchApprovals": None,
    "WatchSession": None,
}
"""Timeouts of the methods to which neither `UNARY` nor `LONG` (streams) applies."""

# Only UNAVAILABLE is retried: no other status means both that the call may not have happened and that waiting
# helps. The throttle stops retries when one call in ten fails, so they never double the load.
RETRY_POLICY = {
    "maxAttempts": 4,
    "initialBackoff": "0.1s",
    "maxBackoff": "2s",
    "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"],
}
RETRY_THROTTLING = {"maxTokens": 10, "tokenRatio": 0.1}

_SERVICE = re.compile(r"^service (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_METHOD = re.compile(
    r"^  rpc (\w+)\((.*?)\) returns \((.*?)\)(?: \{\n    option idempotency_level = (\w+);\n  \}|;)$",
    re.MULTILINE,
)


class Method(NamedTuple):
    """A method of the contract.

    Attributes:
        service: full name of the service.
        name: name of the method.
        is_stream: True if either side sends a stream.
        level: declared idempotency level; empty if none is declared.
    """

    service: str
    name: str
    is_stream: bool
    level: str


def methods() -> Iterator[Method]:
    """Yield every method of the contract, by service."""
    for source in sorted((PROTOS / "peripety" / "api").glob("*/v1/*.proto")):
        text = source.read_text(encoding="utf-8")
        for service, body in _SERVICE.findall(text):
            package = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
            for name, request, response, level in _METHOD.findall(body):
                is_stream = f"{request} {response}".count("stream ") > 0
                yield Method(f"{package[1]}.{service}" if package else service, name, is_stream, level)


def timeout_of(method: Method) -> str | None:
    """Return the timeout of a method as a JSON duration; None for no timeout."""
    return EXCEPTIONS.get(method.name, LONG if method.is_stream else UNARY)


def service_config() -> dict[str, Any]:
    """Return the service config."""
    groups: dict[tuple[str | None, bool], list[dict[str, str]]] = {}
    for method in methods():
        key = (timeout_of(method), bool(method.level))
        groups.setdefault(key, []).append({"service": method.service, "method": method.name})
    return {
        "loadBalancingConfig": [{"round_robin": {}}],
        "methodConfig": [
            {
                "name": names,
                **({"timeout": timeout} if timeout else {}),
                **({"retryPolicy": RETRY_POLICY} if retried else {}),
            }
            for (timeout, retried), names in groups.items()
        ],
        "retryThrottling": RETRY_THROTTLING,
    }


def text() -> str:
    """Return the text of the file, with one line for each method."""
    written = json.dumps(service_config(), indent=2)
    return re.sub(r'\{\s+("service": "[^"]+"),\s+("method": "[^"]+")\s+\}', r"{ \1, \2 }", written) + "\n"


def main() -> None:
    """Write the service config, or compare it with the committed one."""
    parser = argparse.ArgumentParser(description="Write the gRPC service config of the clients.")
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 when out of date")
    check, fresh = parser.parse_args().check, text()
    for file in FILES:
        if not check:
            file.write_text(fresh, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != fresh:
            sys.exit(f"out of date, run `make generate`: {file.relative_to(PROTOS.parent)}")


if __name__ == "__main__":
    main()
