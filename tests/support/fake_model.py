"""An OpenAI-compatible server that writes when the test lets it."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class FakeModel:
    """Answers every prompt with the same pieces of text, waiting for a permit before each.

    Args:
        pieces: what it writes, one token after another.
    """

    def __init__(self, *pieces: str) -> None:
        self.pieces = pieces
        self.prompts: list[dict[str, Any]] = []
        self.url = ""
        self._permits = threading.Semaphore(0)
        self._stopped = False

    def permit(self, count: int = 1) -> None:
        """Let it write this many pieces."""
        for _ in range(count):
            self._permits.release()

    def wait_for_permit(self) -> bool:
        """Return whether to go on writing."""
        self._permits.acquire()
        return not self._stopped

    def stop(self) -> None:
        """End every answer that is being written."""
        self._stopped = True
        self._permits.release(1000)


@contextmanager
def serving_fake_model(*pieces: str, kind: type[FakeModel] = FakeModel) -> Iterator[FakeModel]:
    """Serve a fake model on a free port of this machine."""
    model = kind(*pieces)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(model))
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield model
    finally:
        model.stop()
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(model: FakeModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            model.prompts.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            try:
                self._write_answer()
            except OSError:
                self.close_connection = True

        def _write_answer(self) -> None:
            for piece in model.pieces:
                if not model.wait_for_permit():
                    return
                self._event({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
            self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            self.wfile.write(b"data: [DONE]\n\n")

        def _event(self, value: dict[str, Any]) -> None:
            self.wfile.write(f"data: {json.dumps({'object': 'chat.completion.chunk', **value})}\n\n".encode())
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            """Say nothing: the test reads what it needs from the model."""

    return Handler
