"""Pictures of the main pages for the documentation: ``python -m verification.console.pictures``.

Consoles of the bundled clusters, and a demo of which a broker is killed, are shown in Chromium, in light and in dark,
and written to ``docs/pictures`` as PNG files with palettes. Needs Chromium and Pillow.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, NamedTuple

from kframe_console.command import example
from PIL import Image

from verification.console.browser import Visit, chromium, visiting
from verification.console.running import ConsoleProcess, running_console

_FOLDER: Final = Path(__file__).parents[2] / "docs" / "pictures"
_SIX_BROKERS: Final = example().parent / "kafka-3.9.1-six-brokers"
#: Most bytes of a picture, and colours of its palette.
BYTES_MAX: Final = 150_000
_COLOURS: Final = 64
_THEMES: Final = ("light", "dark")
_WIDTH: Final = 1280


#: Samples of a curve before it is shown.
_SAMPLES_MIN: Final = 30


class Picture(NamedTuple):
    """A page of a console of a source; without one of a demo."""

    name: str
    source: Path | None
    address: str
    height: int = 720


PICTURES: Final = (
    Picture("overview", _SIX_BROKERS / "broker-4-dead.zookeeper.jsonl.gz", "/"),
    Picture("partitions", _SIX_BROKERS / "broker-4-dead.zookeeper.jsonl.gz", "/partitions?sort=-health,topic"),
    Picture("explanation", example(), "/topics/clicks/4?fail=3"),
    Picture("whatif", _SIX_BROKERS / "healthy.zookeeper.jsonl.gz", "/whatif?operation=fail&brokers=2,4"),
    Picture("sweep", _SIX_BROKERS / "healthy.zookeeper.jsonl.gz", "/sweep"),
    Picture("live", None, "/live?broker=2", 960),
    Picture("plan", _SIX_BROKERS / "healthy.zookeeper.jsonl.gz", "/plans/generate?remove_brokers=3"),
)


def pictures(browser: Any, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """The name of the file and the content of each picture, in each theme."""
    for source in dict.fromkeys(picture.source for picture in PICTURES):
        chosen = [picture for picture in PICTURES if picture.source == source and picture.name in names]
        if not chosen:
            continue
        with _console(source) as console:
            if source is None:
                _break_demo(browser, console.port)
            for picture in chosen:
                window = {"width": _WIDTH, "height": picture.height}
                for theme in _THEMES:
                    with visiting(browser, console.port, color_scheme=theme, viewport=window) as visit:
                        visit.open(picture.address)
                        yield f"{picture.name}-{theme}.png", with_palette(_shot(visit))


def _console(source: Path | None) -> AbstractContextManager[ConsoleProcess]:
    return running_console("--demo") if source is None else running_console(source.name, links=[source])


def _break_demo(browser: Any, port: int) -> None:
    """Create a topic, kill a broker, and wait until the curves show it."""
    with visiting(browser, port) as visit:
        visit.open("/live")
        visit.page.get_by_label("topic", exact=True).fill("payments")
        visit.page.get_by_role("button", name="Create topic").click()
        visit.until(lambda: "payments" in visit.text("ol.events"))
        visit.page.locator(".tile[data-broker='2']").click()
        visit.page.get_by_role("button", name="Kill").click()
        visit.until(lambda: "broker 2 is fenced" in visit.text("ol.events"))
        samples = "async () => (await (await fetch('/live?format=json')).json()).sample"
        visit.until(lambda: visit.page.evaluate(samples), lambda count: count >= _SAMPLES_MIN)


def with_palette(content: bytes) -> bytes:
    """A PNG picture with a palette. Raises ValueError if it has more than BYTES_MAX bytes."""
    target = io.BytesIO()
    with Image.open(io.BytesIO(content)) as picture:
        reduced = picture.convert("RGB").quantize(_COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        reduced.save(target, "PNG", optimize=True)
    if len(target.getvalue()) > BYTES_MAX:
        raise ValueError(f"picture: found {len(target.getvalue())} bytes, expected at most {BYTES_MAX}")
    return target.getvalue()


def _shot(visit: Visit) -> bytes:
    visit.page.wait_for_timeout(500)  # The canvas of the heat map is painted from its own request.
    shot: bytes = visit.page.screenshot()
    return shot


def main(words: Sequence[str] | None = None) -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(prog="python -m verification.console.pictures", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *(picture.name for picture in PICTURES)], help="default: all")
    parser.add_argument("--out", type=Path, default=_FOLDER)
    chosen = parser.parse_args(words)
    chosen.out.mkdir(exist_ok=True)
    with chromium() as browser:
        for name, content in pictures(browser, chosen.names or [picture.name for picture in PICTURES]):
            (chosen.out / name).write_bytes(content)
            print(f"{len(content):7,}  {chosen.out / name}")


if __name__ == "__main__":
    main()
