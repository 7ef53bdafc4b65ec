"""Callers who are answered later: when their topics are led, or gone, or when their time is up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kframe.core.admin import TopicsResponse, unled
from kframe.core.context import Context, Operation
from kframe.errors import ErrorCode
from kframe.model.effects import Reply, SetTimer
from kframe.model.events import (
    CreatePartitionsRequested,
    CreateTopicsRequested,
    DeleteTopicsRequested,
    Event,
    ReplyDue,
)

#: Given the topics waited for, which of them are not as they should be yet.
Pending = Callable[[Context, tuple[str, ...]], set[str]]


@dataclass(frozen=True, slots=True)
class Waiter:
    """Somebody who waits for ``names`` until ``pending`` names none of them."""

    token: int
    codes: dict[str, ErrorCode]
    names: tuple[str, ...]
    pending: Pending

    def response(self, late: set[str]) -> TopicsResponse:
        """The answer, with REQUEST_TIMED_OUT for what is not done yet."""
        return TopicsResponse(
            {name: ErrorCode.REQUEST_TIMED_OUT if name in late else code for name, code in self.codes.items()}
        )


def answer_or_wait(
    context: Context,
    event: CreateTopicsRequested | CreatePartitionsRequested | DeleteTopicsRequested,
    response: TopicsResponse,
) -> Operation[None]:
    """Answer now what is done or refused; else wait as long as the caller allows.

    Who allows no time is told REQUEST_TIMED_OUT even of what is done (Kafka 3.9 ``ZkAdminManager``).
    """
    names = tuple(name for name, code in response.codes.items() if code is ErrorCode.NONE)
    if isinstance(event, DeleteTopicsRequested):
        waiter = Waiter(event.token, response.codes, names, _announced)
    else:
        waiter = Waiter(event.token, response.codes, () if event.validate_only else names, unled)
    if not waiter.names:
        yield Reply(event.token, response)
        return
    if event.timeout_ms <= 0:
        yield Reply(event.token, waiter.response(set(waiter.names)))
        return
    if not waiter.pending(context, waiter.names):
        yield Reply(event.token, response)
        return
    number = context.waiters_seen = context.waiters_seen + 1
    context.waiters[number] = waiter
    yield SetTimer(f"reply-{number}", event.timeout_ms, ReplyDue(number))


def look(context: Context) -> Operation[None]:
    """Answer those who wait for nothing any more; looked at after every event."""
    for number, waiter in list(context.waiters.items()):
        if not waiter.pending(context, waiter.names):
            del context.waiters[number]
            yield Reply(waiter.token, waiter.response(set()))


def time_out(context: Context, event: ReplyDue) -> Operation[None]:
    """Time is up for one of them."""
    waiter = context.waiters.pop(event.waiter, None)
    if waiter is not None:
        yield Reply(waiter.token, waiter.response(waiter.pending(context, waiter.names)))


def dismiss(context: Context) -> list[Reply]:
    """Answers for all who wait when we stop being controller."""
    waiters = list(context.waiters.values())
    context.waiters.clear()
    return [Reply(one.token, TopicsResponse(dict.fromkeys(one.codes, ErrorCode.NOT_CONTROLLER))) for one in waiters]


def waits(event: Event) -> bool:
    """Whether the answer to this event may come later."""
    return isinstance(event, CreateTopicsRequested | CreatePartitionsRequested | DeleteTopicsRequested)


def _announced(context: Context, names: tuple[str, ...]) -> set[str]:
    """Those of these topics whose deletion has not been announced to brokers yet: a broker answers once it was."""
    topics = context.cluster.topics
    return {name for name in names if (index := topics.find(name)) is not None and not topics.deletion_started[index]}
