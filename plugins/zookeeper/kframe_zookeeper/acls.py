"""Who may do what to which node (``spec/zookeeper.md`` section 9), and the audit of what stands there already."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError

from kframe_zookeeper.paths import CONSUMERS, PERSISTENT, SECURED, SENSITIVE

READ: Final = 1
WRITE: Final = 2
CREATE: Final = 4
DELETE: Final = 8
ADMIN: Final = 16
ALL: Final = 31
_CHANGE: Final = ALL & ~READ

_LOG: Final = logging.getLogger(__name__)


class Permit(NamedTuple):
    """One entry of an ACL: which of the five permissions, to whom (kazoo: ``ACL(perms, Id(scheme, id))``)."""

    permissions: int
    scheme: str
    identity: str


OPEN: Final = (Permit(ALL, "world", "anyone"),)
#: ZooKeeper puts the identity of the connection in place of "auth".
CREATOR_ONLY: Final = (Permit(ALL, "auth", ""),)
CREATOR_AND_READERS: Final = (*CREATOR_ONLY, Permit(READ, "world", "anyone"))


def acl_of(path: str, secure: bool) -> tuple[Permit, ...]:
    """What Kafka creates ``path`` (below the chroot) with; ``secure`` is ``zookeeper.set.acl``."""
    if not secure or _is_below(path, CONSUMERS):
        return OPEN
    return CREATOR_ONLY if any(_is_below(path, root) for root in SENSITIVE) else CREATOR_AND_READERS


@dataclass(frozen=True, slots=True)
class Exposed:
    """A node that anybody who reaches ZooKeeper may change, or, where it holds secrets, read."""

    path: str
    changeable: bool


def find_exposed(acls: Mapping[str, Iterable[Permit]]) -> tuple[Exposed, ...]:
    """Which of these nodes are open to the world."""
    found = []
    for path, permits in sorted(acls.items()):
        given = 0
        for permit in permits:
            given |= permit.permissions if permit.scheme == "world" else 0
        if given & _CHANGE or (given & READ and any(_is_below(path, root) for root in SENSITIVE)):
            found.append(Exposed(path, bool(given & _CHANGE)))
    return tuple(found)


def audit(client: KazooClient) -> tuple[Exposed, ...]:
    """Look at the ACL of every root that a controller writes below, and warn of those that are open to the world.

    One line, whatever is found; what is not there, or not for us to look at, is passed over. ``/consumers`` is open by
    design. Raises what kazoo raises when the connection fails.
    """
    wanted = sorted({*SECURED, *SENSITIVE, *PERSISTENT} - {CONSUMERS})
    results = [(path, client.get_acls_async(path)) for path in wanted]
    acls = {}
    for path, result in results:
        try:
            entries, _ = result.get()
        except (NoNodeError, NoAuthError):
            continue
        acls[path] = [Permit(entry.perms, entry.id.scheme, entry.id.id) for entry in entries]
    exposed = find_exposed(acls)
    if exposed:
        changeable = sum(one.changeable for one in exposed)
        named = ", ".join(one.path for one in exposed[:5]) + (", ..." if len(exposed) > 5 else "")
        _LOG.warning(
            "anybody who reaches ZooKeeper may change %d of %d roots and read %d that hold secrets (%s); "
            "zookeeper.set.acl and Kafka's zookeeper-security-migration close them",
            changeable, len(acls), len(exposed) - changeable, named,
        )  # fmt: skip
    return exposed


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")
