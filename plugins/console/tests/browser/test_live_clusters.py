"""A broker of a real cluster is killed, and pages of the console that are open in Chromium show it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from kframe_console.command import REFRESH_S
from kframe_console.sources.monitor import PERIOD_S
from kframe_console.web.assets import STATIC

from verification.console.live.__main__ import CLUSTERS
from verification.console.live.pages import MARKS, watching_console
from verification.support.properties import load_profile
from verification.zookeeper.servers import missing

load_profile()
#: Seconds for a page to show a change after the controller knows it (issue 42), without the time of computations.
LIMIT_S: Final = 2.0


def test_pauses_leave_time_for_computations() -> None:
    (page_ms,) = re.findall(r"const PAUSE_MS = (\d+);", (STATIC / "live.js").read_text())
    (live_ms,) = re.findall(r'hx-trigger="every (\d+)ms"', (STATIC.parent / "templates" / "live.html").read_text())
    overview_s, events_s = REFRESH_S + int(page_ms) / 1000, REFRESH_S + PERIOD_S + int(live_ms) / 1000
    assert max(overview_s, events_s) <= 0.75 * LIMIT_S


@pytest.mark.real
@pytest.mark.extended
@pytest.mark.parametrize("name", CLUSTERS)
def test_pages_show_the_end_of_a_broker(
    name: str, browser: Any, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    if lacking := missing():
        pytest.skip(lacking)
    with CLUSTERS[name](tmp_path) as cluster:
        for number, source in enumerate(cluster.sources, 1):
            with watching_console(browser, cluster, source) as console:
                seconds = console.kill(number)
            assert set(seconds) == {*MARKS} - ({"controller"} if not cluster.has_metrics else set())
            record_property(source, seconds)
            print(f"{name}, {source}: {seconds}")  # The delays depend on the load of the machine.
