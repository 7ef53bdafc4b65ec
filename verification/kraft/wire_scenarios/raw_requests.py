"""The step ``request`` over the wire: any request, in Kafka's field names."""

from __future__ import annotations

import base64
import re
from typing import Any, Final

from kframe_kafka_wire.protocol.codec import API_NAMES

from kframe.errors import ScenarioError
from kframe.scenario.kraft.arguments import RawRequest
from kframe.scenario.kraft.names import SymbolicNames
from kframe.scenario.kraft.requests import sort_structs
from verification.kraft.wire_scenarios.wire_run import WireRun

_WORD: Final = re.compile(r"(?<!^)(?=[A-Z])")
#: Fields with bytes, which a scenario has in base64.
_BYTES: Final = {"salt", "salted_password"}


def send_request(run: WireRun, argument: RawRequest) -> Any:
    """Send a request in the newest version. Raises ScenarioError for an unknown API."""
    name = _snake_case(argument.api)
    api_key = next((key for key, known in API_NAMES.items() if known == name), None)
    if api_key is None:
        raise ScenarioError(f"{run.scenario.source}: request", f"the API {argument.api!r}", "an API of Kafka")
    return sort_structs(_traced(run.ask(api_key, _fields(argument.body)), run.names))


def _snake_case(name: str) -> str:
    return _WORD.sub("_", name).lower()


def _fields(value: Any, name: str = "") -> Any:
    """A body with kframe's names of fields."""
    if isinstance(value, dict):
        return {_snake_case(key): _fields(item, _snake_case(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_fields(item) for item in value]
    return base64.b64decode(value, validate=True) if name in _BYTES else value


def _traced(value: Any, names: SymbolicNames) -> Any:
    """A response with Kafka's names of fields, and symbols in place of ids. Throttle times are left out."""
    if isinstance(value, dict):
        return {_camel_case(key): _traced(item, names) for key, item in value.items() if key != "throttle_time"}
    if isinstance(value, (list, tuple)):
        return [_traced(item, names) for item in value]
    return names.replace_ids(value) if isinstance(value, str) else value


def _camel_case(name: str) -> str:
    first, *others = name.strip("_").split("_")
    return first + "".join(map(str.title, others))
