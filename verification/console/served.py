"""An application on a port of this machine, served from a thread."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from kframe_console.serving import TlsFiles, listening_socket, server
from starlette.types import ASGIApp


@contextmanager
def served(app: ASGIApp, tls: TlsFiles | None = None) -> Iterator[int]:
    """Serve ``app`` on a free port of 127.0.0.1, which is yielded."""
    with listening_socket("127.0.0.1", 0) as listener:
        running = server(app, tls)
        thread = Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not running.started and thread.is_alive():
            time.sleep(0.01)
        try:
            yield listener.getsockname()[1]
        finally:
            running.should_exit = True
            thread.join(60)
