"""Errors of kframe and error codes of Kafka.

Input errors name their source, what was found and what was expected. The command line exits with 2.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class ErrorCode(IntEnum):
    """The errors that controllers and broker models send or receive (Kafka ``Errors``)."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    STALE_CONTROLLER_EPOCH = 11
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    STALE_BROKER_EPOCH = 77
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    THROTTLING_QUOTA_EXCEEDED = 89
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    INVALID_REGISTRATION = 119
    CONTROLLER_ID_NOT_REGISTERED = 136


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


def pip_command(extra: str) -> str:
    """The command that installs an extra of kframe-controller."""
    return f"pip install 'kframe-controller[{extra}]'"
