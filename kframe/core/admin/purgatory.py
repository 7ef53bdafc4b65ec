"""Callers who are answered later: when brokers know the change they asked for, or when their time is up.

Kafka keeps such requests in a purgatory until the metadata cache of the controller's broker shows the change
(3.9 ``DelayedCreatePartitions``, ``DelayedDeleteTopics``). This controller is no broker: it waits until every live
broker has answered the UpdateMetadata that announces the change. A broker that hangs must not fail the request, as it
does not in Kafka: after half of the timeout the answer of one broker is enough, even an answer with an error, which
Kafka's controller only logs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kframe.core.admin.topic_requests import TopicsResponse, unled
from kframe.core.context import Context, Operation
from kframe.errors import ErrorCode
from kframe.model.effects import CancelTimer, Reply, SetTimer
from kframe.model.events import (
    CreatePartitionsRequested,
    CreateTopicsRequested,
    DeleteTopicsRequested,
    Event,
    ReplyDue,
    UpdateMetadataAnswered,
)

#: Given the topics waited for, which of them the controller has not announced as requested.
Pending = Callable[[Context, tuple[str, ...]], set[str]]


@dataclass(slots=True)
class Waiter:
    """A caller who waits for ``names`` until each is announced, and every live broker has answered the announcement."""

    token: int
    result: TopicsResponse
    """The answer if everything is done in time."""
    names: tuple[str, ...]
    pending: Pending
    rest_ms: int
    """Milliseconds of the timeout that are left when the timer fires."""
    unannounced: set[str] = field(default_factory=set)
    """Topics that were not announced when the waiter was last checked."""
    unconfirmed: set[str] = field(default_factory=set)
    """Topics that are announced, and whose announcement ``missing`` have to answer."""
    missing: list[tuple[int, int]] = field(default_factory=list)
    """(broker index, batch) that has not been answered; at least one of them, the last, is known to be open."""

    def response(self, late: set[str]) -> TopicsResponse:
        """The answer, with REQUEST_TIMED_OUT for what is not done yet."""
        timed_out = dict.fromkeys(late, ErrorCode.REQUEST_TIMED_OUT)
        return TopicsResponse(self.result.codes | timed_out, self.result.messages)

    def done(self, context: Context) -> bool:
        """Whether all topics are announced and known to all live brokers. The cheap check comes first, because this is
        called after every answer of every broker."""
        live = context.cluster.brokers.live
        context.term.acknowledgements.drop_answered(self.missing, live)
        if self.missing:
            return False
        pending = self.pending(context, self.names)
        announced, self.unannounced = self.unannounced - pending, pending
        self.unconfirmed = announced
        if announced:
            self.missing = context.term.acknowledgements.missing(live)
        return not pending and not self.missing

    def late(self, context: Context) -> set[str]:
        """Topics that are not announced, or whose announcement no live broker has answered."""
        if self.done(context):
            return set()
        late = self.unannounced | self.pending(context, self.names)
        known = context.term.acknowledgements.any_answered(self.missing, context.cluster.brokers.live)
        return late if known else late | self.unconfirmed


def answer_or_wait(
    context: Context,
    event: CreateTopicsRequested | CreatePartitionsRequested | DeleteTopicsRequested,
    response: TopicsResponse,
) -> Operation[None]:
    """Answer at once what is done or refused; else wait as long as the caller allows.

    A caller that allows no time receives REQUEST_TIMED_OUT even for what is done (Kafka 3.9 ``ZkAdminManager``).
    """
    names = tuple(name for name, code in response.codes.items() if code is ErrorCode.NONE)
    validated = not isinstance(event, DeleteTopicsRequested) and event.validate_only
    if validated or not names:
        yield Reply(event.token, response)
        return
    pending = _not_announced_as_deleted if isinstance(event, DeleteTopicsRequested) else unled
    waiter = Waiter(event.token, response, names, pending, event.timeout_ms // 2, unannounced=set(names))
    if event.timeout_ms <= 0:
        yield Reply(event.token, waiter.response(set(names)))
        return
    if waiter.done(context):
        yield Reply(event.token, response)
        return
    number = context.term.last_delayed_reply = context.term.last_delayed_reply + 1
    context.term.delayed_replies[number] = waiter
    yield SetTimer(_timer(number), event.timeout_ms - waiter.rest_ms, ReplyDue(number))


def check(context: Context) -> Operation[None]:
    """Answer the waiters whose topics are done; called after every event."""
    for number, waiter in list(context.term.delayed_replies.items()):
        if waiter.done(context):
            del context.term.delayed_replies[number]
            yield CancelTimer(_timer(number))
            yield Reply(waiter.token, waiter.response(set()))


def time_out(context: Context, event: ReplyDue) -> Operation[None]:
    """The time of one waiter is up, or the part of it in which it waits for all brokers."""
    waiter, timer = context.term.delayed_replies.get(event.waiter), _timer(event.waiter)
    if waiter is None:
        return
    late = waiter.late(context)
    if late and waiter.rest_ms > 0:
        yield SetTimer(timer, waiter.rest_ms, event)
        waiter.rest_ms = 0
        return
    del context.term.delayed_replies[event.waiter]
    yield CancelTimer(timer)
    yield Reply(waiter.token, waiter.response(late))


def metadata_answered(context: Context, answer: UpdateMetadataAnswered) -> None:
    """A broker answered UpdateMetadata of this controller epoch.

    STALE_BROKER_EPOCH comes from a broker that has registered anew: it gets all metadata again, and answers that.
    After any other error no later answer proves that the broker has the metadata of the refused batch.
    """
    broker = context.cluster.brokers.find(answer.broker_id)
    if broker is None or answer.error is ErrorCode.STALE_BROKER_EPOCH:
        return
    if answer.error is ErrorCode.NONE:
        context.term.acknowledgements.answered(broker, answer.batch)
        return
    for waiter in context.term.delayed_replies.values():
        waiter.missing = context.term.acknowledgements.refused(waiter.missing, broker, answer.batch)


def dismiss(context: Context) -> list[Reply]:
    """Answers for all waiters when the controller resigns."""
    waiters = list(context.term.delayed_replies.values())
    context.term.delayed_replies.clear()
    return [
        Reply(one.token, TopicsResponse(dict.fromkeys(one.result.codes, ErrorCode.NOT_CONTROLLER))) for one in waiters
    ]


def waits(event: Event) -> bool:
    """Whether the answer to this event may come later."""
    return isinstance(event, CreateTopicsRequested | CreatePartitionsRequested | DeleteTopicsRequested)


def _not_announced_as_deleted(context: Context, names: tuple[str, ...]) -> set[str]:
    """Those of these topics that have not been announced to brokers as deleted."""
    topics = context.cluster.topics
    return {name for name in names if (index := topics.find(name)) is not None and not topics.deletion_started[index]}


def _timer(number: int) -> str:
    return f"reply-{number}"
