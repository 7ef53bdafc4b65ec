"""Executions of plans: their progress, and the pages that confirm a pause, an abort, a rollback and a continuation."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from kframe.plugin import InputError
from kframe.plugin.plans import ExecutionEffect, Goal
from kframe_console.pages.page import ActionPage, ContentPage, NoParameters, PageContext, Redirect, page
from kframe_console.plans.executions import ExecutionContent, Executions


class ExecutionsContent(Struct):
    """The executions whose journals the console has."""

    executions: list[ExecutionContent]


class ExecutionParameters(Struct, forbid_unknown_fields=True):
    """The id of an execution."""

    execution: str


class GoalParameters(Struct, forbid_unknown_fields=True):
    """The id of an execution, and its new goal."""

    execution: str
    goal: Literal["pause", "abort", "rollback", "resume"]


class GoalPreview(Struct):
    """What a goal of an execution would do on the cluster as it is. ``effect`` is null if nothing would move."""

    goal: str
    execution: ExecutionContent
    effect: ExecutionEffect | None


@page(ContentPage, "executions", "/executions")
def list_page(context: PageContext, _parameters: NoParameters) -> ExecutionsContent:
    """The executions of plans."""
    executions = context.executions
    return ExecutionsContent([] if executions is None else [executions.content(id_) for id_ in executions.ids()])


@page(ContentPage, "execution", "/executions/{execution}")
def execution_page(context: PageContext, parameters: ExecutionParameters) -> ExecutionContent:
    """An execution and its progress: kframe plan status.

    Raises InputError for an unknown one.
    """
    return executions_of(context).content(parameters.execution)


@page(ContentPage, "execution-goal", "/executions/{execution}/{goal}")
def goal_page(context: PageContext, parameters: GoalParameters) -> GoalPreview:
    """What a pause, an abort, a rollback or a continuation of an execution would do.

    Raises InputError for an unknown execution, StoreError without a controller.
    """
    executions = executions_of(context)
    execution = executions.content(parameters.execution)
    return GoalPreview(
        parameters.goal, execution, executions.effect(parameters.execution, _goal(execution, parameters.goal))
    )


@page(
    ActionPage,
    "execution-goal-change",
    "/executions/{execution}/{goal}",
    redirects_to=execution_page,
    predict=goal_page.build,
    executes=True,
)
def change_page(context: PageContext, parameters: GoalParameters) -> Redirect:
    """Pause, abort, roll back or continue an execution.

    Raises InputError for an execution that cannot do it now.
    """
    executions = executions_of(context)
    execution = executions.content(parameters.execution)
    executions.change_goal(parameters.execution, _goal(execution, parameters.goal))
    return Redirect("/executions/{execution}", {"execution": parameters.execution})


def executions_of(context: PageContext) -> Executions:
    """Executes plans. Raises InputError if the console may not."""
    if context.executions is None:
        raise InputError("execution", "a console that changes no cluster", "--allow-execute on a live cluster")
    return context.executions


def _goal(execution: ExecutionContent, name: str) -> Goal:
    if name == "resume":
        return Goal.ROLLBACK if execution.execution.rolls_back else Goal.EXECUTE
    return Goal(name)
