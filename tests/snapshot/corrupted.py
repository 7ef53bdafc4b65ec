"""Hypothesis strategies for the text of snapshots in many forms, valid and corrupted."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

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
    fields = [("Topic", topic), ("Partition", str(partition)), ("Leader", leader), ("Replicas", draw(lists())),
              ("Isr", draw(lists()))]  # fmt: skip
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


@st.composite
def corrupted(draw: st.DrawFn, contents: st.SearchStrategy[bytes]) -> bytes:
    """A content with no, or a few, changed bytes, or cut off."""
    content = draw(contents)
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        position = draw(st.integers(0, len(content)))
        content = content[:position] + draw(_INSERTED) + content[position + draw(st.integers(0, 3)) :]
    return content[: draw(st.integers(0, len(content)))] if not draw(st.integers(0, 9)) else content
