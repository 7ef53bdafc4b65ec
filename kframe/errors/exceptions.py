"""Exceptions. Input errors name their source, what was found and what was expected. The command line exits with 2."""

from __future__ import annotations

from typing import Final

#: ``actual`` of an InputError for a field that is absent, and for a file or directory that is not to be replaced.
NO_FIELD: Final = "no such field"
EXISTS: Final = "an existing one"


class KframeError(Exception):
    """Base class of all errors that kframe raises deliberately."""


class InputError(KframeError):
    """Input from a user or another program cannot be used.

    ``where`` names the source ("healthy.jsonl:12", "config key request.timeout.ms"); ``actual`` and ``expected``
    describe its content. With NO_FIELD ``expected`` is the field, with EXISTS the option that replaces what exists.
    """

    def __init__(self, where: str, actual: str, expected: str) -> None:
        super().__init__(f"{where}: {_problem(actual, expected)}")
        self.where = where
        self.actual = actual
        self.expected = expected


class ParameterError(InputError):
    """An argument cannot be used. ``parameter`` is its name in Python, ``part`` the entry: " of broker 3", "[0]".

    A command names its option for the parameter instead.
    """

    def __init__(self, parameter: str, actual: str, expected: str, part: str = "") -> None:
        super().__init__(f"{parameter}{part}", actual, expected)
        self.parameter = parameter
        self.part = part

    def text_for(self, option: str) -> str:
        """The message with the name of an option for that of the parameter."""
        return str(InputError(f"{option}{self.part}", self.actual, self.expected))


class SnapshotError(InputError):
    """A snapshot file is malformed or contradicts itself."""


class ZnodeError(SnapshotError):
    """The data of a znode, from a dump or from a live ZooKeeper, is malformed. ``where`` ends with path and field."""


class LogError(SnapshotError):
    """A record, batch or file of a metadata log is malformed; ``where`` names it and the byte."""


class RecordError(LogError):
    """A metadata record cannot be decoded, or its content does not fit the version to encode."""


class ScenarioError(InputError):
    """A scenario file is malformed or contains an impossible request."""


class ConfigError(InputError):
    """A configuration key or value is not acceptable."""


class PluginError(KframeError):
    """A plugin cannot be loaded, is missing, or offers a name that another plugin offers too."""


class SelectorFault(KframeError):
    """A leader selector failed or violated a safety rule. The built-in selector decided instead."""

    def __init__(self, selector: str, problem: str) -> None:
        super().__init__(f"leader selector {selector!r}: {problem}")
        self.selector = selector
        self.problem = problem


class ShapeError(KframeError):
    """An array argument of a kernel has the wrong length or dtype."""


class ControllerFenced(KframeError):
    """Storage refused a write because another controller was elected (Kafka: ControllerMovedException)."""


class StoreError(KframeError):
    """Storage failed, and neither a stale version nor a newer controller is the cause."""


class SolverError(KframeError):
    """The solver of plans failed, so that neither a solution nor a bound is known."""


class BrokenInvariant(KframeError):
    """An invariant of the engine does not hold: a defect of kframe."""


#: A controller resigns at these failures of an operation. At others it only ends the operation.
RESIGNING: Final = (ControllerFenced, StoreError, BrokenInvariant)


def _problem(actual: str, expected: str) -> str:
    if actual == NO_FIELD:
        return f"missing {expected}"
    if actual == EXISTS:
        return f"already exists (use {expected})"
    text = actual if actual.startswith("no such ") else f"found {actual}"
    return f"{text}, expected {expected}"
