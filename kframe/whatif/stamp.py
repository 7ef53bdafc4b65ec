"""The stamp of a plan: its cluster and assignments, so that an outdated plan is refused."""

from __future__ import annotations

import msgspec


class Stamp(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cluster that a plan was made for; null is unknown."""

    cluster_id: str | None
    controller_epoch: int | None
    assignments: str
    """The SHA-256 of the assignments of the plan's own partitions: other partitions may change."""

    def stale(self, now: Stamp) -> str | None:
        """Why a plan with this stamp is not for the cluster as it is ``now``; None if it is."""
        if None not in (self.cluster_id, now.cluster_id) and self.cluster_id != now.cluster_id:
            return f"it was made for cluster {self.cluster_id}, this is {now.cluster_id}"
        if None not in (self.controller_epoch, now.controller_epoch) and self.controller_epoch != now.controller_epoch:
            return f"it was made under controller epoch {self.controller_epoch}, now it is {now.controller_epoch}"
        return "its partitions have been assigned anew since" if self.assignments != now.assignments else None
