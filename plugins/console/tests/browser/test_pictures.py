"""The pictures of the documentation: they can be made, and are small."""

from __future__ import annotations

import io
from typing import Any

import pytest

from tests.architecture.source import ROOT

Image = pytest.importorskip("PIL.Image")
pictures = pytest.importorskip("verification.console.pictures")


def test_documentation_has_all_pictures_and_they_are_small() -> None:
    files = {path.name: path.stat().st_size for path in (ROOT / "docs" / "pictures").glob("*.png")}
    assert files.keys() == {f"{each.name}-{theme}.png" for each in pictures.PICTURES for theme in ("light", "dark")}
    assert max(files.values()) <= pictures.BYTES_MAX


@pytest.mark.real
def test_live_page_of_a_demo_is_pictured(browser: Any) -> None:
    shots = dict(pictures.pictures(browser, ["live"]))
    assert shots.keys() == {"live-light.png", "live-dark.png"}


@pytest.mark.real
def test_overview_is_pictured_in_light_and_dark(browser: Any) -> None:
    shots = dict(pictures.pictures(browser, ["overview"]))
    grounds = []
    for name in ("overview-light.png", "overview-dark.png"):
        with Image.open(io.BytesIO(shots[name])) as picture:
            assert (picture.mode, picture.size) == ("P", (1280, 720))
            grounds.append(sum(picture.convert("RGB").getpixel((2, 400))))
    assert grounds[0] > 3 * 200 > 3 * 60 > grounds[1]
