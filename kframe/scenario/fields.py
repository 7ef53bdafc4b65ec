"""Types of the fields of scenario files, and the errors of values that do not fit them.

A type states with ``expecting`` what it expects, in the words of the error. msgspec validates the values and generates
the JSON Schema; this module turns its errors into ScenarioErrors with field, found and expected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, inspect

from kframe.errors import ScenarioError
from kframe.model.texts import short_repr

T = TypeVar("T")

INT32_MAX: Final = 2**31 - 1
INT32_MIN: Final = -(2**31)
_STEP: Final = re.compile(r"\.([^.\[]+)|\[([0-9]+|\.\.\.)\]")
#: The types of values by the node that describes them.
_KINDS: Final[Mapping[type, tuple[type, ...]]] = {
    inspect.StructType: (dict,),
    inspect.DictType: (dict,),
    inspect.ListType: (list,),
    inspect.VarTupleType: (list,),
    inspect.StrType: (str,),
    inspect.IntType: (int,),
    inspect.FloatType: (float,),
    inspect.BoolType: (bool,),
}
#: What is expected where a type does not say more.
_EXPECTED_BY_TYPE: Final[Mapping[type, str]] = {
    inspect.StructType: "a mapping",
    inspect.DictType: "a mapping",
    inspect.ListType: "a list",
    inspect.VarTupleType: "a list",
    inspect.StrType: "a text",
    inspect.BoolType: "true or false",
}


def expecting(text: str, **constraints: Any) -> Meta:
    """Annotate a type: ``text`` completes "expected" in errors, and describes the field to editors."""
    return Meta(description=text[:1].upper() + text[1:], extra={"expected": text}, **constraints)


def whole(minimum: int = 0) -> Meta:
    """Annotate int: a whole number from ``minimum`` to the largest int32."""
    return expecting(f"a whole number from {minimum} to {INT32_MAX}", ge=minimum, le=INT32_MAX)


Text: TypeAlias = Annotated[str, expecting("a text", min_length=1)]
Whole: TypeAlias = Annotated[int, whole()]
Flag: TypeAlias = Annotated[bool, expecting("true or false")]
BrokerId: TypeAlias = Annotated[int, expecting(f"a broker id from 0 to {INT32_MAX}", ge=0, le=INT32_MAX)]
BrokerIds: TypeAlias = Annotated[
    tuple[BrokerId, ...],
    expecting(f"a list of broker ids from 0 to {INT32_MAX}", extra_json_schema={"uniqueItems": True}),
]
#: An id that a request can encode, whether such a broker exists or not.
RequestedId: TypeAlias = Annotated[int, expecting("a broker id", ge=INT32_MIN, le=INT32_MAX)]
RequestedIds: TypeAlias = Annotated[tuple[RequestedId, ...], expecting("a list of broker ids")]
ReplicaLists: TypeAlias = Annotated[tuple[RequestedIds, ...], expecting("a list of replica lists")]
PartitionName: TypeAlias = Annotated[
    str, expecting("a partition written topic-partition, such as orders-0", pattern="^.+-[0-9]{1,10}$")
]
PartitionNames: TypeAlias = Annotated[tuple[PartitionName, ...], expecting("a list of partitions")]
TopicNames: TypeAlias = Annotated[tuple[str, ...], expecting("a list of topic names")]
ConfigValue: TypeAlias = Annotated[str | int | float | bool, expecting("a text, a number, true or false")]
Configs: TypeAlias = Annotated[dict[str, ConfigValue], expecting("a mapping from settings to values")]


class Empty(msgspec.Struct, forbid_unknown_fields=True):
    """A mapping without fields, written ``{}``."""


def split_partition(name: str) -> tuple[str, int]:
    """Topic and number of ``topic-partition``, by which responses are sorted."""
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


def convert(value: Any, kind: type[T], source: str) -> T:
    """``value``, as parsed from YAML, as a ``kind``.

    Raises ScenarioError, which names ``source`` and the path of the field.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as problem:
        path, actual, expected = _problem(value, kind, str(problem))
        raise ScenarioError(located(source, *path), actual, expected) from problem


def located(source: str, *path: str | int) -> str:
    """The location of a field: ``s.yaml: topics[0].name``."""
    text = ""
    for name in path:
        text += f"[{name}]" if isinstance(name, int) else f".{name}" if text else name
    return f"{source}: {text}" if text else source


def _problem(root: Any, kind: type, problem: str) -> tuple[list[str | int], str, str]:
    """The path, the value found and what is expected, from msgspec's ``Expected x, got y - at `$.path` ``."""
    message, _, where = problem.partition(" - at ")
    steps = [name or (int(index) if index != "..." else ...) for name, index in _STEP.findall(where.strip("`"))]
    path: list[str | int] = []
    value, node = root, _without_metadata(inspect.type_info(kind), root)
    for step in steps:
        key = _failing_key(root, kind, path, value, problem) if step is ... else step
        value, node = value[key], _member(node, key)
        path.append(key)
        expected, node = _expected(node), _without_metadata(node, value)
    if where.startswith("`key` in "):
        key = _failing_key(root, kind, path, value, problem)
        return [*path, str(key)], short_repr(key), _expected(_key(node))
    if message.startswith("Object contains unknown field "):
        return (
            [*path, message.split("`")[1]],
            "an unknown field",
            f"one of {', '.join(_fields(node))}" if _fields(node) else "no field",
        )
    if message.startswith("Object missing required field "):
        name = message.split("`")[1]
        return [*path, name], "None", _expected(_member(node, name))
    return path, short_repr(value), expected if path else _expected(node)


def _failing_key(root: Any, kind: type, path: list[str | int], mapping: dict[Any, Any], problem: str) -> Any:
    """The key of the mapping at ``path`` that causes the problem also without the other keys."""
    for key in mapping:
        try:
            msgspec.convert(_reduced(root, path, key), kind)
        except msgspec.ValidationError as other:
            if str(other) == problem:
                return key
    return next(iter(mapping))


def _reduced(value: Any, path: Sequence[str | int], key: Any) -> Any:
    """A copy whose mapping at ``path`` has only ``key``."""
    if not path:
        return {key: value[key]}
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _reduced(value[path[0]], path[1:], key)
    return copy


def _without_metadata(node: inspect.Type, value: Any) -> inspect.Type:
    """The node without metadata; of a union, the member that describes values of this kind."""
    while isinstance(node, inspect.Metadata):
        node = node.type
    if isinstance(node, inspect.UnionType):
        members = [_without_metadata(member, value) for member in node.types]
        return next((member for member in members if isinstance(value, _KINDS.get(type(member), ()))), members[0])
    return node


def _member(node: inspect.Type, key: str | int) -> inspect.Type:
    """The node of a field, an entry or an item."""
    match node:
        case inspect.StructType():
            return next(field.type for field in node.fields if field.encode_name == key)
        case inspect.DictType():
            return node.value_type
        case inspect.ListType() | inspect.VarTupleType():
            return node.item_type
    return inspect.AnyType()


def _key(node: inspect.Type) -> inspect.Type:
    return node.key_type if isinstance(node, inspect.DictType) else inspect.StrType()


def _fields(node: inspect.Type) -> list[str]:
    return [field.encode_name for field in node.fields] if isinstance(node, inspect.StructType) else []


def _expected(node: inspect.Type) -> str:
    """What a type expects, in words; of a union, what each member expects."""
    match node:
        case inspect.Metadata():
            text = (node.extra or {}).get("expected")
            return text if text else _expected(node.type)
        case inspect.UnionType():
            texts = [_expected(member) for member in node.types if not isinstance(member, inspect.NoneType)]
            return " or ".join(dict.fromkeys(texts))
        case inspect.LiteralType():
            return "one of " + ", ".join(map(str, node.values))
    return _EXPECTED_BY_TYPE.get(type(node), "another value")
