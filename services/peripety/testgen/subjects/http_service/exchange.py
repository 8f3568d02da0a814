"""Exchange with a service, inside the sandbox: start it, send requests, and write the responses to a file.

Usage: `python exchange.py DESCRIPTOR PROGRAM [ARGUMENT...]`. The file descriptor holds a JSON object, the
job: `port`, `seconds` and `requests`, and for gRPC `grpc` with the `script` and the `descriptors` of
`GrpcCalls`. Of the program that is measured, `begin` sends the requests from a thread inside of it. Its
process ends after the last response.

It runs in the interpreter of the program, so it imports the standard library only.
"""

from __future__ import annotations

import atexit
import base64
import functools
import http.client
import importlib.util
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

RESULT = "peripety-responses.json"
"""The file with the responses, in the working directory of the service."""

_HOST = "127.0.0.1"
_MAX_BODY_BYTES = 256 * 1024
_WAITING_SECONDS = 0.01
_NO_LINGER = struct.pack("ii", 1, 0)
EXPRESSION = re.compile(r"\{\$response\.(\d+)\.body(?:#(/[^}]*))?\}")


def main() -> None:
    """Run the program of the command line, and exchange messages with it."""
    descriptor, *argv = sys.argv[1:]
    with os.fdopen(int(descriptor), "r+b") as file:
        job = json.loads(file.read())
    service = subprocess.Popen(argv, stdin=subprocess.DEVNULL)  # noqa: S603 - its purpose
    try:
        _write_result(os.getcwd(), _exchange(job, lambda: service.poll() is None))
    finally:
        service.kill()
        service.wait()


def begin(job: Any) -> None:
    """Exchange messages from a thread of the process of the service, which ends it after the last one."""
    threading.Thread(target=_exchange_and_leave, args=(job, os.getcwd()), daemon=True).start()


def _exchange_and_leave(job: Any, directory: str) -> None:
    _write_result(directory, _exchange(job, lambda: True))
    with suppress(BaseException):
        atexit._run_exitfuncs()  # noqa: SLF001 - as the interpreter does at its end
    os._exit(0)


def _write_result(directory: str, result: Any) -> None:
    with open(os.path.join(directory, RESULT), "w", encoding="ascii") as file:
        file.write(json.dumps(result))


def _exchange(job: Any, is_running: Any) -> dict[str, Any]:
    until = time.monotonic() + float(job["seconds"])
    while not _accepts(_HOST, job["port"]):
        if not is_running():
            return {"error": "it ended before it accepted a connection", "responses": []}
        if time.monotonic() > until:
            return {"error": f"it accepts no connection on port {job['port']}", "responses": []}
        time.sleep(_WAITING_SECONDS)
    return send_requests(job, _HOST, until)


def send_requests(job: Any, host: str, until: float) -> dict[str, Any]:
    """Send the requests of a job to a service that is running, until one gets no response.

    Args:
        job: the job.
        host: the host of the service.
        until: the time limit, as of the monotonic clock.

    Returns:
        `responses`, and `error`, which is empty for none; for gRPC without descriptors also `service`.
    """
    responses: list[Any] = []
    told: dict[str, Any] = {}
    calls = None
    try:
        if job.get("grpc"):
            calls = _load_calls(job["grpc"]["script"])(f"{host}:{job['port']}", job["grpc"]["descriptors"])
            if not job["grpc"]["descriptors"]:
                told["service"] = calls.describe()
        for request in job["requests"]:
            send = _send if calls is None else functools.partial(_send_call, calls)
            responses.append(send(job["port"], request, responses, until))
    except (OSError, ValueError, ImportError, http.client.HTTPException) as error:
        return {"error": f"no response: {type(error).__name__}: {error}", "responses": responses}
    finally:
        if calls is not None:
            calls.close()
    return {**told, "error": "", "responses": responses}


def _load_calls(script: str) -> Any:
    """Load the class of calls under a name that no program uses."""
    spec = importlib.util.spec_from_file_location("_peripety_calls", script)
    assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - the file exists
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.GrpcCalls


def _send_call(calls: Any, _port: int, request: Any, responses: list[Any], until: float) -> dict[str, Any]:
    bodies = [base64.b64decode(one["body"]).decode(errors="replace") for one in responses]
    path, body = (resolve_expressions(request[name] or "", bodies) for name in ("path", "body"))
    headers = [(one["name"].lower(), resolve_expressions(one["value"], bodies)) for one in request["headers"]]
    status, details, data = calls.send(path, body, headers, until)
    told = base64.b64encode((data if status == "OK" else details).encode()).decode()
    return {"status": status, "type": "", "location": "", "body": told}


def _accepts(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), 1.0) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            return True
    except OSError:
        return False


def _send(port: int, request: Any, responses: list[Any], until: float) -> dict[str, Any]:
    left = max(until - time.monotonic(), 0.1)
    connection = http.client.HTTPConnection(_HOST, port, timeout=left)
    connection.connect()
    # The port is free again at once, for the next process that runs the service.
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    bodies = [base64.b64decode(one["body"]).decode(errors="replace") for one in responses]
    path, body = (resolve_expressions(request[name] or "", bodies) for name in ("path", "body"))
    headers = {one["name"]: resolve_expressions(one["value"], bodies) for one in request["headers"]}
    if request["body"] is not None and "content-type" not in {name.lower() for name in headers}:
        headers["Content-Type"] = "application/json"
    headers.setdefault("Connection", "close")
    sent = None if request["body"] is None else body.encode(errors="surrogateescape")
    connection.request(request["method"], path, sent, headers)
    response = connection.getresponse()
    data = response.read(_MAX_BODY_BYTES)
    told = {
        "status": response.status,
        "type": response.headers.get("Content-Type", ""),
        "location": response.headers.get("Location", ""),
        "body": base64.b64encode(data).decode(),
    }
    connection.close()
    return told


def resolve_expressions(text: str, bodies: list[str]) -> str:
    """Replace runtime expressions such as `{$response.1.body#/id}` by parts of the bodies of responses.

    Raises:
        ValueError: a response or its part is missing.
    """

    def part_of(found: Any) -> str:
        body = bodies[int(found[1]) - 1]
        if not found[2]:
            return body
        part = json.loads(body)
        for key in found[2].split("/")[1:]:
            name = key.replace("~1", "/").replace("~0", "~")
            part = part[int(name)] if isinstance(part, list) else part[name]
        return part if isinstance(part, str) else json.dumps(part)

    try:
        return EXPRESSION.sub(part_of, text)
    except (LookupError, TypeError, ValueError):
        raise ValueError(f"no response has the part of {text[:200]}") from None


if __name__ == "__main__":
    main()
