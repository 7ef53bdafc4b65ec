"""Puts the reference kernels in place of the compiled ones, so that all of kframe runs on them."""

from __future__ import annotations

import sys

from verification.reference import (
    assignments,
    core,
    describe,
    elections,
    isr_proposals,
    kcat_topics,
    kraft_columns,
    kraft_partitions,
    list_checks,
    plan_cycles,
    plans,
    reassignments,
    replica_index,
    requests,
    restarts,
    stages,
    states,
    sweep,
    znode_lines,
)


def use_reference_kernels() -> None:
    """Let later imports of ``kframe.kernels`` return the reference kernels. Native selectors remain.

    Raises RuntimeError if ``kframe.kernels`` is imported already: other modules would keep the compiled kernels.
    """
    if "kframe.kernels" in sys.modules:
        raise RuntimeError("kframe.kernels is imported already: expected the call before the first import of it")
    sys.modules |= {
        "kframe._core": core,
        "kframe.kernels._assignments": assignments,
        "kframe.kernels._describe": describe,
        "kframe.kernels._elections": elections,
        "kframe.kernels._isr_proposals": isr_proposals,
        "kframe.kernels._kcat_topics": kcat_topics,
        "kframe.kernels._kraft_columns": kraft_columns,
        "kframe.kernels._kraft_partitions": kraft_partitions,
        "kframe.kernels._list_checks": list_checks,
        "kframe.kernels._plan_cycles": plan_cycles,
        "kframe.kernels._plans": plans,
        "kframe.kernels._reassignments": reassignments,
        "kframe.kernels._replica_index": replica_index,
        "kframe.kernels._request_entries": requests,
        "kframe.kernels._request_sections": requests,
        "kframe.kernels._restarts": restarts,
        "kframe.kernels._stages": stages,
        "kframe.kernels._states": states,
        "kframe.kernels._sweep": sweep,
        "kframe.kernels._znode_lines": znode_lines,
    }
