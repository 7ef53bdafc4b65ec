"""What the calls of the store are made of: reads, watches and writes in one session. Paths are below the chroot."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from kazoo.exceptions import NodeExistsError, NoNodeError
from kazoo.protocol.serialization import Sync
from kazoo.protocol.states import EventType

from kframe.plugin import ControllerFenced, StoreError, ZnodeError
from kframe_zookeeper.contender import Contender
from kframe_zookeeper.liveness import LivenessListener, LivenessWatch
from kframe_zookeeper.multiread import NODES_FIRST, Node, Results, read_children, read_nodes, read_results
from kframe_zookeeper.multiwrite import WriteOutcomes, Writes, require, write_all
from kframe_zookeeper.paths import CONTROLLER, TOPICS, instance_path
from kframe_zookeeper.requests import create, delete
from kframe_zookeeper.role import Claim
from kframe_zookeeper.session import Session
from kframe_zookeeper.statewrite import StateWriter
from kframe_zookeeper.watches import Listing, Watches
from kframe_zookeeper.znodes import ListenerAddress, decode_controller, decode_instance

_log = logging.getLogger("kframe.zookeeper")

#: The ACL of new nodes, as create operations hold it, by path (below the chroot).
AclOf = Callable[[str], bytes]

NO_NODE: Final = NoNodeError.code
NODE_EXISTS: Final = NodeExistsError.code


class Connection:
    """One session with what it watches, and the role as long as it has it."""

    def __init__(self, session: Session, acl_of: AclOf, on_event: Callable[[EventType, str], None]) -> None:
        self.session = session
        self.root: str = session.client.chroot
        self.watches = Watches(session, on_event)
        self.contender = Contender(session, self.root)
        session.client.on_deleted = self.contender.on_deleted
        self.acl_of = acl_of
        self.claim: Claim | None = None
        self._writer: StateWriter | None = None
        self._listener: LivenessListener | None = None
        self._watch: LivenessWatch | None = None
        self._watched_owner = 0
        self._changing_watch = threading.Lock()
        self._changing_role = threading.Lock()
        self._reconnects = self._checked_reconnects = 0
        """Connections that were made anew, and how many there had been when the role was last checked."""

    @property
    def guard(self) -> bytes:
        """The check that every write of a controller begins with. Raises ControllerFenced without a claim."""
        claim = self.claim
        if claim is None:
            raise ControllerFenced("this session has not claimed the role, or has lost it")
        return claim.guard(self.root)

    def require_claim(self, epoch: Node | None) -> None:
        """Raise ControllerFenced unless we have the role and the record of the controller epoch is as we left it."""
        claim = self.claim
        if claim is None or not claim.stands(epoch):
            raise ControllerFenced("another controller has claimed the role")

    @property
    def may_act(self) -> bool:
        """Whether we have the role for all we know, in a session that is certain to live. Without a connection nothing
        is known, so the role has to be checked after each reconnect."""
        checked = self._checked_reconnects == self._reconnects
        return self.claim is not None and checked and self.session.fence.is_open()

    def reconnected(self) -> None:
        """The connection is back; called in the client's own thread, before anything is sent on it."""
        self._reconnects += 1
        self.watches.lose()

    def resume(self) -> None:
        """Watch again all that was watched before a reconnect, and check the role. Raises StoreError."""
        self.watches.rearm()
        self.check_role()

    @property
    def listener(self) -> ListenerAddress | None:
        """Where standbys connect to notice the end of this process; None before ``listen``."""
        return None if self._listener is None else self._listener.address

    def listen(self, token: str) -> None:
        """Open the port by which standbys notice the end of this process; see ``liveness``."""
        if self._listener is None:
            try:
                self._listener = LivenessListener(self.session.local_host(), token)
            except OSError as problem:
                _log.warning("standbys will not notice the end of this process: no port can be opened (%s)", problem)

    def watch_holder(self) -> None:
        """Replace the controller that a claim is prepared for when its process ends. Raises StoreError."""
        holder = self.contender.holder()
        if holder is None or holder.owner == self._watched_owner:
            return
        try:
            controller_id = decode_controller(holder.data).brokerid
            node = self.node(instance_path(controller_id))
            if node is None or node.owner != holder.owner:
                return  # a broker, or an instance without a record
            instance, _, listener = decode_instance(str(controller_id), node.data)
        except ZnodeError as error:
            _log.debug("the end of the active controller's process will not be noticed: %s", error)
            return
        if listener is None:
            return
        with self._changing_watch:
            if holder.owner != self._watched_owner:
                self._end_watch()
                self._watched_owner = holder.owner
                on_end = partial(self.contender.replace, holder.owner)
                self._watch = LivenessWatch(listener, instance.token, on_end)

    def retire(self) -> None:
        """Close the liveness watch and the liveness listener."""
        self._end_watch()
        if self._listener is not None:
            self._listener.close()

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._watch = None

    def take_role(self, claim: Claim | None) -> None:
        """Write under this claim from now on; None: no more."""
        with self._changing_role:
            self._set_role(claim)

    def check_role(self) -> None:
        """Something has happened to ``/controller``: if it is not ours any more, act no more, whatever waits to be done
        before that is handled (``reliability.md`` I3). Raises StoreError if it cannot be read."""
        claim, reconnects = self.claim, self._reconnects
        if claim is None:
            return
        if reconnects != self._checked_reconnects:
            self.session.call(Sync(self.root + CONTROLLER))  # another server may lag behind the one before
        node = self.node(CONTROLLER)
        with self._changing_role:
            lost = node is None or node.owner != self.session.session_id
            if lost and self.claim is claim:
                self._set_role(None)
            self._checked_reconnects = max(self._checked_reconnects, reconnects)

    def _set_role(self, claim: Claim | None) -> None:
        self.claim = claim
        self._writer = None if claim is None else StateWriter(self.session, claim.guard(self.root), self.acl_of(TOPICS))

    @property
    def writer(self) -> StateWriter:
        """Writes states. Raises ControllerFenced without a claim."""
        writer = self._writer
        if writer is None:
            raise ControllerFenced("this session has not claimed the role, or has lost it")
        return writer

    def nodes(self, paths: Sequence[str]) -> list[Node | None]:
        """Data and stat of nodes, None where there is none."""
        return read_nodes(self.session, [self.root + path for path in paths])

    def results(
        self, paths: Sequence[str], first: int = NODES_FIRST, *, probe_first: bool = False
    ) -> Iterator[tuple[int, Results]]:
        """The same by answers, in columns; the first requests leave at once. See ``read_results``."""
        return read_results(self.session, [self.root + path for path in paths], first, probe_first=probe_first)

    def node(self, path: str) -> Node | None:
        """Data and stat of one node, or None."""
        return self.nodes([path])[0]

    def children(self, paths: Sequence[str]) -> list[tuple[str, ...]]:
        """Names of the children of each node, none where there is no node."""
        return [names or () for names in read_children(self.session, [self.root + path for path in paths])]

    def watched_children(self, path: str) -> list[str]:
        """Names of a node's children, watched from now on. Raises StoreError if there is no such node."""
        return self.watched_lists([path])[0]

    def watched_lists(self, paths: Sequence[str]) -> list[list[str]]:
        """The same of several nodes, asked for together."""
        return self.await_lists(paths, self.watches.begin_lists(paths))

    def await_lists(self, paths: Sequence[str], answers: Listing) -> list[list[str]]:
        """The lists that ``watches`` was asked for. Raises StoreError if there is no such node."""
        lists = []
        for path, names in zip(paths, self.watches.await_lists(paths, answers), strict=True):
            if names is None:
                raise StoreError(f"{path} is missing: nobody can watch for its children")
            lists.append(names)
        return lists

    def create(self, path: str, data: bytes | None, flags: int = 0) -> bytes:
        """The operation that creates a node with the ACL that it should have."""
        return create(self.root + path, data, self.acl_of(path), flags)

    def write(self, writes: Sequence[Sequence[bytes]], *tolerated: int) -> WriteOutcomes:
        """Do writes as controller, each of some operations. Raises ControllerFenced, and StoreError for a refusal that
        is not ``tolerated``. Also without writes the role is checked."""
        outcomes, _ = write_all(self.session, self.guard, Writes.of(writes or [()]))
        require(outcomes, *tolerated)
        return outcomes

    def write_freely(self, writes: Sequence[Sequence[bytes]], *tolerated: int) -> WriteOutcomes:
        """Do writes that anybody may do, each at once and by itself."""
        outcomes, _ = write_all(self.session, b"", Writes.of(writes))
        require(outcomes, *tolerated)
        return outcomes

    def create_missing(self, paths: Iterable[str]) -> None:
        """Create nodes without data, and their parents, where they are missing. Not fenced."""
        wanted = dict.fromkeys(part for path in paths for part in _with_parents(path))
        nodes = self.nodes(list(wanted))
        missing = [path for path, node in zip(wanted, nodes, strict=True) if node is None]
        for path in missing:
            self.write_freely([[self.create(path, None)]], NODE_EXISTS)

    def delete_trees(self, paths: Sequence[str]) -> None:
        """Delete nodes with all that is below them, as controller, children first; what is gone is passed over."""
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
