"""What can go wrong, and what each failure means for the controller.

Input errors name the place (file, line, key or field), what was found and what was expected; the command line turns
them into exit code 2. Protocol errors are Kafka's, by name and code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class KframeError(Exception):
    """Base of every error that kframe raises on purpose."""


class InputError(KframeError):
    """Something that a person or another program handed in cannot be used.

    ``where`` names the place ("healthy.jsonl:12", "config key request.timeout.ms"), ``found`` what stands there and
    ``expected`` what should.
    """

    def __init__(self, where: str, found: str, expected: str) -> None:
        super().__init__(f"{where}: found {found}, expected {expected}")
        self.where = where
        self.found = found
        self.expected = expected


class SnapshotError(InputError):
    """A snapshot file is malformed or contradicts itself."""


class ZnodeError(SnapshotError):
    """What stands in one znode, of a dump or of a live ZooKeeper, is malformed; ``where`` ends with path and field."""


class ScenarioError(InputError):
    """A scenario file is malformed or asks for something impossible."""


class ConfigError(InputError):
    """A configuration key or value is not acceptable."""


class PluginError(KframeError):
    """A plugin cannot be loaded, is missing, or clashes with another of the same name."""


class SelectorFault(KframeError):
    """A leader selector raised, returned a wrong shape or broke a safety rule; the built-in one decided instead."""

    def __init__(self, selector: str, problem: str) -> None:
        super().__init__(f"leader selector {selector!r}: {problem}")
        self.selector = selector
        self.problem = problem


class ShapeError(KframeError):
    """An array handed to a kernel has the wrong length or dtype."""


class ControllerFenced(KframeError):
    """Another controller was elected: storage refused a write under our controller epoch (Kafka: ControllerMoved)."""


class StoreError(KframeError):
    """Storage failed for a reason that is neither a stale version nor a fence."""


class BrokenInvariant(KframeError):
    """A rule that the engine itself must keep does not hold: a defect of ours."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """What the runtime does about a failure inside an operation."""

    resign: bool
    page: bool


#: What each failure means for the controller: the one place that answers it.
CONSEQUENCE: Final[Mapping[type[KframeError], Consequence]] = {
    ControllerFenced: Consequence(resign=True, page=False),
    StoreError: Consequence(resign=True, page=True),
    BrokenInvariant: Consequence(resign=True, page=True),
}


class ErrorCode(IntEnum):
    """Kafka's protocol errors, as far as controllers and broker models give or receive them (``Errors``)."""

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
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    UNKNOWN_TOPIC_ID = 100
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INELIGIBLE_REPLICA = 107
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
