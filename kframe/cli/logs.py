"""Logs of a running controller with Kafka's layout: the controller log and the state change log."""

from __future__ import annotations

import logging
import logging.handlers
import sys
from pathlib import Path
from typing import Final

from kframe.cli.layout import printable
from kframe.cli.output import BadInput

#: Kafka's ``log4j.properties``: ``[%d] %p %m (%c)``.
_LAYOUT: Final = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"
CONTROLLER_LOG: Final = "controller.log"
STATE_CHANGE_LOG: Final = "state-change.log"


#: Names of levels in Kafka's logs.
_SPELLINGS: Final = {"WARNING": "WARN", "CRITICAL": "FATAL"}
#: Selectable levels, by Kafka's name.
LEVELS: Final = {"DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING, "ERROR": logging.ERROR}


class _SingleLine(logging.Formatter):
    """Formats a record on one line, with control characters escaped, and adds a prefix if the message has none.

    Kafka's messages begin with ``[Controller id=0]``, ``[Topic Deletion Manager 0]`` and the like.
    """

    def __init__(self, controller_id: int) -> None:
        super().__init__(_LAYOUT)
        self._prefix = f"[Controller id={controller_id}] "

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is Python's
        if not record.message.startswith("["):
            record.message = self._prefix + record.message
        level, record.levelname = record.levelname, _SPELLINGS.get(record.levelname, record.levelname)
        text = super().formatMessage(record)
        record.levelname = level
        return printable(text)


def start_logs(controller_id: int, folder: Path | None, level: str = "INFO") -> None:
    """Log records of ``level`` (of LEVELS) or above to stderr, or to Kafka's log files in ``folder``.

    If a file is renamed, logging continues in a new file, so logrotate needs no signal. Other loggers, such as the
    client of a store and Python's ``warnings``, log only warnings and errors. Raises BadInput if the files cannot be
    written.
    """
    kframe, changes = logging.getLogger("kframe"), logging.getLogger("kframe.statechange")
    layout = _SingleLine(controller_id)
    if folder is None:
        main: logging.Handler = logging.StreamHandler(sys.stderr)
    else:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            main = logging.handlers.WatchedFileHandler(folder / CONTROLLER_LOG, encoding="utf-8")
            to_changes = logging.handlers.WatchedFileHandler(folder / STATE_CHANGE_LOG, encoding="utf-8")
        except OSError as problem:
            raise BadInput(f"--log-dir {folder}: {problem.strerror or problem}") from problem
        _attach(changes, to_changes, layout)
        changes.propagate = False
    _attach(logging.getLogger(), main, layout)
    kframe.setLevel(LEVELS[level])


def _attach(log: logging.Logger, handler: logging.Handler, layout: logging.Formatter) -> None:
    handler.setFormatter(layout)
    log.addHandler(handler)
