"""The page that confirms the execution of a plan: its expected effect on the present cluster. Its form begins it."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from kframe.plugin import ParameterError
from kframe.plugin.commands import execution_limit_options
from kframe.plugin.plans import ExecutionDocument, ExecutionEffect, ExecutionState, execution_document
from kframe_console.pages.executions import execution_page, executions_of
from kframe_console.pages.page import ActionPage, ContentPage, PageContext, Redirect, page
from kframe_console.plans.executions import Executions
from kframe_console.plans.forms import OptionForm
from kframe_console.plans.session import LIMITS

EXECUTION: Final = OptionForm(
    "execute", lambda *, limits: limits, execution_limit_options, parameters=LIMITS.parameters
)
_NOT_ALLOWED: Final = (
    "this console changes no cluster: it must be started with --allow-execute, on the brokers of a live cluster"
)


class ExecutionPreview(Struct):
    """What the execution of a plan would do. ``digest`` identifies the plan and its stages.

    ``execution`` is what ``kframe plan execute -o json`` prints without ``--execute``, for the cluster as it is; null
    where ``problems`` prevent it. ``known`` is the id of its execution, if it was begun before.
    """

    plan: str
    digest: str
    problems: list[str]
    known: str | None
    execution: ExecutionDocument | None


def _forms(_context: PageContext, parameters: Any, _content: Any) -> dict[str, Any]:
    return {
        "fields": EXECUTION.fields,
        "limits": LIMITS.texts_of(parameters),
        "texts": EXECUTION.texts_of(parameters),
        "options": LIMITS.command_line(LIMITS.texts_of(parameters)),
    }


@page(ContentPage, "plan-execution", "/plans/{plan}/execute", parameters=EXECUTION.parameters, extras=_forms)
def preview_page(context: PageContext, parameters: Any) -> ExecutionPreview:
    """What the execution of a plan would do on the cluster as it is: kframe plan execute.

    Raises InputError, and StoreError for a cluster that cannot be reached.
    """
    staged = context.plans.prepared(context.reading, parameters)
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


@page(
    ActionPage,
    "plan-execution-begin",
    "/plans/{plan}/execute",
    redirects_to=execution_page,
    predict=preview_page.build,
    parameters=EXECUTION.parameters_with(digest=(str,)),
    executes=True,
)
def begin_page(context: PageContext, parameters: Any) -> Redirect:
    """Begin the execution of a plan.

    Raises InputError if the plan is not the plan of the page.
    """
    staged = context.plans.prepared(context.reading, parameters)
    executions = executions_of(context)
    if staged.digest != parameters.digest:
        raise ParameterError("digest", repr(parameters.digest[:80]), "that of the plan: look at its page again")
    execution_id = executions.start(staged, EXECUTION.request(EXECUTION.texts_of(parameters)))
    return Redirect("/executions/{execution}", {"execution": execution_id})
