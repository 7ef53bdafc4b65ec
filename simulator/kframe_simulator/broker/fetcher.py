"""Follower fetching and log truncation (Kafka 3.9 ``AbstractFetcherThread``)."""

from __future__ import annotations

from functools import partial

from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition
from kframe_simulator.broker.log import Log
from kframe_simulator.broker.messages import (
    UNDEFINED,
    EpochEnd,
    Fetch,
    Fetched,
    FetchPartition,
    FetchResponse,
    OffsetForLeaderPartition,
    OffsetsForLeaderEpoch,
    OffsetsForLeaderEpochResponse,
)
from kframe_simulator.broker.node import NEVER, Node
from kframe_simulator.broker.outgoing import Peer, Reply


class _FollowedPartition:
    """One followed partition. ``offset`` is the end of its log, except before truncation to the high watermark."""

    __slots__ = ("last_epoch", "leader_epoch", "log", "offset", "resumes_at", "topic_id", "truncating")

    def __init__(self, log: Log, leader_epoch: int, offset: int, truncating: bool, topic_id: bytes) -> None:
        self.log = log
        self.leader_epoch = leader_epoch
        self.offset = offset
        self.truncating = truncating
        self.topic_id = topic_id
        self.last_epoch = UNDEFINED
        self.resumes_at = 0.0


class _Link:
    """The connection to one leader. It has one request in flight."""

    __slots__ = ("due", "follows", "in_flight")

    def __init__(self, now: float) -> None:
        self.follows: dict[TopicPartition, _FollowedPartition] = {}
        self.in_flight = False
        self.due = now


class Fetcher:
    """All partitions that a broker follows."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._links: dict[int, _Link] = {}

    def follows(self, key: TopicPartition) -> int | None:
        """The leader that a partition is fetched from. None if it is not followed."""
        return next((leader for leader, link in self._links.items() if key in link.follows), None)

    def follow(
        self, key: TopicPartition, log: Log, leader: int, leader_epoch: int, topic_id: bytes, now: float
    ) -> None:
        """Fetch from this leader. Fetching begins at the end of the log, or at its high watermark if the leader must
        first return the ends of its epochs."""
        self.stop(key)
        on_fetch = self._node.config.truncates_on_fetch
        offset = log.end if on_fetch and log.epochs else log.high_watermark
        follow = _FollowedPartition(log, leader_epoch, offset, not (on_fetch and log.epochs), topic_id)
        follow.last_epoch = log.latest_epoch if on_fetch else UNDEFINED
        link = self._links.setdefault(leader, _Link(now))
        link.follows[key] = follow
        link.due = now

    def stop(self, key: TopicPartition) -> None:
        """Stop fetching a partition. The response to a request in flight is ignored."""
        for leader, link in self._links.items():
            if link.follows.pop(key, None) is not None:
                if not link.follows and not link.in_flight:
                    del self._links[leader]
                return

    def name_topic(self, key: TopicPartition, topic_id: bytes) -> None:
        """Use this topic id, or none, in later requests."""
        for link in self._links.values():
            if key in link.follows:
                link.follows[key].topic_id = topic_id

    def poll(self, now: float) -> float:
        """Send a request to every leader that has none in flight. Returns the time of the next due request."""
        wakes_at = NEVER
        for leader, link in self._links.items():
            if link.in_flight:
                continue
            if now >= link.due:
                wakes_at = min(wakes_at, self._ask(leader, link, now))
            elif link.follows:
                wakes_at = min(wakes_at, link.due)
        return wakes_at

    def _ask(self, leader: int, link: _Link, now: float) -> float:
        """Fetch partitions that are not delayed. If no request was sent, return when the first delay ends."""
        ready, waits_until = {}, NEVER
        for key, follow in link.follows.items():
            if follow.resumes_at <= now:
                ready[key] = follow
            else:
                waits_until = min(waits_until, follow.resumes_at)
        if not ready:
            return waits_until
        link.in_flight = True
        if not self._ask_epochs(leader, ready):
            self._fetch(leader, ready)
        return NEVER

    def _ask_epochs(self, leader: int, ready: dict[TopicPartition, _FollowedPartition]) -> bool:
        """Request the ends of epochs where logs must be truncated. A log without epochs is truncated to its high
        watermark. Returns whether a request was sent."""
        queries = {}
        for key, follow in ready.items():
            if follow.truncating and follow.log.epochs:
                queries[key] = OffsetForLeaderPartition(follow.leader_epoch, follow.log.latest_epoch)
            elif follow.truncating:
                self._truncate(follow, follow.offset)
        if queries:
            message = OffsetsForLeaderEpoch(self._node.broker_id, queries)
            requested = {key: ready[key] for key in queries}
            self._node.ask(Peer.BROKER, leader, message, partial(self._on_epochs_response, leader, requested))
        return bool(queries)

    def _fetch(self, leader: int, ready: dict[TopicPartition, _FollowedPartition]) -> None:
        partitions = {
            key: FetchPartition(item.offset, item.leader_epoch, item.last_epoch, item.topic_id)
            for key, item in ready.items()
        }
        message = Fetch(self._node.broker_id, partitions)
        self._node.ask(Peer.BROKER, leader, message, partial(self._fetched, leader, ready))

    def _on_epochs_response(
        self, leader: int, requested: dict[TopicPartition, _FollowedPartition], reply: Reply | None, now: float
    ) -> None:
        link = self._links[leader]
        link.in_flight, link.due = False, now
        for key, follow in requested.items():
            if link.follows.get(key) is not follow:
                continue
            response = reply.partitions.get(key) if isinstance(reply, OffsetsForLeaderEpochResponse) else None
            if response is None or response[0] is not ErrorCode.NONE:
                self._failed(link, key, None if response is None else response[0], now)
            else:
                self._truncate_to_match(follow, response[1])
        self._drop_idle(leader, link)

    def _fetched(
        self, leader: int, requested: dict[TopicPartition, _FollowedPartition], reply: Reply | None, now: float
    ) -> None:
        link, progressed = self._links[leader], False
        link.in_flight = False
        for key, follow in requested.items():
            if link.follows.get(key) is not follow:
                continue  # Another epoch has begun since the request.
            fetched = reply.partitions.get(key) if isinstance(reply, FetchResponse) else None
            if fetched is None:
                self._failed(link, key, None, now)
            elif fetched.error is ErrorCode.NONE:
                progressed |= self._append(follow, fetched)
            elif fetched.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                progressed |= self._out_of_range(follow, fetched)
            else:
                self._failed(link, key, fetched.error, now)
        link.due = now if progressed else now + self._node.config.replica_fetch_wait_max_ms
        if not progressed:
            delayed = [item.resumes_at for item in link.follows.values() if item.resumes_at > now]
            link.due = min([link.due, *delayed])
        self._drop_idle(leader, link)

    def _append(self, follow: _FollowedPartition, notified: Fetched) -> bool:
        """Apply a leader's response. Returns whether to fetch again at once."""
        log = follow.log
        if notified.diverging is not None:
            self._truncate_to_match(follow, notified.diverging)
            return True
        for record in notified.records:
            log.append(record)
        log.set_high_watermark(notified.high_watermark)
        follow.offset = log.end
        if notified.records and self._node.config.truncates_on_fetch:
            follow.last_epoch = notified.records[-1].leader_epoch
        return bool(notified.records)

    def _truncate_to_match(self, follow: _FollowedPartition, leader_end: EpochEnd) -> None:
        """Truncate the log to the last offset that may match, given the end of the leader's epoch. If this log lacks
        that epoch, truncate to the end of its last smaller epoch and fetch again."""
        log = follow.log
        if leader_end.end_offset == UNDEFINED:
            self._truncate(follow, follow.offset)
            return
        own_end = log.end_of_epoch(leader_end.leader_epoch)
        known = UNDEFINED not in (own_end.end_offset, leader_end.leader_epoch)
        same_epoch = not known or own_end.leader_epoch == leader_end.leader_epoch
        offset = leader_end.end_offset
        if known:
            offset = min(own_end.end_offset, leader_end.end_offset) if same_epoch else own_end.end_offset
        self._truncate(follow, min(offset, log.end), same_epoch or self._node.config.truncates_on_fetch)

    def _truncate(self, follow: _FollowedPartition, offset: int, done: bool = True) -> None:
        log = follow.log
        log.truncate(offset)
        follow.offset, follow.truncating = log.end, not done
        follow.last_epoch = log.latest_epoch if self._node.config.truncates_on_fetch else UNDEFINED

    def _out_of_range(self, follow: _FollowedPartition, notified: Fetched) -> bool:
        """Handle OFFSET_OUT_OF_RANGE: the leader's log ends before this log. Returns whether there is something else to
        fetch now."""
        log, before = follow.log, (follow.offset, follow.last_epoch)
        if notified.log_end_offset < log.end:
            log.truncate(notified.log_end_offset)
        follow.offset = log.end
        follow.last_epoch = log.latest_epoch if self._node.config.truncates_on_fetch else UNDEFINED
        return before != (follow.offset, follow.last_epoch)

    def _failed(self, link: _Link, key: TopicPartition, error: ErrorCode | None, now: float) -> None:
        """Fetch again later. If the leader knows a later epoch, stop fetching from it until the controller sends
        LeaderAndIsr."""
        if error is ErrorCode.FENCED_LEADER_EPOCH:
            del link.follows[key]
        else:
            link.follows[key].resumes_at = now + self._node.config.replica_fetch_backoff_ms

    def _drop_idle(self, leader: int, link: _Link) -> None:
        if not link.follows and not link.in_flight:
            del self._links[leader]
