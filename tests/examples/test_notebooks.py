"""The notebooks run from top to bottom, print what they describe, and are stored without outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

from tests.examples.loading import ROOT

FOLDER = ROOT / "examples" / "notebooks"
#: Parts of what each notebook prints.
EXPECTED = {
    "what-breaks.ipynb": [
        "645 partitions, 51 topics, 6 brokers",
        "312 partitions changed, 5 partitions offline",
        "0 pair [4, 5] None 12 142",
        "leaders_moved 101 105",
    ],
    "compare-selectors.ipynb": [
        "645 partitions, 51 topics, 6 brokers",
        "2 43 33 33",
    ],
}


def read(name: str) -> Any:
    return nbformat.read(FOLDER / name, as_version=4)  # type: ignore[no-untyped-call]


def printed(notebook: Any) -> str:
    """The text of all outputs of cells, with single blanks."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    text = " ".join(output.get("text") or output["data"]["text/plain"] for output in outputs)
    return " ".join(text.split())


@pytest.mark.extended
@pytest.mark.parametrize("name", EXPECTED)
def test_notebook_prints_what_it_describes(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)  # The kernel's sockets are in the current folder.
    notebook = read(name)
    config = Config({"KernelManager": {"transport": "ipc"}})
    NotebookClient(notebook, kernel_name="python3", timeout=120, config=config).execute()
    text = printed(notebook)
    assert [part for part in EXPECTED[name] if part not in text] == [], text


def test_notebooks_are_stored_without_outputs() -> None:
    notebooks = {path.name: read(path.name) for path in FOLDER.glob("*.ipynb")}
    assert notebooks.keys() == EXPECTED.keys()
    cells = [cell for notebook in notebooks.values() for cell in notebook.cells if cell.cell_type == "code"]
    assert {(cell.execution_count, len(cell.outputs)) for cell in cells} == {(None, 0)}
