"""Executions of plans: their progress, and the pages that confirm a pause, an abort, a rollback and a continuation."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from kframe.plugin import InputError
from kframe.plugin.plans import ExecutionEffect, Goal
from kframe_console.pages.page import ActionPage, ContentPage, NoParameters, PageContext, Redirect
from kframe_console.plans.executions import ExecutionContent, Executions


class ExecutionsContent(Struct):
    """The executions whose journals the console has."""

    executions: list[ExecutionContent]


class ExecutionParameters(Struct, forbid_unknown_fields=True):
    """The id of an execution."""

    execution: str


class GoalParameters(Struct, forbid_unknown_fields=True):
    """The id of an execution, and what is to become of it."""

    execution: str
    goal: Literal["pause", "abort", "rollback", "resume"]


class GoalPreview(Struct):
    """What a goal of an execution would do on the cluster as it is. ``effect`` is null if nothing would move."""

    goal: str
    execution: ExecutionContent
    effect: ExecutionEffect | None


def executions_content(context: PageContext, _parameters: NoParameters) -> ExecutionsContent:
    """All executions."""
    executions = context.executions
    return ExecutionsContent([] if executions is None else [executions.content(id_) for id_ in executions.ids()])


def execution_content(context: PageContext, parameters: ExecutionParameters) -> ExecutionContent:
    """One execution. Raises InputError for an unknown one."""
    return _executions(context).content(parameters.execution)


def goal_preview(context: PageContext, parameters: GoalParameters) -> GoalPreview:
    """What a goal would do. Raises InputError for an unknown execution, StoreError without a controller."""
    executions = _executions(context)
    execution = executions.content(parameters.execution)
    return GoalPreview(
        parameters.goal, execution, executions.effect(parameters.execution, _goal(execution, parameters.goal))
    )


def change_goal(context: PageContext, parameters: GoalParameters) -> Redirect:
    """Do what a user has confirmed. Raises InputError for an execution that cannot do it now."""
    executions = _executions(context)
    execution = executions.content(parameters.execution)
    executions.change_goal(parameters.execution, _goal(execution, parameters.goal))
    return Redirect("/executions/{execution}", {"execution": parameters.execution})


def _executions(context: PageContext) -> Executions:
    if context.executions is None:
        raise InputError("execution", "a console that changes no cluster", "--allow-execute on a live cluster")
    return context.executions


def _goal(execution: ExecutionContent, name: str) -> Goal:
    if name == "resume":
        return Goal.ROLLBACK if execution.execution.rolls_back else Goal.EXECUTE
    return Goal(name)


LIST_PAGE: Final = ContentPage(
    name="executions",
    title="Executions",
    path="/executions",
    doc="The executions of plans.",
    schema="kframe.console-executions/v1",
    content=ExecutionsContent,
    build=executions_content,
    template="executions.html",
    in_navigation=False,
)
PAGE: Final = ContentPage(
    name="execution",
    title="Execution",
    path="/executions/{execution}",
    doc="An execution and its progress: kframe plan status.",
    schema="kframe.console-execution/v1",
    content=ExecutionContent,
    build=execution_content,
    template="execution.html",
    parameters=ExecutionParameters,
    in_navigation=False,
)
GOAL_PAGE: Final = ContentPage(
    name="execution-goal",
    title="Change an execution",
    path="/executions/{execution}/{goal}",
    doc="What a pause, an abort, a rollback or a continuation of an execution would do.",
    schema="kframe.console-execution-goal/v1",
    content=GoalPreview,
    build=goal_preview,
    template="execution_goal.html",
    parameters=GoalParameters,
    in_navigation=False,
)
CHANGE: Final = ActionPage(
    name="execution-goal-change",
    title="Change an execution",
    path="/executions/{execution}/{goal}",
    doc="Pause, abort, roll back or continue an execution.",
    schema="kframe.console-execution/v1",
    content=ExecutionContent,
    run=change_goal,
    template="execution.html",
    predict=goal_preview,
    parameters=GoalParameters,
    executes=True,
)
