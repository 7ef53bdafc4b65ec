"""Kafka's ACLs of new znodes (Kafka 3.9 ``ZkData.defaultAcls``)."""

from __future__ import annotations

from typing import Final

from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from kframe_zookeeper.znodes.paths import CONSUMERS, SENSITIVE

OPEN: Final = (*OPEN_ACL_UNSAFE,)
#: ZooKeeper replaces "auth" by the identity of the connection.
CREATOR_ONLY: Final = (*CREATOR_ALL_ACL,)
CREATOR_AND_READERS: Final = (*CREATOR_ALL_ACL, *READ_ACL_UNSAFE)


def acl_of(path: str, secure: bool) -> tuple[ACL, ...]:
    """The ACL with which Kafka creates ``path`` (below the chroot); ``secure`` is ``zookeeper.set.acl``.

    Nodes below ``/kframe`` get the default: the creator may do everything, the world may read.
    """
    if not secure or is_below(path, CONSUMERS):
        return OPEN
    return CREATOR_ONLY if any(is_below(path, root) for root in SENSITIVE) else CREATOR_AND_READERS


def is_below(path: str, root: str) -> bool:
    """Whether a node is ``root`` or one of its descendants."""
    return path == root or path.startswith(f"{root}/")
