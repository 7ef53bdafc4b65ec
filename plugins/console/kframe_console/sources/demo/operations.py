"""The operations that users may request of the cluster of ``--demo``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct


class OperationButton(NamedTuple):
    """The text and the key of the button of an operation. With ``mode``, only clusters of this mode have it."""

    text: str
    key: str
    mode: str | None = None


#: The operations on one broker, and those on the whole cluster besides ``create_topic``.
BROKER_BUTTONS: Final[Mapping[str, OperationButton]] = {
    "kill": OperationButton("Kill", "k"),
    "start": OperationButton("Start", "s"),
    "shut_down": OperationButton("Shut down", "x"),
    "fence": OperationButton("Fence", "f", "kraft"),
    "fail_directory": OperationButton("Fail a log directory", "l"),
}
CLUSTER_BUTTONS: Final[Mapping[str, OperationButton]] = {
    "elect_preferred": OperationButton("Elect preferred leaders", "p"),
    "elect_unclean": OperationButton("Elect unclean leaders", "e"),
    "roll": OperationButton("Restart all, one by one", "r"),
    "resign": OperationButton("Resign the controller", "c", "zookeeper"),
}
CREATE_TOPIC: Final = "create_topic"
_NAMES: Final = (*BROKER_BUTTONS, CREATE_TOPIC, *CLUSTER_BUTTONS)


class DemoOperation(Struct, frozen=True, forbid_unknown_fields=True):
    """An operation; ``broker`` for one on a broker, ``topic`` and ``partitions`` for a new topic."""

    operation: Annotated[str, Meta(extra_json_schema={"enum": _NAMES})]
    broker: int | None = None
    topic: Annotated[str, Meta(max_length=249)] = ""
    partitions: Annotated[int, Meta(ge=1, le=9_000)] = 6

    def text(self) -> str:
        """The operation in words, as ``kill broker 3``."""
        words = self.operation.replace("_", " ")
        if self.operation in BROKER_BUTTONS:
            return f"{words} broker {self.broker}"
        return f"{words} {self.topic}" if self.operation == CREATE_TOPIC else words


def operations_of(mode: str) -> list[str]:
    """The operations on a cluster of this mode."""
    buttons = {**BROKER_BUTTONS, **CLUSTER_BUTTONS}
    return [name for name in _NAMES if name not in buttons or buttons[name].mode in (None, mode)]
