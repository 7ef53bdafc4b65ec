"""``kframe`` as a program that kills itself at an operation on the disk. Its arguments follow COUNT and WHEN."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

#: The functions that change the disk.
OPERATIONS: Final = ("fdatasync", "fsync", "ftruncate", "pwrite", "replace", "unlink")
BEFORE, AFTER = "before", "after"


def kill_at(count: int, when: str) -> None:
    """Let the process end with SIGKILL at operation number ``count``, from 1 on, of all threads."""
    lock, done = threading.Lock(), 0

    def killing(operation: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal done
            with lock:
                done += 1
                is_last = done == count
            if is_last and when == BEFORE:
                os.kill(os.getpid(), signal.SIGKILL)
            result = operation(*arguments, **options)
            if is_last:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    for name in OPERATIONS:
        setattr(os, name, killing(getattr(os, name)))


if __name__ == "__main__":
    from kframe.cli.app import main

    kill_at(int(sys.argv[1]), sys.argv[2])
    sys.argv[1:] = sys.argv[3:]
    main()
