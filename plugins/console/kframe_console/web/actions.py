"""Writes: their bodies, the checks before them, and their lines in the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
from anyio import fail_after
from starlette.requests import ClientDisconnect, Request

from kframe.plugin import KframeError, ParameterError
from kframe_console.pages.page import ActionPage, PageContext
from kframe_console.security.audit import AuditEntry, AuditLog, timestamp
from kframe_console.security.csrf import FIELD, HEADER
from kframe_console.web.parameters import distinct_parameters, typed_parameters

_FORM: Final = "application/x-www-form-urlencoded"
_JSON: Final = "application/json"
_FIELDS_MAX: Final = 1_000
#: Seconds for a body.
_BODY_S: Final = 30


class Forbidden(KframeError):
    """The user may not do this."""


async def action_body(request: Request) -> tuple[dict[str, Any], str]:
    """The parameters in the body of a request, a form or an object of JSON, and the token that came with it.

    Raises ParameterError for a malformed body, and one that is too long.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        with fail_after(_BODY_S):
            body = await request.body()
    except TimeoutError as problem:
        raise ParameterError("body", "an incomplete one", f"all of it within {_BODY_S} seconds") from problem
    except ClientDisconnect as problem:
        raise ParameterError("body", "a longer or incomplete one", "a complete one within the limit") from problem
    parameters: dict[str, Any]
    if kind == _JSON:
        try:
            parameters = msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError) as problem:
            raise ParameterError("body", "malformed JSON", "an object of JSON") from problem
    elif kind == _FORM:
        try:
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_FIELDS_MAX)
        except ValueError as problem:
            raise ParameterError("body", "a malformed form", f"at most {_FIELDS_MAX} fields of UTF-8") from problem
        parameters = dict(distinct_parameters(pairs))
    else:
        raise ParameterError("content-type", kind or "none", f"{_JSON} or {_FORM}")
    token = parameters.pop(FIELD, None) or request.headers.get(HEADER, "")
    return parameters, str(token)


def perform(
    page: ActionPage, context: PageContext, parameters: Mapping[str, Any], address: str, audit: AuditLog
) -> Any:
    """Perform the action of a page. Log it before, with the prediction, and after. Raises what the action raises.

    An action that cannot be logged is not performed.
    """
    typed = typed_parameters(page.parameters, parameters)
    what_if = None if page.predict is None else page.predict(context, typed)
    user = context.user

    def log(event: str, result: Any = None) -> None:
        audit.write(
            AuditEntry(
                timestamp(), event, user.name, user.method, address, page.name, dict(parameters), what_if, result
            )
        )

    log("begin")
    try:
        content = page.run(context, typed)
    except Exception as problem:
        log("failed", str(problem))
        raise
    log("done", content)
    return content
