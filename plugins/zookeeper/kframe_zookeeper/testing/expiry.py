"""Sessions of processes that are dead, ended before their time is over: to everybody else it is the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

_PATIENCE_S: Final = 60.0
_SECRET: Final = 0xB3415C00
_MULTIPLIER, _MASK = 0x5DEECE66D, 2**48 - 1


def password_of(session_id: int) -> bytes:
    """What a ZooKeeper 3.8 server wants to hear from whoever goes on in a session (``ZooKeeperServer.generatePasswd``):
    16 bytes of ``java.util.Random``, seeded by the number of the session."""
    return b"".join(_ints(session_id ^ _SECRET, 4))


def _ints(seed: int, count: int) -> Iterator[bytes]:
    state = (seed ^ _MULTIPLIER) & _MASK
    for _ in range(count):
        state = (state * _MULTIPLIER + 11) & _MASK
        yield (state >> 16).to_bytes(4, "little")


def end_session_of(client: KazooClient, address: str, path: str) -> None:
    """End the session that owns what is at ``path`` (below the chroot); nothing if that is gone already.

    Its owner must be dead: he would go on in another one.
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
