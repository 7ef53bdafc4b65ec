"""Claim the controller role, also from a live controller.

The rule is Kafka 3.9 ``KafkaZkClient.registerControllerAndIncrementControllerEpoch``. After a lost response Kafka
compares the broker id in ``/controller``. kframe compares the owning session: an id says nothing about a session.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kazoo.protocol.serialization import Sync

from kframe.plugin import StoreError, ZnodeError
from kframe.plugin.znodes import is_controller_only
from kframe_zookeeper.bulk.nodes import ReadNode, read_nodes
from kframe_zookeeper.bulk.writes import LOST, UNTRIED, Writes, require, write_all, write_once
from kframe_zookeeper.session.requests import (
    BAD_VERSION,
    EPHEMERAL,
    NO_NODE,
    NODE_EXISTS,
    check,
    create,
    delete,
    error_name,
    set_data,
)
from kframe_zookeeper.session.session import RequestLost, Session
from kframe_zookeeper.znodes.cluster import (
    decode_controller,
    decode_controller_epoch,
    encode_controller,
    encode_controller_epoch,
)
from kframe_zookeeper.znodes.paths import CONTROLLER, CONTROLLER_EPOCH, broker_path

#: Controller epochs are int32 on the wire; the last values are reserved for a manual repair.
EPOCH_MAX: Final = 2**31 - 2
#: Attempts to claim the role after lost answers and concurrent changes.
TRIES_MAX: Final = 5
_REFUSED: Final = (NODE_EXISTS, BAD_VERSION, NO_NODE)


@dataclass(frozen=True, slots=True)
class WonElection:
    """A won election. It has the controller epoch, and the version of its znode, which fences writes."""

    controller_epoch: int
    epoch_version: int

    def guard(self, root: str) -> bytes:
        """The operation that fails after any later election."""
        return check(root + CONTROLLER_EPOCH, self.epoch_version)

    def is_current(self, epoch: ReadNode | None) -> bool:
        """Whether the controller epoch znode is unchanged, so that writes pass."""
        return epoch is not None and epoch.version == self.epoch_version


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate of an election. ``root``: the chroot; ``acl``: the encoded ACL of both znodes.

    ``highest`` is the highest controller epoch seen. Brokers refuse requests with a lower one, so a deleted or lowered
    znode does not lower the next epoch.
    """

    session: Session
    root: str
    acl: bytes
    controller_id: int
    now_ms: int
    highest: int = 0

    def next_claim(self, epoch: ReadNode) -> WonElection:
        """The claim with the next controller epoch. Raises StoreError if there is none."""
        claim = WonElection(max(_decoded(epoch), self.highest) + 1, epoch.version + 1)
        if claim.controller_epoch > EPOCH_MAX:
            raise StoreError(f"{CONTROLLER_EPOCH} holds {_decoded(epoch)}: no higher controller epoch can be sent")
        return claim

    def claim(
        self, *, takeover: bool = False, brokers_only: bool = False, early: WonElection | None = None
    ) -> WonElection | None:
        """Become controller; None if the role is taken or another contender was faster.

        ``early``: a claim of this session that was sent already. It counts if both znodes show it.

        ``takeover``: take the role also from the present controller; with ``brokers_only``, only from a broker. A
        controller that is elected meanwhile keeps the role: each election raises the version of the controller epoch,
        which the transaction checks. Raises RequestLost if the outcome is unknown, StoreError for malformed znodes.
        """
        if early is not None and self._is_ours(*self._read(), early):
            return early
        claim: WonElection | None = None
        deposed: ReadNode | None = None
        code = 0
        for _ in range(TRIES_MAX):
            epoch, holder = self._read()
            if claim is not None and self._is_ours(epoch, holder, claim):
                return claim
            if claim is None and takeover and not (brokers_only and not self._is_broker(holder)):
                deposed = holder
            if holder is not None and (deposed is None or holder.czxid != deposed.czxid):
                return None
            claim = self.next_claim(epoch)
            writes = Writes.of([self.operations(claim, holder)])
            code = int(write_once(self.session, b"", writes).code[0])
            if code == 0:
                return claim
            if code == LOST:
                self.session.await_connection()
            elif code not in (*_REFUSED, UNTRIED):
                raise StoreError(f"ZooKeeper refused the claim: {error_name(code)}")
        if code == LOST:
            raise RequestLost("whether the role was won is not known")
        raise StoreError(f"{TRIES_MAX} claims were refused, but there is no controller")

    def _read(self) -> tuple[ReadNode, ReadNode | None]:
        """The znodes of the controller epoch, created if missing, and of the controller.

        The server may lag behind its ensemble and still show a former controller, so it is synced first.
        """
        self.session.call(Sync(self.root + CONTROLLER))
        paths = [self.root + CONTROLLER_EPOCH, self.root + CONTROLLER]
        epoch, holder = read_nodes(self.session, paths)
        while epoch is None:
            first = create(self.root + CONTROLLER_EPOCH, encode_controller_epoch(0), self.acl)
            outcomes, _ = write_all(self.session, b"", Writes.of([[first]]))
            require(outcomes, NODE_EXISTS)
            epoch, holder = read_nodes(self.session, paths)
        return epoch, holder

    def _is_ours(self, epoch: ReadNode, holder: ReadNode | None, claim: WonElection) -> bool:
        """Whether a claim with a lost response has succeeded."""
        ours = holder is not None and holder.owner == self.session.session_id
        return ours and epoch.version == claim.epoch_version and _decoded(epoch) == claim.controller_epoch

    def _is_broker(self, holder: ReadNode | None) -> bool:
        """Whether the owner of this controller znode is a broker: it also owns the registration of that id.

        Brokers register and contend in the same session (Kafka 3.9 ``KafkaServer.startup``). An instance of kframe has
        no registration, or a marked one (``presence``).
        """
        if holder is None:
            return False
        try:
            path = broker_path(decode_controller(holder.data).brokerid)
        except ZnodeError:
            return False
        (registration,) = read_nodes(self.session, [self.root + path])
        same_session = registration is not None and registration.owner == holder.owner
        return same_session and registration is not None and not is_controller_only(registration.data)

    def operations(self, claim: WonElection, holder: ReadNode | None) -> list[bytes]:
        """The transaction that claims the role, and deletes the znode of ``holder`` if there is a controller."""
        raised = set_data(
            self.root + CONTROLLER_EPOCH, encode_controller_epoch(claim.controller_epoch), claim.epoch_version - 1
        )
        ours = create(self.root + CONTROLLER, encode_controller(self.controller_id, self.now_ms), self.acl, EPHEMERAL)
        if holder is None:
            return [ours, raised]
        return [raised, delete(self.root + CONTROLLER, holder.version), ours]


def _decoded(epoch: ReadNode) -> int:
    try:
        return decode_controller_epoch(epoch.data)
    except ZnodeError as error:
        raise StoreError(str(error)) from error
