"""Reads, watches and fenced writes in a session. Paths are below the chroot."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from kazoo.protocol.serialization import Sync
from kazoo.protocol.states import EventType

from kframe.plugin import ControllerFenced, StoreError, ZnodeError
from kframe_zookeeper.bulk.nodes import NODES_FIRST, ReadNode, Results, read_children, read_nodes, read_results
from kframe_zookeeper.bulk.state_writes import StateWriter
from kframe_zookeeper.bulk.writes import WriteOutcomes, Writes, require, write_all
from kframe_zookeeper.role.contender import Contender
from kframe_zookeeper.role.election import WonElection
from kframe_zookeeper.role.liveness import LivenessListener, LivenessWatch
from kframe_zookeeper.session.requests import NO_NODE, NODE_EXISTS, create, delete
from kframe_zookeeper.session.session import Session
from kframe_zookeeper.session.watches import Listing, Watched, Watches
from kframe_zookeeper.znodes.cluster import decode_controller
from kframe_zookeeper.znodes.instances import ListenerAddress, decode_instance
from kframe_zookeeper.znodes.paths import CONTROLLER, TOPICS, instance_path

_log = logging.getLogger("kframe.zookeeper")

#: Seconds that a standby waits for its first connection to the process of the active controller.
ATTEMPT_S: Final = 1.0

#: Returns the encoded ACL of a new node by its path below the chroot.
AclOf = Callable[[str], bytes]


class Connection:
    """A session with its watches and, while it has it, the controller role."""

    def __init__(self, session: Session, acl_of: AclOf, on_event: Callable[[EventType, str], None]) -> None:
        self.session = session
        self.root: str = session.client.chroot
        self.watches = Watches(session, on_event)
        self.contender = Contender(session, self.root)
        session.client.on_deleted = self.contender.on_deleted
        self.acl_of = acl_of
        self.claim: WonElection | None = None
        self._writer: StateWriter | None = None
        self._listener: LivenessListener | None = None
        self._watch: LivenessWatch | None = None
        self._watched_owner = 0
        self._changing_watch = threading.Lock()
        self._changing_role = threading.Lock()
        self._checked_reconnects = 0
        """The number of reconnects at the last check of the role."""

    @property
    def guard(self) -> bytes:
        """The check operation that begins every write of a controller. Raises ControllerFenced without a claim."""
        claim = self.claim
        if claim is None:
            raise ControllerFenced("this session has not claimed the role, or has lost it")
        return claim.guard(self.root)

    def require_claim(self, epoch: ReadNode | None) -> None:
        """Raise ControllerFenced unless we have the role. The controller epoch znode must be unchanged."""
        claim = self.claim
        if claim is None or not claim.is_current(epoch):
            raise ControllerFenced("another controller has claimed the role")

    @property
    def may_act(self) -> bool:
        """Whether we have the role for all we know, and the fence is open.

        After a reconnect this is false until the role was checked.
        """
        checked = self._checked_reconnects == self.watches.reconnects
        return self.claim is not None and checked and self.session.fence.is_open()

    def reconnected(self) -> None:
        """Note a reconnect; called in the client's own thread, before anything is sent."""
        self.watches.lose()

    def resume(self) -> None:
        """Arm all watches again after a reconnect, and check the role. Raises StoreError."""
        self.watches.rearm()
        self.check_role()

    @property
    def listener(self) -> ListenerAddress | None:
        """Where standbys connect to notice the end of this process. None before ``listen``."""
        return None if self._listener is None else self._listener.address

    def listen(self, token: str) -> None:
        """Open the port by which standbys notice the end of this process; see ``liveness``."""
        if self._listener is None:
            try:
                self._listener = LivenessListener(self.session.local_host(), token)
            except OSError as problem:
                _log.warning("standbys cannot detect the end of this process: no port can be opened (%s)", problem)

    def watch_holder(self) -> None:
        """Replace the controller that a claim is prepared for when its process ends. Raises StoreError.

        While the controller's record has no listener, the record is watched.
        """
        holder = self.contender.holder()
        if holder is None or holder.owner == self._watched_owner:
            return
        try:
            controller_id = decode_controller(holder.data).brokerid
            zxid, path = self.watches.last_zxid(), instance_path(controller_id)
            node = self.node(path)
            if node is None or node.owner != holder.owner:
                return  # A broker, or an instance without a record.
            instance, _, listener = decode_instance(str(controller_id), node.data)
        except ZnodeError as error:
            _log.debug("the end of the active controller's process will not be noticed: %s", error)
            return
        if listener is None:
            self.watches.arm([path], Watched.DATA, zxid)
            return
        with self._changing_watch:
            if holder.owner != self._watched_owner:
                self._end_watch()
                self._watched_owner = holder.owner
                on_end = partial(self.contender.replace, holder.owner)
                self._watch = LivenessWatch(listener, instance, on_end)

    def await_attempt(self) -> None:
        """Return when the first attempt to connect to the process of the active controller has ended, if there is one.

        A process that ends later is noticed at once. The wait is bounded, since a firewall may drop packets.
        """
        watch = self._watch
        if watch is not None:
            watch.await_attempt(ATTEMPT_S)

    def retire(self) -> None:
        """Close the liveness watch and the liveness listener."""
        self._end_watch()
        if self._listener is not None:
            self._listener.close()

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._watch = None

    def take_role(self, claim: WonElection | None) -> None:
        """Set the claim under which writes are fenced. None gives the role up."""
        with self._changing_role:
            self._set_role(claim)

    def check_role(self) -> None:
        """Read ``/controller``, and drop the claim if this session does not own it any more.

        So the loss of the role takes effect before queued events are handled. Raises StoreError.
        """
        claim, reconnects = self.claim, self.watches.reconnects
        if claim is None:
            return
        if reconnects != self._checked_reconnects:
            self.session.call(Sync(self.root + CONTROLLER))  # The new server may lag behind the former one.
        node = self.node(CONTROLLER)
        with self._changing_role:
            lost = node is None or node.owner != self.session.session_id
            if lost and self.claim is claim:
                self._set_role(None)
            self._checked_reconnects = max(self._checked_reconnects, reconnects)

    def _set_role(self, claim: WonElection | None) -> None:
        self.claim = claim
        self._writer = None if claim is None else StateWriter(self.session, claim.guard(self.root), self.acl_of(TOPICS))

    @property
    def writer(self) -> StateWriter:
        """Writes states. Raises ControllerFenced without a claim."""
        writer = self._writer
        if writer is None:
            raise ControllerFenced("this session has not claimed the role, or has lost it")
        return writer

    def nodes(self, paths: Sequence[str]) -> list[ReadNode | None]:
        """Data and stat of nodes; None if missing."""
        return read_nodes(self.session, [self.root + path for path in paths])

    def results(
        self, paths: Sequence[str], first: int = NODES_FIRST, *, probe_first: bool = False
    ) -> Iterator[tuple[int, Results]]:
        """The same in columns, by responses; the first requests are sent at once. See ``read_results``."""
        return read_results(self.session, [self.root + path for path in paths], first, probe_first=probe_first)

    def node(self, path: str) -> ReadNode | None:
        """Data and stat of one node, or None."""
        return self.nodes([path])[0]

    def children(self, paths: Sequence[str]) -> list[tuple[str, ...]]:
        """Names of the children of each node. Empty if it does not exist."""
        return [names or () for names in read_children(self.session, [self.root + path for path in paths])]

    def watched_children(self, path: str) -> list[str]:
        """Names of a node's children. Arms the watch. Raises StoreError if the node does not exist."""
        return self.watched_lists([path])[0]

    def watched_lists(self, paths: Sequence[str]) -> list[list[str]]:
        """The same for several nodes, requested together."""
        return self.await_lists(paths, self.watches.begin_lists(paths))

    def await_lists(self, paths: Sequence[str], responses: Listing) -> list[list[str]]:
        """Wait for lists from ``Watches.begin_lists``. Raises StoreError if a node does not exist."""
        lists = []
        for path, names in zip(paths, self.watches.await_lists(responses), strict=True):
            if names is None:
                raise StoreError(f"{path} does not exist, so its children cannot be watched")
            lists.append(names)
        return lists

    def create(self, path: str, data: bytes | None, flags: int = 0) -> bytes:
        """The operation that creates a node with its ACL."""
        return create(self.root + path, data, self.acl_of(path), flags)

    def write(self, writes: Sequence[Sequence[bytes]], *tolerated: int) -> WriteOutcomes:
        """Send fenced writes, each of some operations. Without writes only check the controller epoch.

        Raises ControllerFenced, and StoreError for refusals that are not ``tolerated``.
        """
        outcomes, _ = write_all(self.session, self.guard, Writes.of(writes or [()]))
        require(outcomes, *tolerated)
        return outcomes

    def write_unfenced(self, writes: Sequence[Sequence[bytes]], *tolerated: int) -> WriteOutcomes:
        """Send writes without a fence."""
        outcomes, _ = write_all(self.session, b"", Writes.of(writes))
        require(outcomes, *tolerated)
        return outcomes

    def create_missing(self, paths: Iterable[str]) -> None:
        """Create missing nodes without data, and their parents. Not fenced."""
        ancestors = dict.fromkeys(part for path in paths for part in _with_parents(path))
        nodes = self.nodes(list(ancestors))
        missing = [path for path, node in zip(ancestors, nodes, strict=True) if node is None]
        for path in missing:
            self.write_unfenced([[self.create(path, None)]], NODE_EXISTS)

    def delete_trees(self, paths: Sequence[str]) -> None:
        """Delete nodes and their descendants by fenced writes, children first. Missing nodes are skipped."""
        levels, level = [], list(paths)
        while level:
            levels.append(level)
            lists = self.children(level)
            level = [f"{path}/{name}" for path, names in zip(level, lists, strict=True) for name in names]
        for level in reversed(levels):
            self.write([[delete(self.root + path)] for path in level], NO_NODE)


def _with_parents(path: str) -> list[str]:
    parts = path.strip("/").split("/")
    return ["/" + "/".join(parts[: depth + 1]) for depth in range(len(parts))]
