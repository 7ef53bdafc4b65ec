"""Properties files are read as Java reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kframe.errors import ConfigError
from kframe.settings.properties import FILE_BYTES_MAX, read_properties

#: Content of a file, and its entries as ``java.util.Properties.load`` (JDK 17) reads them.
READ = {
    "equals sign": ("a=b", {"a": "b"}),
    "colon": ("a:b", {"a": "b"}),
    "blank": ("a b", {"a": "b"}),
    "blanks around the sign": ("  a \t=  b ", {"a": "b "}),
    "only the first sign parts": ("a=b=c:d", {"a": "b=c:d"}),
    "no value": ("a\nb=", {"a": "", "b": ""}),
    "no key": ("=b", {"": "b"}),
    "comments": ("# a=1\n  ! b=2\nc=3 # d", {"c": "3 # d"}),
    "comment does not go on": ("# a \\\nb=1", {"b": "1"}),
    "continuation": ("a=b\\\n    c\\\n\td", {"a": "bcd"}),
    "continuation by a comment sign": ("a=b\\\n#c", {"a": "b#c"}),
    "continuation at the end": ("a=b\\", {"a": "b"}),
    "continuation in the key": ("a\\\n  b=c", {"ab": "c"}),
    "two backslashes do not go on": ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
    "three do": ("a=b\\\\\\\n  c=d", {"a": "b\\c=d"}),
    "escapes": (r"a=\t\n\r\f\\\q\=", {"a": "\t\n\r\f\\q="}),
    "escaped signs in the key": (r"a\=b\:c\ d=e", {"a=b:c d": "e"}),
    "unicode": (r"a=\u00e9\u20AC", {"a": "é€"}),
    "latin 1": ("a=\u00e9", {"a": "é"}),
    "carriage returns": ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
    "blank lines": ("\n \t\n\na=1\n\n", {"a": "1"}),
    "twice": ("a=1\na=2", {"a": "2"}),
    "nothing": ("", {}),
}


@pytest.mark.parametrize("text, expected", READ.values(), ids=READ)
def test_read(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(text.encode("latin-1"))
    assert {entry.key: entry.value for entry in read_properties(path)} == expected


def test_property_has_line_of_its_start(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("# 1\na=\\\n  2\n\nb=3\n")
    assert [(entry.key, entry.line) for entry in read_properties(path)] == [("a", 2), ("b", 5)]


@pytest.mark.parametrize(
    "content, message",
    [
        (b"a=1\nb=\\u00g0", r"server\.properties:2: found .*u00g0.*, expected four hexadecimal digits"),
        (b"a=1\nb=\\u", r"server\.properties:2: found "),
        (b"a" * (FILE_BYTES_MAX + 1), r"server\.properties: found more than 1048576 bytes"),
        (None, r"server\.properties: found No such file or directory, expected a file of properties"),
    ],
    ids=["digits", "end", "size", "missing"],
)
def test_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "server.properties"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        read_properties(path)
