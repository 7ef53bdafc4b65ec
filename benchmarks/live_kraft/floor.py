"""The least that a broker failure costs: its bytes on the disk, and over loopback to each broker."""

from __future__ import annotations

import os
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PART: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Floor:
    """Seconds until the bytes were durable, and until the last receiver had them, counted from there."""

    durable: float
    last_received: float


def measure(folder: Path, count: int, receivers: int) -> Floor:
    """Write ``count`` bytes with one fdatasync, then send them to each receiver."""
    content = os.urandom(_PART) * -(-count // _PART)
    content = content[:count]
    descriptor = os.open(folder / "floor", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    begun = time.monotonic()
    os.write(descriptor, content)
    os.fdatasync(descriptor)
    durable = time.monotonic()
    os.close(descriptor)
    received = _send(content, receivers)
    return Floor(durable - begun, received)


def _send(content: bytes, receivers: int) -> float:
    """Seconds until all receivers have the content."""
    pairs = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for _ in range(receivers):
            client = socket.create_connection(listener.getsockname())
            pairs.append((listener.accept()[0], client))

    def receive(client: socket.socket) -> None:
        buffer, left = bytearray(_PART), len(content)
        while left:
            left -= client.recv_into(buffer)

    threads = [threading.Thread(target=receive, args=(client,)) for _, client in pairs]
    threads += [threading.Thread(target=server.sendall, args=(content,)) for server, _ in pairs]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begun
    for server, client in pairs:
        server.close()
        client.close()
    return seconds
