"""Requests that are answered later: when brokers know the change, or at the timeout.

Kafka keeps such requests in a purgatory until the metadata cache of the controller's broker shows the change
(3.9 ``DelayedCreatePartitions``, ``DelayedDeleteTopics``). This controller is no broker. It waits until every live
broker has acknowledged the UpdateMetadata that announces the change. After half of the timeout the response of one
broker suffices, so that a broker that hangs does not fail the request. A response with an error counts, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kframe.core.context import Context, Operation
from kframe.core.operations.topic_requests import TopicsResponse, leaderless_topics
from kframe.errors import ErrorCode
from kframe.model.effects import CancelTimer, Reply, SetTimer
from kframe.model.events import (
    CreatePartitionsRequested,
    CreateTopicsRequested,
    DelayedReplyExpired,
    DeleteTopicsRequested,
    Event,
    UpdateMetadataResponseReceived,
)

#: Selects from topic names those that the controller has not announced as requested.
Pending = Callable[[Context, tuple[str, ...]], set[str]]


@dataclass(slots=True)
class DelayedReply:
    """A request that waits until each of ``names`` is announced and every live broker has acknowledged it."""

    token: int
    result: TopicsResponse
    """The response if the change completes in time."""
    names: tuple[str, ...]
    pending: Pending
    remaining_ms: int
    """Milliseconds of the timeout that remain when the timer fires."""
    unannounced: set[str] = field(default_factory=set)
    """Topics that were not announced at the last check."""
    unconfirmed: set[str] = field(default_factory=set)
    """Announced topics that ``missing`` brokers have not acknowledged."""
    missing: list[tuple[int, int]] = field(default_factory=list)
    """(broker index, batch) without a response. The last one is known to be missing."""

    def response(self, late: set[str]) -> TopicsResponse:
        """The response, with REQUEST_TIMED_OUT for topics in ``late``."""
        timed_out = dict.fromkeys(late, ErrorCode.REQUEST_TIMED_OUT)
        return TopicsResponse(self.result.codes | timed_out, self.result.messages, self.result.created)

    def done(self, context: Context) -> bool:
        """Whether all live brokers know all topics. The cheap check is first. Every response of a broker calls this."""
        live = context.cluster.brokers.live
        context.term.acknowledgements.drop_acknowledged(self.missing, live)
        if self.missing:
            return False
        pending = self.pending(context, self.names)
        announced, self.unannounced = self.unannounced - pending, pending
        self.unconfirmed = announced
        if announced:
            self.missing = context.term.acknowledgements.missing(live)
        return not pending and not self.missing

    def late(self, context: Context) -> set[str]:
        """Topics that are not announced, or whose announcement no live broker has acknowledged."""
        if self.done(context):
            return set()
        late = self.unannounced | self.pending(context, self.names)
        known = context.term.acknowledgements.any_acknowledged(self.missing, context.cluster.brokers.live)
        return late if known else late | self.unconfirmed


def reply_or_delay(
    context: Context,
    event: CreateTopicsRequested | CreatePartitionsRequested | DeleteTopicsRequested,
    response: TopicsResponse,
) -> Operation[None]:
    """Answer at once if the change is complete or refused. Otherwise wait until the request's timeout.

    A request without a timeout gets REQUEST_TIMED_OUT even for completed topics (Kafka 3.9 ``ZkAdminManager``).
    """
    names = tuple(name for name, code in response.codes.items() if code is ErrorCode.NONE)
    validated = not isinstance(event, DeleteTopicsRequested) and event.validate_only
    if validated or not names:
        yield Reply(event.token, response)
        return
    pending = _not_announced_as_deleted if isinstance(event, DeleteTopicsRequested) else leaderless_topics
    delayed = DelayedReply(event.token, response, names, pending, event.timeout_ms // 2, unannounced=set(names))
    if event.timeout_ms <= 0:
        yield Reply(event.token, delayed.response(set(names)))
        return
    if delayed.done(context):
        yield Reply(event.token, response)
        return
    number = context.term.last_delayed_reply = context.term.last_delayed_reply + 1
    context.term.delayed_replies[number] = delayed
    yield SetTimer(_timer(number), event.timeout_ms - delayed.remaining_ms, DelayedReplyExpired(number))


def check(context: Context) -> Operation[None]:
    """Answer the requests whose topics are complete. Called after every event."""
    for number, delayed in list(context.term.delayed_replies.items()):
        if delayed.done(context):
            del context.term.delayed_replies[number]
            yield CancelTimer(_timer(number))
            yield Reply(delayed.token, delayed.response(set()))


def time_out(context: Context, event: DelayedReplyExpired) -> Operation[None]:
    """A request has timed out, or the half of its timeout in which it waits for all brokers."""
    delayed, timer = context.term.delayed_replies.get(event.number), _timer(event.number)
    if delayed is None:
        return
    late = delayed.late(context)
    if late and delayed.remaining_ms > 0:
        yield SetTimer(timer, delayed.remaining_ms, event)
        delayed.remaining_ms = 0
        return
    del context.term.delayed_replies[event.number]
    yield CancelTimer(timer)
    yield Reply(delayed.token, delayed.response(late))


def on_metadata_response(context: Context, response: UpdateMetadataResponseReceived) -> None:
    """A broker responded to UpdateMetadata of this controller epoch.

    STALE_BROKER_EPOCH comes from a broker that has registered again, and acknowledges the metadata that it gets then.
    After any other error no later response proves that the broker has the metadata of the refused batch.
    """
    broker = context.cluster.brokers.find(response.broker_id)
    if broker is None or response.error is ErrorCode.STALE_BROKER_EPOCH:
        return
    if response.error is ErrorCode.NONE:
        context.term.acknowledgements.acknowledge(broker, response.batch)
        return
    for delayed in context.term.delayed_replies.values():
        delayed.missing = context.term.acknowledgements.refused(delayed.missing, broker, response.batch)


def refuse_all(context: Context) -> list[Reply]:
    """Refusals of all delayed requests, when the controller resigns."""
    requests = list(context.term.delayed_replies.values())
    context.term.delayed_replies.clear()
    return [
        Reply(delayed.token, TopicsResponse(dict.fromkeys(delayed.result.codes, ErrorCode.NOT_CONTROLLER)))
        for delayed in requests
    ]


def can_be_delayed(event: Event) -> bool:
    """Whether the response to this event may be delayed."""
    return isinstance(event, CreateTopicsRequested | CreatePartitionsRequested | DeleteTopicsRequested)


def _not_announced_as_deleted(context: Context, names: tuple[str, ...]) -> set[str]:
    """The topics that have not been announced as deleted."""
    topics = context.cluster.topics
    indexes = topics.find_all(names)
    pending = (indexes >= 0) & (np.append(topics.deletion_started, 0)[indexes] == 0)
    return {names[position] for position in np.flatnonzero(pending).tolist()}


def _timer(number: int) -> str:
    return f"reply-{number}"
