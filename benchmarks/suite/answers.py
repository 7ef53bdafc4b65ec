"""The known answers of benches, by name, partitions and brokers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from kframe.bench.run import Bench

_ANSWERS: Final = Path(__file__).with_name("answers.json")
#: Partitions of the tests.
TEST_PARTITIONS: Final = 1_000


def check_answer(bench: Bench, answer: str, *, update: bool = False) -> bool:
    """Raise AssertionError unless the answer equals the known one; with ``update`` save it instead.

    Returns whether the answer is known. At the size of the tests each must be.
    """
    known: dict[str, str] = json.loads(_ANSWERS.read_text(encoding="utf-8"))
    key = f"{bench.name}/{bench.partitions}/{bench.brokers}"
    if update:
        known[key] = answer
        _ANSWERS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    elif key not in known and bench.partitions != TEST_PARTITIONS:
        return False
    if answer != known.get(key):
        raise AssertionError(f"{key}: the answer differs from the known one; see --new-answers")
    return True
