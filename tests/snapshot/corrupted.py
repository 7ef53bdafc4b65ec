"""Hypothesis strategies for the text of snapshots in many forms, valid and corrupted."""

from __future__ import annotations

import json
from typing import Any, Final

from hypothesis import strategies as st

from tests.snapshot.samples import TOPIC_ID, znode

NAMES: Final = st.sampled_from(["t", "u", "a.b_c-D9", "__consumer_offsets", ".", "x" * 249, "x" * 250, "t u", "é", ""])
NUMBERS: Final = st.integers(0, 12).map(str) | st.sampled_from(
    ["007", "2147483647", "2147483648", "99999999999", "-1", "none", "1.0", "1e3", "NaN", "x", "", "\u0661"]
)
_GOOD_NUMBER: Final = st.integers(0, 12).map(str)
_BLANK: Final = st.sampled_from([" ", "", "\t", "  ", "\xa0"])
_SEPARATOR: Final = st.sampled_from(["\t", "\t", "\t", " ", "  ", "\t\t", "", "\x0b"])
_END: Final = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\n", " \n", ""])
_INSERTED: Final = st.binary(max_size=3) | st.sampled_from(
    [b"\xff", b"\xc3\xa9", b"\\u0041", b'"', b"\\", b"\n", b"\r\n", b"{", b"]", b",", b":", b"0", b"\x00"]
)


@st.composite
def lists(draw: st.DrawFn) -> str:
    """A list of broker ids as ``kafka-topics`` prints it, or something like it."""
    if draw(st.integers(0, 9)):
        return ",".join(draw(st.lists(_GOOD_NUMBER, max_size=4)))
    return draw(st.sampled_from([", ", ",", ",,"])).join(draw(st.lists(NUMBERS, max_size=4)))


@st.composite
def partition_lines(draw: st.DrawFn, topic: str, partition: int) -> str:
    """A line of a partition: the labels of some release, or others."""
    leader = draw(_GOOD_NUMBER | st.sampled_from(["none", "-1"]) | NUMBERS)
    fields = [
        ("Topic", topic),
        ("Partition", str(partition)),
        ("Leader", leader),
        ("Replicas", draw(lists())),
        ("Isr", draw(lists())),
    ]
    optional = ["Adding Replicas", "Removing Replicas", "Elr", "LastKnownElr", "Offline"]
    for label in draw(st.lists(st.sampled_from(optional), max_size=5)):
        fields.append((label, draw(lists() | st.just("N/A"))))
    if not draw(st.integers(0, 9)):
        fields = draw(st.permutations(fields))
    if draw(st.integers(0, 9)):
        return "\t" + "\t".join(f"{label}: {value}" for label, value in fields) + draw(_END)
    return "".join(f"{draw(_SEPARATOR)}{label}:{draw(_BLANK)}{value}" for label, value in fields) + draw(_END)


@st.composite
def listings(draw: st.DrawFn) -> bytes:
    """A listing of ``kafka-topics``: often a valid one, often with a few malformed lines."""
    text = ""
    for topic in draw(st.lists(NAMES, min_size=1, max_size=3)):
        count = draw(st.integers(0, 4))
        topic_id = draw(st.sampled_from(["", "TopicId: oEwwV51-QoiZY0G02A_A6Q\t", "TopicId: short\t"]))
        configs = draw(st.sampled_from(["", "a=b", "min.insync.replicas=2,b=c,d", "a", "x Topic: y", "é=é"]))
        mark = draw(st.sampled_from(["", "", "\tMarkedForDeletion: true"]))
        text += f"Topic: {topic}\t{topic_id}PartitionCount: {count}\tReplicationFactor: 1\tConfigs: {configs}{mark}\n"
        for number in range(count):
            text += draw(partition_lines(topic, number))
    return text.encode()


#: JSON values by key: mostly those that belong there.
_INTEGERS: Final = st.integers(0, 12) | st.sampled_from([-1, -2, 2**31 - 1, 2**31, 10**30, 1.0, 1e300, True, None, "1"])
_FEW: Final = st.lists(st.integers(0, 12), max_size=4)
_OTHER: Final[st.SearchStrategy[Any]] = st.sampled_from(
    [None, [], {}, "x", 7, [[1]], {"partitions": []}, {"topics": [1]}]
)
_WORDS: Final = st.sampled_from(["any", "a b", 'a"b', "\\", "é", "\n", "", "partitions", "topics"])


def _usually(draw: st.DrawFn, usual: st.SearchStrategy[Any], other: st.SearchStrategy[Any]) -> Any:
    return draw(other if draw(st.integers(0, 19)) == 7 else usual)


@st.composite
def objects(draw: st.DrawFn, members: dict[str, Any]) -> dict[str, Any]:
    """The members: sometimes in another order, with a member more, or one less."""
    pairs = list(members.items())
    change = draw(st.integers(0, 29))
    if change == 1:
        pairs = draw(st.permutations(pairs))
    if change == 2:
        pairs.insert(draw(st.integers(0, len(pairs))), (draw(_WORDS), draw(_OTHER)))
    if change == 3:
        pairs.pop(draw(st.integers(0, len(pairs) - 1)))
    return dict(pairs)


@st.composite
def texts(draw: st.DrawFn, document: Any) -> bytes:
    """A document as JSON: compact, with spaces, in lines or with escapes."""
    ascii_only, indent = draw(st.booleans()), draw(st.sampled_from([None, None, None, 0, 2]))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), ("\t,\r\n", " :\t")])) if indent is None else None
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent, separators=separators)
    if draw(st.integers(0, 9)) == 7:
        text = text.replace('"topic"', draw(st.sampled_from(['"t\\u006fpic"', '"partition": 1, "topic"'])), 1)
    return (draw(st.sampled_from(["", "", " ", "\n", "WARNING: text\n"])) + text + draw(_END)).encode()


@st.composite
def reassignments(draw: st.DrawFn) -> bytes:
    """A reassignment, often valid as a snapshot or as a plan."""
    entries = []
    for topic in draw(st.lists(NAMES, max_size=4)):
        for number in range(draw(st.integers(0, 3))):
            partition = _usually(draw, st.just(number), _INTEGERS)
            replicas = _usually(draw, _FEW, st.lists(_INTEGERS, max_size=3) | _OTHER)
            entry = {"topic": topic, "partition": partition, "replicas": replicas}
            if draw(st.booleans()):
                entry["log_dirs"] = _usually(draw, st.just(["any"] * 2), st.lists(_WORDS, max_size=3) | _OTHER)
            entries.append(draw(objects(entry)))
    stamp = {"cluster_id": None, "controller_epoch": 1, "assignments": "x"}
    members = {"version": _usually(draw, st.just(1), _INTEGERS), "partitions": entries}
    if draw(st.integers(0, 4)) == 3:
        members["kframe"] = draw(st.just(stamp) | _OTHER)
    text = draw(texts(draw(objects(members))))
    if draw(st.integers(0, 9)) == 7:
        text = (
            b"Current partition replica assignment\n"
            + text
            + b"\nProposed partition reassignment configuration\n"
            + text
        )
    return text


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    """The output of ``kcat -L -J``, often a valid one."""

    def ids() -> Any:
        replicas = [{"id": _usually(draw, st.just(number), _INTEGERS)} for number in draw(_FEW)]
        return _usually(draw, st.just(replicas), _OTHER)

    topics = []
    for topic in draw(st.lists(NAMES, max_size=4)):
        partitions = []
        for number in range(draw(st.integers(0, 3))):
            members = {"partition": _usually(draw, st.just(number), _INTEGERS)}
            if draw(st.integers(0, 9)) == 7:
                members["error"] = draw(_WORDS | _OTHER)
            replicas = ids()
            isrs = replicas if draw(st.booleans()) else ids()
            leader = _usually(draw, st.sampled_from([-1, *([1, 2] if replicas else [])]), _INTEGERS)
            partitions.append(draw(objects(members | {"leader": leader, "replicas": replicas, "isrs": isrs})))
        described: dict[str, Any] = {"topic": topic}
        if draw(st.integers(0, 9)) == 7:
            described["error"] = draw(_WORDS | _OTHER)
        topics.append(draw(objects(described | {"partitions": partitions})))
    brokers = [{"id": 1, "name": "host:9092"}, {"id": 2, "name": _usually(draw, st.just("h:1"), _WORDS)}]
    members = {"query": {"topic": "*"}, "controllerid": 1, "brokers": brokers, "topics": topics}
    return draw(texts(draw(objects(members))))


@st.composite
def topic_znodes(draw: st.DrawFn, topic: str, partitions: dict[int, list[int]]) -> dict[str, Any]:
    """A topic of a ZooKeeper dump, mostly as Kafka writes it."""
    replicas: dict[str, Any] = {
        _usually(draw, st.just(str(number)), NUMBERS): _usually(draw, st.just(brokers), st.lists(_INTEGERS) | _OTHER)
        for number, brokers in partitions.items()
    }
    if draw(st.integers(0, 9)) == 7:
        replicas = dict(draw(st.permutations(list(replicas.items()))))
    reassigned = st.dictionaries(st.sampled_from(["0", "1", "7"]), _FEW, max_size=2) | _OTHER
    members = {
        "partitions": replicas,
        "topic_id": _usually(
            draw, st.just(TOPIC_ID), st.sampled_from(["short", f"{TOPIC_ID}x", TOPIC_ID[:-1] + "+", 1])
        ),
        "adding_replicas": _usually(draw, st.just({}), reassigned),
        "removing_replicas": _usually(draw, st.just({}), reassigned),
        "version": _usually(draw, st.just(3), _INTEGERS),
    }
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : "), (",\n", ":")]))
    data = json.dumps(draw(objects(members)), separators=separators)
    if draw(st.integers(0, 9)) == 7:
        twice = draw(st.sampled_from(["{", '{"version":3,', '{"partitions":{},', '{"adding_replicas":{"0":[1]},']))
        data = data.replace("{", twice, 1)
    if draw(st.integers(0, 9)) == 7:
        data = data.replace('"1":', '"0":', 1)
    return draw(objects(znode(f"/brokers/topics/{topic}", _usually(draw, st.just(data), st.none() | _WORDS))))


@st.composite
def dumps(draw: st.DrawFn) -> bytes:
    """A ZooKeeper dump, often a valid one."""
    znodes = [znode(path) for path in ("/brokers/ids", "/brokers/topics", "/config/topics", "/admin/delete_topics")]
    for topic in draw(st.lists(NAMES, max_size=3, unique=True)):
        root = f"/brokers/topics/{topic}"
        partitions = {number: draw(_FEW) for number in range(draw(st.integers(0, 3)))}
        znodes += [draw(topic_znodes(topic, partitions)), znode(f"{root}/partitions")]
        for number, replicas in partitions.items():
            key = _usually(draw, st.just(str(number)), NUMBERS)
            leader = _usually(draw, st.sampled_from([-1, *replicas]), _INTEGERS)
            isr = _usually(draw, st.just(replicas), st.lists(_INTEGERS, max_size=3) | _OTHER)
            members = {
                "controller_epoch": _usually(draw, st.just(1), _INTEGERS),
                "leader": leader,
                "version": 1,
                "leader_epoch": 0,
                "isr": isr,
            }
            if draw(st.integers(0, 9)) == 7:
                members["leader_recovery_state"] = draw(st.integers(0, 2))
            separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (",\n", ":")]))
            data = json.dumps(draw(objects(members)), separators=separators)
            znodes.append(znode(f"{root}/partitions/{key}", _usually(draw, st.none(), _WORDS)))
            version = _usually(draw, st.just(3), _INTEGERS)
            path = f"{root}/partitions/{key}/{_usually(draw, st.just('state'), _WORDS)}"
            znodes.append(
                draw(objects(znode(path, _usually(draw, st.just(data), st.none() | _WORDS), version=version)))
            )
    change = draw(st.integers(0, 9))
    ordered = draw(st.permutations(znodes)) if change == 7 else znodes[:-1] if change == 8 else znodes
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]))
    return "".join(json.dumps(node, separators=separators) + draw(_END) for node in ordered).encode()


@st.composite
def corrupted(draw: st.DrawFn, contents: st.SearchStrategy[bytes]) -> bytes:
    """A content with no, or a few, changed bytes, or cut off."""
    content = draw(contents)
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        position = draw(st.integers(0, len(content)))
        content = content[:position] + draw(_INSERTED) + content[position + draw(st.integers(0, 3)) :]
    return content[: draw(st.integers(0, len(content)))] if not draw(st.integers(0, 9)) else content
