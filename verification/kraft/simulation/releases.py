"""Whether a decision names the rules by release that it depends on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kframe.model.kraft.releases import ReleaseRule, has_rule
from kframe.plugin.kraft import ControllerResult
from kframe.plugin.kraft_controller import KraftContext
from verification.kraft.simulation.options import RELEASES
from verification.kraft.simulation.requests import Rule


def release_problem(context: KraftContext, rule: Rule, end: int, result: ControllerResult[Any]) -> str | None:
    """What is wrong if another release decides otherwise, and ``context.consulted`` has no rule that differs."""
    own = context.settings.release
    for release in RELEASES:
        if any(has_rule(release, each) != has_rule(own, each) for each in ReleaseRule if each in context.consulted):
            continue
        other = replace(context, settings=replace(context.settings, release=release), consulted=set())
        decided = rule(other, end)
        if (decided.records, decided.response) != (result.records, result.response):
            return f"{own} and {release} decide differently, and {context.consulted} are the same"
    return None
