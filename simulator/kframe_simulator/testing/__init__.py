"""Fixtures of the simulator's own tests."""

from pathlib import Path
from typing import Final

#: The root of the repository.
ROOT: Final = Path(__file__).resolve().parents[3]
