"""External changes of storage by brokers and operators, and session starts and ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kframe.model.tables import Targets
from kframe_simulator.differential.arguments import FROM_OUTSIDE
from kframe_simulator.differential.storages import Side


def _plain(name: str) -> Callable[..., Any]:
    def action(side: Side, *arguments: Any) -> None:
        getattr(side.storage, name)(*arguments)

    return action


def _expire(side: Side, number: int) -> None:
    session = side.sessions[number]
    side.storage.expire(session.store)  # type: ignore[attr-defined]
    session.topic_ids.clear()  # A new session has to read topic ids again.


def _registering(name: str) -> Callable[..., Any]:
    def action(side: Side, brokers: Any) -> list[int]:
        return [side.ordinal("broker epoch", registration) for registration in getattr(side.storage, name)(brokers)]

    return action


#: The function of each external change.
ACTIONS: Final[Mapping[str, Callable[..., Any]]] = {name: _plain(name) for name in FROM_OUTSIDE} | {
    "open": Side.open,
    "close": Side.close,
    "expire": _expire,
    "register_brokers": _registering("register_brokers"),
    "bounce_brokers": _registering("bounce_brokers"),
    "request_reassignments": lambda side, targets: side.storage.request_reassignments(Targets.of(targets)),
    "write_state": lambda side, name, partition, isr: side.storage.write_state(name, partition, isr=isr),
}
