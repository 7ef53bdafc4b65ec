"""A read-only second controller that computes the decisions of a running one and reports differences."""

from __future__ import annotations

from kframe.shadow.comparison import Comparison, Disagreement
from kframe.shadow.shadow import Shadow

__all__ = ["Comparison", "Disagreement", "Shadow"]
