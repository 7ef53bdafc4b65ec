"""Logs of a controller at work, as Kafka's are laid out: one of the controller, one of state changes."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Final

from kframe.cli.output import BadInput

#: Kafka's ``log4j.properties``: ``[%d] %p %m (%c)``.
_LAYOUT: Final = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"
CONTROLLER_LOG: Final = "controller.log"
STATE_CHANGE_LOG: Final = "state-change.log"


class _OneLine(logging.Formatter):
    """Whatever a name from storage holds, a record is one line, and only a traceback is more."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is Python's
        text = super().formatMessage(record)
        return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def start_logs(controller_id: int, folder: Path | None) -> None:
    """Log to stderr, or to the files that Kafka has, in ``folder``. Raises BadInput if they cannot be written."""
    kframe, changes = logging.getLogger("kframe"), logging.getLogger("kframe.statechange")
    layout = _LAYOUT.replace("%(message)s", f"[Controller id={controller_id}] %(message)s")
    if folder is None:
        _attach(kframe, logging.StreamHandler(sys.stderr), layout)
    else:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _attach(kframe, logging.FileHandler(folder / CONTROLLER_LOG, encoding="utf-8"), layout)
            _attach(changes, logging.FileHandler(folder / STATE_CHANGE_LOG, encoding="utf-8"), _LAYOUT)
        except OSError as problem:
            raise BadInput(f"--log-dir {folder}: {problem.strerror or problem}") from problem
        changes.propagate = False
    kframe.propagate = False
    kframe.setLevel(logging.INFO)


def _attach(log: logging.Logger, handler: logging.Handler, layout: str) -> None:
    handler.setFormatter(_OneLine(layout))
    log.addHandler(handler)
