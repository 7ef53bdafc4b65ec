"""What axe-core finds on a page, and what overlaps or is cut off at a size of the window."""

from __future__ import annotations

from typing import Any, Final

from tests.tools import npm_file
from verification.console.browser import Visit

#: axe-core of npm: its version, and the hash of its script.
_VERSION: Final = "4.14.1"
_SHA256: Final = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
#: The impacts of findings that no page may have.
_SERIOUS: Final = ("serious", "critical")
_RUN: Final = "() => axe.run(document, { resultTypes: ['violations'] })"
#: Elements that are used, and that another one covers where they are drawn. A table of windows scrolls its rows itself.
_COVERED: Final = """() => {
  const covered = [];
  const isShown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const shares = (element, other) => element.contains(other) || other.contains(element);
  for (const element of document.querySelectorAll("a[href], button, input, select, summary")) {
    if (!isShown(element) || element.closest(".skip, regular-table")) continue;
    element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const [box] = element.getClientRects();
    if (!box || !box.width) continue;
    const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    if (top && [element, ...(element.labels ?? [])].some((each) => shares(each, top))) continue;
    covered.push(`${element.outerHTML.slice(0, 120)} under ${top ? top.outerHTML.slice(0, 120) : "nothing"}`);
  }
  scrollTo(0, 0);
  return covered;
}"""
_OVERFLOW: Final = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const isWide = (element) => element.getBoundingClientRect().right > width + 1;
  const wide = [...document.body.querySelectorAll("*")].filter(isWide);
  return wide.slice(0, 5).map((element) => element.outerHTML.slice(0, 120));
}"""


def serious_findings(visit: Visit) -> list[str]:
    """The serious and critical findings of axe-core on the page, each with its first elements. Raises ToolMissing."""
    script = npm_file("axe-core", _VERSION, "axe.min.js", _SHA256)
    visit.page.evaluate(script.read_text(encoding="utf-8"))
    violations: list[dict[str, Any]] = visit.page.evaluate(_RUN)["violations"]
    return [
        f"{violation['id']}: {violation['help']}: {[node['html'][:200] for node in violation['nodes'][:5]]}"
        for violation in violations
        if violation["impact"] in _SERIOUS
    ]


def layout_problems(visit: Visit) -> list[str]:
    """What is beyond the right edge of the page, and what is covered by something else."""
    overflow: list[str] = visit.page.evaluate(_OVERFLOW)
    covered: list[str] = visit.page.evaluate(_COVERED)
    return [*(f"too wide: {each}" for each in overflow), *(f"covered: {each}" for each in covered)]
