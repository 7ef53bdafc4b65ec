"""End the sessions of dead processes before their timeout; other clients see a normal expiry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

_PATIENCE_S: Final = 60.0
_SECRET: Final = 0xB3415C00
_MULTIPLIER, _MASK = 0x5DEECE66D, 2**48 - 1


def password_of(session_id: int) -> bytes:
    """The password of a session at a ZooKeeper 3.8 server (``ZooKeeperServer.generatePasswd``).

    It has 16 bytes of ``java.util.Random``, seeded by the session id.
    """
    return b"".join(_ints(session_id ^ _SECRET, 4))


def _ints(seed: int, count: int) -> Iterator[bytes]:
    state = (seed ^ _MULTIPLIER) & _MASK
    for _ in range(count):
        state = (state * _MULTIPLIER + 11) & _MASK
        yield (state >> 16).to_bytes(4, "little")


def end_session_of(client: KazooClient, address: str, path: str) -> None:
    """End the session that owns the node at ``path`` (below the chroot). A missing node is ignored.

    The owner must be dead, because a live client would continue in another session.
    """
    try:
        owner = client.get(path)[1].owner_session_id
    except NoNodeError:
        return
    twin = KazooClient(address, client_id=(owner, password_of(owner)), timeout=_PATIENCE_S)
    try:
        twin.start(_PATIENCE_S)
    finally:
        twin.stop()
        twin.close()
