"""What one can do to the cluster of ``--demo``."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct

Operation: TypeAlias = Literal[
    "kill",
    "start",
    "shut_down",
    "fence",
    "fail_directory",
    "create_topic",
    "elect_preferred",
    "elect_unclean",
    "roll",
    "resign",
]
#: The operations on one broker.
BROKER_OPERATIONS: Final = frozenset({"kill", "start", "shut_down", "fence", "fail_directory"})


class DemoOperation(Struct, frozen=True, forbid_unknown_fields=True):
    """An operation; ``broker`` for one on a broker, ``topic`` and ``partitions`` for a new topic."""

    operation: Operation
    broker: int | None = None
    topic: Annotated[str, Meta(max_length=249)] = ""
    partitions: Annotated[int, Meta(ge=1, le=9_000)] = 6

    def text(self) -> str:
        """The operation in words, as ``kill broker 3``."""
        words = self.operation.replace("_", " ")
        if self.operation in BROKER_OPERATIONS:
            return f"{words} broker {self.broker}"
        return f"{words} {self.topic}" if self.operation == "create_topic" else words
