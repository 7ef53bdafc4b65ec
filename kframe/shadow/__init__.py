"""A controller that decides what another one decides, on a copy, and says where they differ; it writes nothing."""

from __future__ import annotations

from kframe.shadow.judge import Disagreement, Verdict
from kframe.shadow.reading import ReadOnlyStore
from kframe.shadow.shadow import Shadow

__all__ = ["Disagreement", "ReadOnlyStore", "Shadow", "Verdict"]
