"""The reference pages have every command, key, metric, hook and name of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

import kframe
import kframe.plugin
from docs.generate import metrics as metrics_reference
from docs.generate.configuration import plugin_keys
from docs.generate.metrics import kraft_metrics, metrics, zookeeper_metrics
from docs.generate.plugins import hooks
from docs.generate.reference import FOLDER, REFERENCES, parts, reference_pages
from kframe.plugin import KframeHooks
from kframe.settings.settings import JVM_KEYS, SERVER_KEYS

PAGES: Final = reference_pages()
PYTHON: Final = PAGES[FOLDER / "python.md"]


def test_every_reference_is_on_a_page() -> None:
    assert sorted(name for path in PAGES for name in parts(path.read_text())) == sorted(REFERENCES)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_page_has_what_the_code_has(path: Path) -> None:
    assert path.read_text() == PAGES[path], "run make reference"


def test_known_keys_of_plugins_are_read_by_a_plugin() -> None:
    """Files lose unknown keys, so a misspelt known key is a setting without effect."""
    text = plugin_keys()
    assert [key for key in (*JVM_KEYS, *SERVER_KEYS) if f"`{key}`" not in text] == []


def test_every_metric_has_a_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    families = {name.partition("{")[0].removesuffix("_count") for name in (*zookeeper_metrics(), *kraft_metrics())}
    text = metrics()
    assert [family for family in families if f"| `{family}` |" not in text] == []
    assert "| `kframe_connections_dropped_total` | counter | `reason` | ZooKeeper, KRaft |" in text
    monkeypatch.setattr(metrics_reference, "MEANINGS", {"kframe_no_such_metric": "None."})
    with pytest.raises(ValueError, match="kframe_no_such_metric"):
        metrics()


def test_every_public_name_is_listed() -> None:
    listed = {heading.replace("\\", "") for heading in re.findall(r"^#### (\S+)$", PYTHON, re.MULTILINE)}
    assert [name for name in kframe._PUBLIC if f"kframe.{name}" not in listed] == []
    names = {name.rpartition(".")[2] for name in listed}
    assert [name for name in kframe.plugin.__all__ if name not in names] == []
    assert set(vars(KframeHooks)) >= {hook.__name__ for hook in hooks()}


def test_python_reference_does_not_depend_on_the_process() -> None:
    assert re.findall(r"<\w.* at 0x|<factory>|<function", PYTHON) == []
