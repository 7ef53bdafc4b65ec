"""The plans of this session. They are results of jobs, so their number and bytes are bounded.

An id is a digest of the request and of the cluster: the same request on the same cluster is the same plan. A link
also has the request, which makes the plan again after it was dropped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, urlencode

import msgspec
from msgspec import Struct

from kframe.plugin import KframeError, ParameterError
from kframe.plugin.columns import Int64, Ragged
from kframe.plugin.commands import PluginSettings, chosen_terms, goal_options, limit_options, term_options
from kframe.plugin.live import Progress
from kframe.plugin.plans import (
    GeneratedPlanDocument,
    Plan,
    PlanProposal,
    PlanRequest,
    PlanReview,
    PreparedPlan,
    StageManifest,
    StageRequest,
    Stamp,
    page_values,
    plan,
    plan_lines,
    resolve_plan,
    stage_plan,
)
from kframe.plugin.settings import short_repr
from kframe.plugin.snapshot import Snapshot
from kframe_console.jobs.jobs import Jobs
from kframe_console.plans.forms import OptionForm
from kframe_console.sources.reading import Reading

#: Bytes of a struct in memory for each byte of its JSON, about.
_STRUCT_BYTES: Final = 4
_ID_DIGITS: Final = 16


class PlanLink(Struct, kw_only=True, forbid_unknown_fields=True):
    """Names a plan: its id, and its request as a query, which makes it again."""

    plan: str
    request: str = ""


def _goals(*, goals: dict[str, Any], goal: str | None, cost_terms: tuple[str, ...]) -> dict[str, Any]:
    try:
        return {**goals, **chosen_terms(PluginSettings(), goal, cost_terms)}
    except KframeError as problem:
        names = ", ".join(filter(None, (goal, *cost_terms)))
        raise ParameterError("goal", short_repr(names), f"those of plugins: {problem}") from problem


#: The goals of a plan, and the limits of its stages.
GOALS: Final = OptionForm("generate", _goals, goal_options, term_options)
LIMITS: Final = OptionForm("stage", lambda *, limits: limits, limit_options, parameters=PlanLink)


@dataclass(frozen=True, slots=True, eq=False)
class StoredPlan:
    """A generated plan without its snapshot. ``before`` (k,) are the replicas of its partitions when it was made,
    ``adding`` and ``removing`` the replicas that it copies and deletes."""

    id: str
    texts: Mapping[str, str]
    plan: Plan
    before: Ragged
    adding: Ragged
    removing: Ragged
    stamp: Stamp
    document: GeneratedPlanDocument
    page: Mapping[str, Any]
    made_at: datetime

    @property
    def query(self) -> str:
        """The request as a query."""
        return urlencode(self.texts)

    @property
    def nbytes(self) -> int:
        """Bytes of all parts, about."""
        targets = self.plan.targets
        lists = (targets.replicas, self.before, self.adding, self.removing)
        arrays = (targets.topic, targets.partition, *(array for part in lists for array in (part.values, part.offsets)))
        documents = len(msgspec.json.encode(self.document)) + len(msgspec.json.encode(self.page))
        return sum(array.nbytes for array in arrays) + _STRUCT_BYTES * documents

    def lines(self) -> Iterator[str]:
        """The file that ``kafka-reassign-partitions`` reads."""
        return plan_lines(self.plan, self.stamp)


#: Compares two plans.
Comparison: TypeAlias = Callable[["StoredPlan", "StoredPlan"], Any]
#: The bytes of a replica of each row of a snapshot; None: they are unknown.
Sizes: TypeAlias = Callable[[Snapshot], Int64 | None]


def no_sizes(_snapshot: Snapshot) -> None:
    """The sizes are unknown."""


class Plans:
    """Generates plans, and finds the retained ones."""

    def __init__(self, jobs: Jobs, sizes: Sizes) -> None:
        self._jobs = jobs
        self.sizes: Final = sizes

    def stored(self) -> list[StoredPlan]:
        """The retained plans, the last used first."""
        return [result for result in self._jobs.results() if isinstance(result, StoredPlan)]

    def id_of(self, reading: Reading, texts: Mapping[str, str]) -> str:
        """The id of the plan for a request on the cluster of a reading."""
        identity = [reading.digest, *texts.items()]
        return hashlib.sha256(msgspec.json.encode(identity)).hexdigest()[:_ID_DIGITS]

    def find(self, link: PlanLink, reading: Reading) -> tuple[str, Mapping[str, str]]:
        """The id and the request of the plan that a link names; on the present cluster if the plan was dropped.

        Raises ParameterError for an unknown plan without its request.
        """
        stored: StoredPlan | None = self._jobs.retained(("plan", link.plan))
        if stored is not None:
            return stored.id, stored.texts
        if not link.request:
            raise ParameterError("plan", short_repr(link.plan), "the id of a plan of this session, or its request too")
        texts = request_texts(link.request)
        return self.id_of(reading, texts), texts

    def generated(self, reading: Reading, link: PlanLink) -> StoredPlan:
        """The plan that a link names. Raises Unfinished while it is made, and InputError for an impossible request."""
        plan_id, texts = self.find(link, reading)
        title = f"Generate a plan: {GOALS.command_line(texts)}"
        return self._jobs.result(
            ("plan", plan_id), title, lambda progress: self.make(reading, plan_id, texts, progress), _nbytes
        )

    def compared(self, reading: Reading, left: PlanLink, right: PlanLink, compare: Comparison) -> Any:
        """What ``compare`` returns for two plans. Raises Unfinished and InputError."""
        requests = [self.find(link, reading) for link in (left, right)]

        def compute(progress: Progress) -> Any:
            return compare(*(self.make(reading, plan_id, texts, progress) for plan_id, texts in requests))

        key = ("comparison", *(plan_id for plan_id, _ in requests))
        return self._jobs.result(key, "Compare two plans", compute, _struct_nbytes)

    def prepared(self, reading: Reading, link: Any) -> PreparedPlan:
        """A plan for execution: in stages within the limits of ``link``, or in a single stage without limits.

        Raises Unfinished and InputError.
        """
        (plan_id, texts), limits = self.find(link, reading), LIMITS.texts_of(link)
        request = LIMITS.request(limits)

        def compute(progress: Progress) -> PreparedPlan:
            stored = self.make(reading, plan_id, texts, progress)
            if not limits:
                return PreparedPlan.single_stage(stored.plan, stored.stamp)
            manifest = self._stages(reading, stored, request)
            return replace(PreparedPlan.of_manifest(manifest, stored.plan.name), stamp=stored.stamp)

        key = ("prepared", plan_id, reading.digest, *limits.items())
        return self._jobs.result(key, f"Prepare plan {plan_id}", compute, lambda staged: 500 * len(staged.plan))

    def staged(self, reading: Reading, link: Any) -> StageManifest:
        """The stages of a plan on the present cluster, within the limits of ``link``.

        Raises Unfinished and InputError.
        """
        (plan_id, texts), limits = self.find(link, reading), LIMITS.texts_of(link)
        request = LIMITS.request(limits)

        def compute(progress: Progress) -> StageManifest:
            return self._stages(reading, self.make(reading, plan_id, texts, progress), request)

        key = ("stages", plan_id, reading.digest, *limits.items())
        return self._jobs.result(key, f"Put plan {plan_id} in stages", compute, _struct_nbytes)

    def make(self, reading: Reading, plan_id: str, texts: Mapping[str, str], progress: Progress) -> StoredPlan:
        """The plan with this id, made now unless it is retained. Raises InputError."""
        stored: StoredPlan | None = self._jobs.retained(("plan", plan_id))
        if stored is not None:
            return stored
        return _stored(plan_id, texts, plan(reading.snapshot, self.check(reading, texts), progress=progress))

    def check(self, reading: Reading, texts: Mapping[str, str]) -> PlanRequest:
        """The request of these texts. Known sizes are balanced, unless a goal has its own. Raises InputError."""
        request = GOALS.request(texts)
        return PlanRequest(**request, weights=None if request.get("goal") else self.sizes(reading.snapshot))

    def _stages(self, reading: Reading, stored: StoredPlan, request: Mapping[str, Any]) -> StageManifest:
        checked = resolve_plan(stored.plan, reading.snapshot)
        return stage_plan(checked, StageRequest(**request, weights=self.sizes(reading.snapshot))).manifest


def request_texts(query: str) -> dict[str, str]:
    """The request in a query. Raises ParameterError."""
    try:
        pairs = dict(parse_qsl(query, strict_parsing=True, max_num_fields=len(GOALS.fields)))
    except ValueError as problem:
        raise ParameterError("request", short_repr(query), "the fields of a plan as a query") from problem
    unknown = pairs.keys() - {field.name for field in GOALS.fields}
    if unknown:
        raise ParameterError("request", short_repr(min(unknown)), "a field of a plan")
    return GOALS.texts(pairs)


def _stored(plan_id: str, texts: Mapping[str, str], proposal: PlanProposal) -> StoredPlan:
    generated = proposal.plan
    checked = resolve_plan(generated, proposal.problem.snapshot, one_rack=proposal.problem.request.one_rack)
    stamp = checked.stamp()
    digest = hashlib.sha256()
    for part in plan_lines(generated, stamp):
        digest.update(part.encode())
    review = PlanReview.of_proposal(proposal, checked)
    assert review.generated is not None
    page = page_values(review, digest.hexdigest(), count=0)
    del page["generated"]
    return StoredPlan(
        plan_id,
        texts,
        generated,
        checked.origin,
        checked.adding,
        checked.removing,
        stamp,
        review.generated,
        page,
        datetime.now(UTC),
    )


def _nbytes(stored: StoredPlan) -> int:
    return stored.nbytes


def _struct_nbytes(content: Struct) -> int:
    return _STRUCT_BYTES * len(msgspec.json.encode(content))
