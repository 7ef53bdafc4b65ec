"""The example programs work as described; ``tests/docs`` runs the blocks of the guide."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.examples.loading import ROOT

EXPECTED = {
    "asyncio_program.py": [
        "created: {'orders': 'NONE'}",
        "moved: NONE",
        "elected: ELECTION_NOT_NEEDED",
        "partitions: 12",
    ],
    "two_controllers.py": [
        "first come: 101 active, controller epoch 1, partitions 0",
        "first come: 102 waiting, partitions 0",
        "the first says NONE - the second says NOT_CONTROLLER",
        "the first is cut off: 102 active, controller epoch 2, partitions 4",
    ],
}
GUIDE = ROOT / "docs" / "howto" / "embedding.md"


@pytest.mark.parametrize("program", EXPECTED)
def test_program(program: str) -> None:
    path = ROOT / "examples" / "embedding" / program
    search_path = filter(None, (os.environ.get("PYTHONPATH"), str(ROOT)))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(search_path)}
    completed = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=False, env=environment
    )
    assert (completed.returncode, completed.stderr, completed.stdout.splitlines()) == (0, "", EXPECTED[program])


def test_every_program_is_run() -> None:
    assert {path.name for path in (ROOT / "examples" / "embedding").glob("*.py")} == set(EXPECTED)


def test_guide_names_every_public_name() -> None:
    import kframe

    text = GUIDE.read_text()
    assert [name for name in kframe._PUBLIC if f"kframe.{name}" not in text] == []
