"""Standard streams that the caller of ``kframe`` has closed, as with ``kframe ... >&-`` or under a service manager."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Open the null device in place of each closed stream.

    Otherwise the next file that a command opens gets the descriptor of the stream, and a library's messages. Output
    fails with EBADF, as in C, so that a command never loses its output and ends with 0. Messages are discarded.
    """
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # The lowest free descriptor, which is this one.
    # Python has None for a stream that was closed when it started.
    if sys.stdin is None:
        sys.stdin = sys.__stdin__ = open(os.open(os.devnull, os.O_WRONLY))  # type: ignore[misc]  # noqa: SIM115 - open as long as the process
    if sys.stdout is None:
        sys.stdout = sys.__stdout__ = open(os.open(os.devnull, os.O_RDONLY), "w")  # type: ignore[misc]  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = sys.__stderr__ = open(os.devnull, "w")  # type: ignore[misc]  # noqa: SIM115
