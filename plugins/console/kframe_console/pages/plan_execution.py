"""The page that confirms the execution of a plan: what is expected on the cluster as it is. Its form begins it."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, defstruct

from kframe.plugin import InputError, ParameterError
from kframe.plugin.commands import execution_limit_options
from kframe.plugin.plans import ExecutionDocument, ExecutionEffect, ExecutionState, PreparedPlan, execution_document
from kframe_console.pages.page import ActionPage, ContentPage, PageContext, Redirect
from kframe_console.pages.plan_stages import limits_of
from kframe_console.plans.executions import ExecutionContent, Executions
from kframe_console.plans.forms import OptionForm
from kframe_console.plans.session import LIMITS, PlanLink

EXECUTION: Final = OptionForm(
    "execute", lambda *, limits: limits, execution_limit_options, parameters=LIMITS.parameters
)
_NOT_ALLOWED: Final = (
    "this console changes no cluster: it must be started with --allow-execute, on the brokers of a live cluster"
)


class ExecutionPreview(Struct):
    """What the execution of a plan would do. ``digest`` is that of the plan and its stages.

    ``execution`` is what ``kframe plan execute -o json`` prints without ``--execute``, for the cluster as it is; null
    where ``problems`` prevent it. ``known`` is the id of its execution, if it was begun before.
    """

    plan: str
    digest: str
    problems: list[str]
    known: str | None
    execution: ExecutionDocument | None


def preview_content(context: PageContext, parameters: Any) -> ExecutionPreview:
    """What an execution would do. Raises InputError, and StoreError for a cluster that cannot be reached."""
    staged = _prepared(context, parameters)
    if context.executions is None:
        return ExecutionPreview(parameters.plan, staged.digest, [_NOT_ALLOWED], None, None)
    execution_id = Executions.id_of(staged)
    if execution_id in context.executions.ids():
        return ExecutionPreview(parameters.plan, staged.digest, [], execution_id, None)
    limits = EXECUTION.request(EXECUTION.texts_of(parameters))
    checked = context.executions.check(staged, limits)
    if checked.problems or checked.start is None:
        return ExecutionPreview(parameters.plan, staged.digest, list(checked.problems), None, None)
    state = ExecutionState([checked.start])
    path = context.executions.path_of(execution_id)
    document = execution_document(state, path, {}, executed=False, effect=ExecutionEffect.of(checked.checked))
    return ExecutionPreview(parameters.plan, staged.digest, [], None, document)


def _prepared(context: PageContext, parameters: Any) -> PreparedPlan:
    link = PlanLink(plan=parameters.plan, request=parameters.request)
    return context.plans.prepared(context.reading, link, limits_of(parameters))


def begin(context: PageContext, parameters: Any) -> Redirect:
    """Begin the execution that a user has confirmed. Raises InputError for another plan than that of the page."""
    staged = _prepared(context, parameters)
    if context.executions is None:
        raise InputError("execution", "a console that changes no cluster", "--allow-execute on a live cluster")
    if staged.digest != parameters.digest:
        raise ParameterError("digest", repr(parameters.digest[:80]), "that of the plan: look at its page again")
    execution_id = context.executions.start(staged, EXECUTION.request(EXECUTION.texts_of(parameters)))
    return Redirect("/executions/{execution}", {"execution": execution_id})


def _forms(_context: PageContext, parameters: Any, _content: Any) -> dict[str, Any]:
    return {
        "fields": EXECUTION.fields,
        "limits": limits_of(parameters),
        "texts": EXECUTION.texts_of(parameters),
        "options": LIMITS.command_line(limits_of(parameters)),
    }


PAGE: Final = ContentPage(
    name="plan-execution",
    title="Execute a plan",
    path="/plans/{plan}/execute",
    doc="What the execution of a plan would do on the cluster as it is: kframe plan execute.",
    schema="kframe.console-execution-preview/v1",
    content=ExecutionPreview,
    build=preview_content,
    template="plan_execution.html",
    parameters=EXECUTION.parameters,
    in_navigation=False,
    extras=_forms,
)
BEGIN: Final = ActionPage(
    name="plan-execution-begin",
    title="Execute a plan",
    path="/plans/{plan}/execute",
    doc="Begin the execution of a plan.",
    schema="kframe.console-execution/v1",
    content=ExecutionContent,
    run=begin,
    template="execution.html",
    predict=preview_content,
    parameters=defstruct(
        "BeginParameters", [("digest", str)], bases=(EXECUTION.parameters,), kw_only=True, forbid_unknown_fields=True
    ),
    executes=True,
)
