"""Who is controller: claiming the role, taking it from a live controller, giving it up (``spec/zookeeper.md`` 4).

Kafka 3.9 ``KafkaZkClient.registerControllerAndIncrementControllerEpoch``. Where that takes a record with our broker id
for ours after a lost answer, we ask whose session it belongs to: an id says nothing about a session.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError
from kazoo.protocol.serialization import Sync

from kframe.plugin import StoreError, ZnodeError
from kframe_zookeeper.multiread import Node, error_name, read_nodes
from kframe_zookeeper.multiwrite import LOST, UNTRIED, Writes, require, write_all, write_once
from kframe_zookeeper.paths import CONTROLLER, CONTROLLER_EPOCH, broker_path
from kframe_zookeeper.requests import EPHEMERAL, check, create, delete, set_data
from kframe_zookeeper.session import RequestLost, Session
from kframe_zookeeper.znodes import (
    decode_controller,
    decode_controller_epoch,
    encode_controller,
    encode_controller_epoch,
    is_controller_only,
)

#: Controller epochs are int32 on the wire; the last ones are left for whoever mends the record.
EPOCH_MOST: Final = 2**31 - 2
#: How often a claim is repeated whose answer was lost, or that met somebody who has gone again.
TRIES_MOST: Final = 5
_REFUSED: Final = (NodeExistsError.code, BadVersionError.code, NoNodeError.code)


@dataclass(frozen=True, slots=True)
class Claim:
    """The role as it was won: the controller epoch, and the version of its record that fences our writes."""

    controller_epoch: int
    epoch_version: int

    def guard(self, root: str) -> bytes:
        """The operation that fails once anybody has claimed the role after us."""
        return check(root + CONTROLLER_EPOCH, self.epoch_version)

    def stands(self, epoch: Node | None) -> bool:
        """Whether the record of the controller epoch is as we left it, so that it lets our writes pass."""
        return epoch is not None and epoch.version == self.epoch_version


@dataclass(frozen=True, slots=True)
class Candidate:
    """Who stands for election, in which session; ``root`` is the chroot, ``acl`` what the two records get.

    ``highest`` is a controller epoch that there has been, whatever the record says: brokers remember it, and do nothing
    that is asked of them under a lower one. So a record that was deleted or lowered is not followed.
    """

    session: Session
    root: str
    acl: bytes
    controller_id: int
    now_ms: int
    highest: int = 0

    def next_claim(self, epoch: Node) -> Claim:
        """The claim that follows this record of the controller epoch. Raises StoreError where none can."""
        claim = Claim(max(_decoded(epoch), self.highest) + 1, epoch.version + 1)
        if claim.controller_epoch > EPOCH_MOST:
            raise StoreError(f"{CONTROLLER_EPOCH} holds {_decoded(epoch)}: no higher controller epoch can be sent")
        return claim

    def claim(
        self, *, takeover: bool = False, brokers_only: bool = False, early: Claim | None = None
    ) -> Claim | None:  # fmt: skip
        """Become controller; None if the role is taken or another contender was faster. ``early`` is a claim of this
        session that was sent already: it counts if the records say that it was done and still holds.

        ``takeover`` takes the role also from the controller that holds it now, with ``brokers_only`` only if that is a
        broker; the deletion of its record notifies it. A controller that is elected while this runs keeps the role. The
        write names the version of the controller epoch that was read before the record of that controller. Each
        election raises it, so the record that is deleted is the one that was read.
        Raises RequestLost where that cannot be found out, StoreError where the records make no sense.
        """
        if early is not None and self._is_ours(*self._read(), early):
            return early
        claim: Claim | None = None
        deposed: Node | None = None
        code = 0
        for _ in range(TRIES_MOST):
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
        raise StoreError(f"{TRIES_MOST} claims were refused, and still nobody holds the role")

    def _read(self) -> tuple[Node, Node | None]:
        """The records of the controller epoch, made where it is missing, and of the controller.

        Our server may lag behind the others of its ensemble, and still show a controller that has gone: it is brought
        up to date first (``reliability.md`` R13).
        """
        self.session.call(Sync(self.root + CONTROLLER))
        paths = [self.root + CONTROLLER_EPOCH, self.root + CONTROLLER]
        epoch, holder = read_nodes(self.session, paths)
        while epoch is None:
            first = create(self.root + CONTROLLER_EPOCH, encode_controller_epoch(0), self.acl)
            outcomes, _ = write_all(self.session, b"", Writes.of([[first]]))
            require(outcomes, NodeExistsError.code)
            epoch, holder = read_nodes(self.session, paths)
        return epoch, holder

    def _is_ours(self, epoch: Node, holder: Node | None, claim: Claim) -> bool:
        """Whether a claim whose answer was lost has been done."""
        ours = holder is not None and holder.owner == self.session.session_id
        return ours and epoch.version == claim.epoch_version and _decoded(epoch) == claim.controller_epoch

    def _is_broker(self, holder: Node | None) -> bool:
        """Whether the session of this controller record owns the registration of that broker id, too.

        Kafka's brokers register and stand for election in one session (3.9 ``KafkaServer.startup``); an instance of
        kframe has no registration, or one that is marked (``presence``).
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

    def operations(self, claim: Claim, holder: Node | None) -> list[bytes]:
        """The transaction that claims the role; it deletes the record of ``holder`` if there is one."""
        raised = set_data(
            self.root + CONTROLLER_EPOCH, encode_controller_epoch(claim.controller_epoch), claim.epoch_version - 1
        )
        ours = create(
            self.root + CONTROLLER, encode_controller(self.controller_id, self.now_ms), self.acl, EPHEMERAL
        )  # fmt: skip
        if holder is None:
            return [ours, raised]
        return [raised, delete(self.root + CONTROLLER, holder.version), ours]


def _decoded(epoch: Node) -> int:
    try:
        return decode_controller_epoch(epoch.data)
    except ZnodeError as error:
        raise StoreError(str(error)) from error
