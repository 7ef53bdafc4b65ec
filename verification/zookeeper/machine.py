"""Where a test starts a process: its address, its network namespace and its environment."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

HOST: Final = "127.0.0.1"
_NEW_NETWORK: Final = 0x40000000  # CLONE_NEWNET of <sched.h>; os.setns and os.unshare exist since Python 3.12 only.
_libc: Final = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Machine:
    """An address at which the processes of a test listen. Without a namespace it is that of the test."""

    address: str = HOST
    namespace: int | None = None
    """Descriptor of a network namespace. ``testing.network.VirtualNetwork`` makes it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of its processes, in addition to those of the test."""

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Sockets, processes and threads that this thread makes in the block belong to the namespace."""
        if self.namespace is None:
            yield
            return
        before = current_namespace()
        try:
            _checked(_libc.setns(self.namespace, _NEW_NETWORK), "setns")
            yield
        finally:
            _checked(_libc.setns(before, _NEW_NETWORK), "setns")
            os.close(before)


LOCAL: Final = Machine()


def current_namespace() -> int:
    """A new descriptor of the network namespace of this thread."""
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def new_namespace() -> int:
    """A descriptor of a new network namespace, which ends with its last process, thread and descriptor.

    Raises OSError where namespaces are not permitted.
    """
    before = current_namespace()
    try:
        _checked(_libc.unshare(_NEW_NETWORK), "unshare")
        namespace = current_namespace()
        _checked(_libc.setns(before, _NEW_NETWORK), "setns")
        return namespace
    finally:
        os.close(before)


def _checked(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
