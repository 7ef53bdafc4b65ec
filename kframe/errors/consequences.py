"""How a controller reacts to each failure of an operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kframe.errors.exceptions import BrokenInvariant, ControllerFenced, KframeError, StoreError


@dataclass(frozen=True, slots=True)
class Consequence:
    """How the runtime reacts to a failure inside an operation."""

    resign: bool
    page: bool


#: The reaction to each failure. Other errors end the operation only.
CONSEQUENCE: Final[Mapping[type[KframeError], Consequence]] = {
    ControllerFenced: Consequence(resign=True, page=False),
    StoreError: Consequence(resign=True, page=True),
    BrokenInvariant: Consequence(resign=True, page=True),
}
