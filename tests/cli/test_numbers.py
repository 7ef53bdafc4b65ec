"""Numbers of all commands: ASCII digits alone, sizes with units, and ranges of broker ids."""

from __future__ import annotations

from typing import Final

import click
import pytest

from kframe.cli.app import cli
from kframe.cli.numbers import IDS_MAX, ByteSize, DecimalNumber, WholeNumber, parse_ids, parse_size
from kframe.model.texts import duration_text
from kframe.model.whole_numbers import INT64_MAX
from tests.cli.running import HEALTHY, document
from tests.cli.test_exits import leaves

#: What Python's int or float reads, and kframe does not.
FOREIGN: Final = ("\uff11", "\u0663", "1_0", " 1", "1 ", "+1", "-1", "1e3", "0x1", "²", "nan", "inf", "")
#: The start and the end of the value of each option with numbers that has a callback; the number is between.
CALLBACKS: Final = {
    "add_brokers": ("", ":a"),
    "broker_caps": ("2=", ""),
    "brokers": ("7,", ""),
    "capacities": ("2=", ""),
    "disk_capacity": ("2=", ""),
    "exclude_brokers": ("7,", ""),
    "fail": ("7-", ""),
    "remove_brokers": ("", "-7"),
    "replace": ("1=", ""),
    "replication_factors": ("a=", ""),
}
OPTIONS: Final = [
    pytest.param(option, id=f"{' '.join(path)} {option.opts[-1]}")
    for path, command in leaves(cli)
    for option in command.params
    if isinstance(option, click.Option)
    and (isinstance(option.type, WholeNumber | DecimalNumber | ByteSize) or option.name in CALLBACKS)
    and not option.is_flag
]


@pytest.mark.parametrize("option", OPTIONS)
def test_option_refuses_numbers_that_are_not_ascii_digits(option: click.Option) -> None:
    first, last = CALLBACKS.get(option.name or "", ("", ""))
    for number in FOREIGN:
        text = f"{first}{number}{last}"
        if text == "-7":
            continue  # an empty number before a range is a sign, which the next row has
        with pytest.raises(click.BadParameter, match=r"found .*, expected"):
            option.process_value(click.Context(click.Command("x")), [text] if option.multiple else text)


def test_no_option_has_a_number_of_another_type() -> None:
    others = (type(click.INT), type(click.FLOAT), click.IntRange, click.FloatRange)
    foreign = [
        f"{' '.join(path)} {option.opts[-1]}"
        for path, command in leaves(cli)
        for option in command.params
        if isinstance(option.type, others) and not isinstance(option.type, WholeNumber | DecimalNumber)
    ]
    assert foreign == []


@pytest.mark.parametrize(
    "text, size",
    [
        ("1", 1),
        ("500", 500),
        ("500B", 500),
        ("5kB", 5_000),
        ("5KB", 5_000),
        ("50MB", 50_000_000),
        ("1.5GB", 1_500_000_000),
        ("2TB", 2 * 10**12),
        ("3PB", 3 * 10**15),
        ("1KiB", 1024),
        ("20MiB", 20 << 20),
        ("0.5GiB", 1 << 29),
        ("1TiB", 1 << 40),
        ("4PiB", 1 << 52),
        (str(INT64_MAX), INT64_MAX),
    ],
)
def test_size_has_a_unit(text: str, size: int) -> None:
    assert parse_size(text) == size
    assert parse_size(text, per_second=True) == size
    assert parse_size(f"{text}/s", per_second=True) == size


@pytest.mark.parametrize(
    "text",
    [*FOREIGN, "0", "0MB", "50Mb", "50mb", "50 MB", "5M", "1.5", "1.0001kB", "1.GB", ".5GB", "1,5GB", "50MB/m", "1e3MB",
     "10000PB", "9" * 40, "\uff150MB", "1_0MB"],
)  # fmt: skip
def test_malformed_size_is_refused(text: str) -> None:
    for per_second in (False, True):
        with pytest.raises(ValueError, match="bytes"):
            parse_size(text, per_second=per_second)


def test_rate_is_no_size() -> None:
    with pytest.raises(ValueError, match="a size in bytes such as 500GB"):
        parse_size("50MB/s")


@pytest.mark.parametrize(
    "text, ids",
    [("4", [4]), ("1-3", [1, 2, 3]), ("1-3,7", [1, 2, 3, 7]), ("7,1-1", [7, 1]), ("2147483647", [2**31 - 1])],
)
def test_ids_are_numbers_and_ranges(text: str, ids: list[int]) -> None:
    assert parse_ids(text) == ids


@pytest.mark.parametrize(
    "text, expected",
    [
        *((text, "broker ids such as") for text in FOREIGN),
        *((text, "broker ids such as") for text in ("1,", ",1", "1--3", "1-", "-", "1-2-3", "2147483648", "1..3")),
        ("3-1", "1-3, the smaller id first"),
        ("0-2147483647", "at most 100000"),
        (f"1-{IDS_MAX},7", "at most 100000"),
    ],
)
def test_malformed_ids_are_refused(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        parse_ids(text)


def test_ranges_name_brokers() -> None:
    ranges = document("fail", HEALTHY, "--brokers", "1-2,4")
    assert ranges["operation"] == document("fail", HEALTHY, "--brokers", "1,2,4")["operation"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.4, "59 s"), (60, "1 min"), (3_725, "1 h 2 min"), (90_000, "1 d 1 h"), (86_400, "1 d")],
)
def test_durations_have_two_units(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
