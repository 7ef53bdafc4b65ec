"""Every page: axe-core finds nothing serious in both themes, and nothing is covered or cut off at 100 % and 200 %."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final
from urllib.request import urlopen

import pytest
from kframe_console.pages.page import ActionPage
from kframe_console.routes import PAGES

from tests.tools import ToolMissing
from verification.console.accessibility import layout_problems, serious_findings
from verification.console.browser import LIMIT_S, Visit
from verification.console.running import running_console

pytestmark = pytest.mark.real

Open = Callable[..., Visit]

#: Consoles, and addresses of each page, with which it shows all of its parts. ``PLAN`` is a plan that was generated.
ADDRESSES: Final = {
    "overview": ("kraft", "/"),
    "brokers": ("kraft", "/brokers"),
    "topics": ("kraft", "/topics?sort=-partition_count"),
    "partitions": ("kraft", "/partitions?sort=-leader_epoch&health=at_min_isr"),
    "live": ("demo", "/live?broker=2"),
    "topic": ("kraft", "/topics/clicks"),
    "partition": ("kraft", "/topics/clicks/4?fail=3"),
    "whatif": ("healthy", "/whatif?operation=fail&brokers=2,4"),
    "whatif-partitions": ("healthy", "/whatif/partitions?operation=fail&brokers=2,4"),
    "sweep": ("healthy", "/sweep"),
    "sweep-failures": ("healthy", "/sweep/failures"),
    "sweep-heat": ("healthy", "/sweep/heat"),
    "restarts": ("healthy", "/restarts"),
    "plans": ("healthy", "/plans"),
    "plans-new": ("healthy", "/plans/generate?remove_brokers=3"),
    "plan": ("healthy", "/plans/PLAN"),
    "plan-moves": ("healthy", "/plan-moves?plan=PLAN"),
    "plan-comparison": ("healthy", "/plans/compare?left=PLAN&right=PLAN"),
    "plan-stages": ("healthy", "/plans/PLAN/stages"),
    "plan-stage": ("healthy", "/plans/PLAN/stages/1"),
    "plan-execution": ("healthy", "/plans/PLAN/execute"),
    "executions": ("healthy", "/executions"),
}
#: Pages without a case: a file, and pages of an execution or of consumer groups, which need brokers.
WITHOUT: Final = {"plan-file", "execution", "execution-goal", "groups"}
PAGE_CASES: Final = pytest.mark.parametrize("case", ADDRESSES.values(), ids=ADDRESSES)


@pytest.fixture(scope="module")
def ports(kraft_port: int, healthy_port: int) -> Iterator[dict[str, int]]:
    with running_console("--demo") as demo:
        yield {"kraft": kraft_port, "healthy": healthy_port, "demo": demo.port}


@pytest.fixture(scope="module")
def plan(healthy_port: int) -> str:
    url = f"http://127.0.0.1:{healthy_port}/plans/generate?remove_brokers=3&format=json"
    with urlopen(url, timeout=LIMIT_S) as response:
        return str(json.load(response)["id"])


def test_every_page_has_a_case() -> None:
    assert {*ADDRESSES, *WITHOUT} == {page.name for page in PAGES if not isinstance(page, ActionPage)}


def test_checks_find_what_they_look_for(visit_port: Open, kraft_port: int) -> None:
    visit = visit_port(kraft_port)
    visit.open("/brokers")
    visit.page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    visit.page.evaluate("document.querySelector('main').style.minWidth = '200vw'")
    visit.page.evaluate(
        "Object.assign(document.body.appendChild(document.createElement('div')).style,"
        " { position: 'fixed', inset: 0, height: '3rem', zIndex: 9 })"
    )
    (finding,) = findings_or_skip(visit)
    assert finding.startswith("button-name: ")
    wide, *covered = layout_problems(visit)
    assert wide.startswith('too wide: <main id="main"')
    assert any('covered: <a class="brand"' in each for each in covered)


def findings_or_skip(visit: Visit) -> list[str]:
    try:
        return serious_findings(visit)
    except ToolMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@PAGE_CASES
def test_axe_finds_nothing_serious(
    visit_port: Open, ports: dict[str, int], plan: str, case: tuple[str, str], scheme: str
) -> None:
    console, address = case
    visit = visit_port(ports[console], color_scheme=scheme)
    visit.open(address.replace("PLAN", plan))
    assert findings_or_skip(visit) == []


# A page at 200 % has half as many CSS pixels, of twice the size.
@pytest.mark.parametrize("zoom", [1, 2])
@PAGE_CASES
def test_nothing_is_covered_or_cut_off(
    visit_port: Open, ports: dict[str, int], plan: str, case: tuple[str, str], zoom: int
) -> None:
    console, address = case
    window = {"width": 1280 // zoom, "height": 800 // zoom}
    visit = visit_port(ports[console], viewport=window, device_scale_factor=zoom)
    visit.open(address.replace("PLAN", plan))
    assert layout_problems(visit) == []
