"""Every page: axe-core finds nothing serious in both themes, and nothing is covered or cut off at 100 % and 200 %."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

import httpx2
import pytest
from kframe_console.pages.page import ActionPage
from kframe_console.routes import FLEET_PAGES, PAGES

from tests.tools import ToolMissing
from verification.console.accessibility import layout_problems, serious_findings
from verification.console.browser import LIMIT_S, Open, Visit
from verification.console.client import ConsoleClient
from verification.console.embedded import executing_application
from verification.console.running import running_console
from verification.console.served import served

pytestmark = pytest.mark.real


#: Consoles, and addresses of each page, with which it shows all of its parts. ``PLAN`` and ``EXECUTION`` are ids.
ADDRESSES: Final = {
    "overview": ("kraft", "/"),
    "brokers": ("kraft", "/brokers"),
    "topics": ("kraft", "/topics?sort=-partition_count"),
    "partitions": ("kraft", "/partitions?sort=-leader_epoch&health=at_min_isr"),
    "live": ("demo", "/live?broker=2"),
    "clusters": ("fleet", "/"),
    "groups": ("groups", "/groups?topic=clicks"),
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
    "executions": ("executing", "/executions"),
    "execution": ("executing", "/executions/EXECUTION"),
    "execution-goal": ("executing", "/executions/EXECUTION/abort"),
}
#: Pages that show a cluster of a fleet.
OF_FLEET: Final = {
    "overview-of-fleet": ("fleet", "/overview?at=west%3D1"),
    "partitions-of-fleet": ("fleet", "/partitions?at=east"),
    "topic-of-fleet": ("fleet", "/topics/clicks?at=west%3D1"),
}
#: A page without a case is a file.
WITHOUT: Final = {"plan-file"}
PAGE_CASES: Final = pytest.mark.parametrize(
    "case", [*ADDRESSES.values(), *OF_FLEET.values()], ids=[*ADDRESSES, *OF_FLEET]
)


class Consoles(NamedTuple):
    """The ports of the consoles by name, and the ids in ADDRESSES."""

    ports: Mapping[str, int]
    ids: Mapping[str, str]

    def address(self, address: str) -> str:
        """An address of ADDRESSES with its ids."""
        for name, id_ in self.ids.items():
            address = address.replace(name, id_)
        return address


@contextmanager
def client_of(port: int) -> Iterator[ConsoleClient]:
    url = f"http://127.0.0.1:{port}"
    with httpx2.Client(base_url=url, timeout=LIMIT_S, follow_redirects=True, trust_env=False) as client:
        yield ConsoleClient(client)


@pytest.fixture(scope="module")
def consoles(
    kraft_port: int, healthy_port: int, fleet_port: int, groups_port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Consoles]:
    with (
        running_console("--demo") as demo,
        executing_application(tmp_path_factory.mktemp("executions")) as (app, _),
        served(app) as executing,
    ):
        with client_of(healthy_port) as client:
            plan = client.json("/plans/generate", remove_brokers="3")["id"]
        with client_of(executing) as client:
            executed = client.json("/plans/generate", remove_brokers="3")["id"]
            execution = client.confirm(f"/plans/{executed}/execute")["id"]
        ports = {"kraft": kraft_port, "healthy": healthy_port, "demo": demo.port, "executing": executing}
        ports |= {"fleet": fleet_port, "groups": groups_port}
        yield Consoles(ports, {"PLAN": plan, "EXECUTION": execution})


def test_every_page_has_a_case() -> None:
    assert {*ADDRESSES, *WITHOUT} == {page.name for page in (*PAGES, *FLEET_PAGES) if not isinstance(page, ActionPage)}


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
    problems = layout_problems(visit)
    assert any(problem.startswith('too wide: <main id="main"') for problem in problems)
    assert any('covered: <a class="brand"' in problem for problem in problems)


def findings_or_skip(visit: Visit) -> list[str]:
    try:
        return serious_findings(visit)
    except ToolMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@PAGE_CASES
def test_axe_finds_nothing_serious(visit_port: Open, consoles: Consoles, case: tuple[str, str], scheme: str) -> None:
    console, address = case
    visit = visit_port(consoles.ports[console], color_scheme=scheme)
    visit.open(consoles.address(address))
    assert findings_or_skip(visit) == []


# A page at 200 % has half as many CSS pixels, of twice the size.
@pytest.mark.parametrize("zoom", [1, 2])
@PAGE_CASES
def test_nothing_is_covered_or_cut_off(visit_port: Open, consoles: Consoles, case: tuple[str, str], zoom: int) -> None:
    console, address = case
    window = {"width": 1280 // zoom, "height": 800 // zoom}
    visit = visit_port(consoles.ports[console], viewport=window, device_scale_factor=zoom)
    visit.open(consoles.address(address))
    assert layout_problems(visit) == []
