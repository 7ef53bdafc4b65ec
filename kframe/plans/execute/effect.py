"""The expected effect of a plan on the cluster that it was checked against."""

from __future__ import annotations

from typing import Any, Final

from kframe.plans.check.resolve import CheckedPlan
from kframe.whatif import WhatIf
from kframe.whatif.document import summary_document

#: Fields of a what-if that do not describe the cluster, and do not depend on the order of requests.
_FIELDS: Final = ("rules", "impact", "reassignment", "assumptions")


def expected_effect(checked: CheckedPlan) -> dict[str, Any]:
    """The effect when all partitions of the plan move at once, as ``kframe whatif reassign`` predicts it."""
    whatif = WhatIf(checked.snapshot)
    document = summary_document(whatif.reassign(checked.plan), whatif.snapshot, whatif.cluster)
    return {name: document[name] for name in _FIELDS}
