"""A read-only second controller that computes the decisions of a running one and reports differences."""

from __future__ import annotations

from kframe.whatif.shadow.comparison import Comparison, Disagreement
from kframe.whatif.shadow.shadow import Shadow

__all__ = ["Comparison", "Disagreement", "Shadow"]
