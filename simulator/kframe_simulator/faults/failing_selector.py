"""A leader selector that raises on request."""

from __future__ import annotations

from kframe.model.columns import Int32
from kframe.model.elections import ElectionBatch


class FailingSelector:
    """Raises for the next ``raises`` elections; otherwise uses the built-in selector."""

    name = "saboteur"

    def __init__(self) -> None:
        self.raises = 0

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """Raise, or elect the first in-sync candidate as Kafka does."""
        if self.raises:
            self.raises -= 1
            raise RuntimeError("this selector fails by order")
        raise NotImplementedError("the built-in selector is to decide")
