"""The hook of the native selector. It is a Python module because pluggy does not accept compiled functions as hooks."""

from __future__ import annotations

import _last_in_sync

from kframe.plugin import ElectionKind, SelectorSpec, Tier, hookimpl


@hookimpl
def kframe_leader_selectors() -> list[SelectorSpec]:
    """Register the selector."""
    return [
        SelectorSpec(
            name="last-in-sync-native",
            tier=Tier.NATIVE,
            factory=lambda: _last_in_sync.__pyx_capi__["last_in_sync"],
            kinds=(ElectionKind.OFFLINE, ElectionKind.REASSIGN, ElectionKind.CONTROLLED_SHUTDOWN),
            doc="The last candidate that is eligible and in sync.",
        )
    ]
