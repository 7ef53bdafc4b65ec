"""Claim the role as soon as the server reports the deletion of ``/controller``, before brokers can.

After the same notification a broker reads ``/controller`` and ``/controller_epoch`` before it writes (Kafka 3.9
``KafkaController.elect``, ``KafkaZkClient.registerControllerAndIncrementControllerEpoch``). A standby that knows the
version of the controller epoch needs no read. The thread that reads the notification sends the claim.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace

from kframe_zookeeper.bulk.nodes import ReadNode
from kframe_zookeeper.bulk.writes import LOST, Sending, Writes
from kframe_zookeeper.role.election import Candidate, WonElection
from kframe_zookeeper.session.session import Session, SessionOver
from kframe_zookeeper.znodes.paths import CONTROLLER


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A claim that is ready to be sent, and the record of the controller that it follows."""

    candidate: Candidate
    claim: WonElection
    holder: ReadNode


@dataclass(frozen=True, slots=True)
class _Sent:
    """A claim that was sent, and its pending response."""

    claim: WonElection
    sending: Sending
    sent_s: float


class Contender:
    """The early claim of a session: prepared, sent, then taken by the controller."""

    def __init__(self, session: Session, root: str) -> None:
        self._session = session
        self._path = root + CONTROLLER
        self._prepared: _Prepared | None = None
        self._sent: _Sent | None = None
        self._lock = threading.Lock()
        self._awaiting = threading.Lock()
        """Held while a thread waits for the response. ``on_deleted`` must not wait for it."""

    @property
    def prepared(self) -> bool:
        """Whether the next deletion of ``/controller`` triggers a claim."""
        return self._prepared is not None

    def prepare(self, candidate: Candidate, epoch: ReadNode, holder: ReadNode) -> None:
        """Claim under the controller epoch that follows ``epoch`` when ``/controller``, now ``holder``, is deleted.

        ``epoch`` was read before ``holder``. Raises StoreError where no controller epoch can follow.
        """
        claim = candidate.next_claim(epoch)
        with self._lock:
            self._prepared = _Prepared(candidate, claim, holder)

    def on_deleted(self, path: str) -> None:
        """Send the claim if ``path`` (chroot included) is the controller's. Called in the client's own thread."""
        if path == self._path:
            self._send(None)

    def replace(self, owner: int) -> None:
        """Send the claim in place of the record that session ``owner`` holds, because its process has ended.

        Does nothing unless the claim was prepared for that record. Callable from any thread.
        """
        self._send(owner)

    def holder(self) -> ReadNode | None:
        """The record of the controller that the prepared claim follows; None if no claim is prepared."""
        prepared = self._prepared
        return None if prepared is None else prepared.holder

    def _send(self, owner: int | None) -> None:
        with self._lock:
            prepared = self._prepared
            if prepared is None or (owner is not None and prepared.holder.owner != owner):
                return
            self._prepared = None
            candidate = replace(prepared.candidate, now_ms=time.time_ns() // 1_000_000)
            operations = candidate.operations(prepared.claim, None if owner is None else prepared.holder)
            sending = Sending(self._session, b"", Writes.of([operations]))
            with suppress(SessionOver):
                sending.begin()
                self._sent = _Sent(prepared.claim, sending, time.monotonic())

    def pending(self) -> bool:
        """Whether a claim has succeeded, or may have, and was not taken yet. Waits for its response."""
        return self._settled() is not None

    def take(self) -> WonElection | None:
        """Return the claim that has succeeded, or may have if its response was lost, once. Clears the prepared
        claim."""
        with self._lock:
            self._prepared = None
        settled = self._settled()
        self._forget(settled)
        return None if settled is None else settled.claim

    def overdue(self, seconds: float) -> bool:
        """Whether a claim that was sent more than ``seconds`` ago has succeeded, or may have, and was not taken."""
        sent = self._sent
        return sent is not None and time.monotonic() - sent.sent_s > seconds and self.pending()

    def _settled(self) -> _Sent | None:
        """The sent claim after its response. None if it was refused."""
        with self._awaiting:
            sent = self._sent
            if sent is None:
                return None
            if int(sent.sending.finish().code[0]) in (0, LOST):
                return sent
        self._forget(sent)
        return None

    def _forget(self, sent: _Sent | None) -> None:
        with self._lock:
            if self._sent is sent:
                self._sent = None
