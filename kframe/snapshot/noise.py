"""Lines, prefixes and colours that shells, containers and loggers add to the output of a tool.

A line that a tool writes because it failed is none of them: readers see it, and refuse it.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

#: A log level that reports no failure.
_LEVEL: Final = r"(?:DEBUG|INFO|WARN|WARNING)(?=[: ])"
#: Lines that a Java runtime or a logger prints.
_LOG_LINES: Final = (
    rf"\[[^\]\n]*\] {_LEVEL}",
    r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}[ T])?[0-9]{2}:[0-9]{2}:[0-9]{2}[.,0-9Z]* +(?:\[[^\]\n]*\] +|main +)?" + _LEVEL,
    rf"(?:main +)?{_LEVEL}",
    r"(?:OpenJDK|Java HotSpot)[^\n]* warning:",
    r"(?:NOTE: )?Picked up ",
    r"SLF4J(?:\([A-Z]\))?:",
    r"log4j:(?:WARN|ERROR)",
    r"ERROR StatusLogger ",
    r"DEPRECATED: ",
    r"[Ww]arning:",
    r"[\w.-]+ [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]+ +(?:INFO|WARN|DEBUG) +==>",
    # librdkafka: another broker may answer. kcat itself reports a failure as "% ERROR".
    r"%[0-7]\|[0-9]+\.[0-9]+\|[A-Z0-9_]+\|",
    r'time="[^"\n]*" level=(?:debug|info|warning) ',
)
#: Lines that kubectl, docker, podman, ssh and script print.
_CONTAINER_LINES: Final = (
    r"Defaulted container ",
    r"Defaulting container name to ",
    r"Use 'kubectl describe ",
    r"If you don't see a command prompt, try pressing enter",
    r"All commands and output from this session will be recorded ",
    r"Unable to use a TTY - input is not a terminal",
    r"pod(?:/| \")[\w.-]+\"? (?:created|deleted)",
    r"Attaching to [\w., -]+\s*\Z",
    r"[\w.-]+ exited with code 0\s*\Z",
    r"Unable to find image '[^'\n]*' locally",
    r"[\w./:-]+: (?:Pulling from |Pulling fs layer|Verifying Checksum|Download complete|Pull complete|Already exists)",
    r"Digest: sha256:",
    r"Status: (?:Downloaded newer image|Image is up to date) for ",
    r"Emulate Docker CLI using podman",
    r"===> ",
    r"uid=[0-9]+\(",
    r"Pseudo-terminal will not be allocated ",
    r"(?:Shared connection|Connection) to \S+ closed\.",
    r"Script (?:started|done)[ ,]",
)
_USER: Final = r"(?:[\w.-]+|I have no name!)@[\w.-]+"
_ENVIRONMENT: Final = r"(?:\([\w.-]+\) ?)?"
#: A prompt of bash, sh, zsh, fish, cmd.exe or PowerShell, with a command or without; a command that ``set -x`` prints;
#: the end of a session. A bare ``%`` is no prompt, because kcat's messages begin with it.
_SHELL_LINES: Final = (
    rf"{_ENVIRONMENT}(?:\[{_USER}[^\]\n]*\]|{_USER}(?:[: ][^\n$#%>]*)?|[a-z]*sh-[\d.]+|[~/][\w./-]*)? ?[$#](?: |\s*\Z)",
    rf"{_ENVIRONMENT}{_USER} [^\n$#%>]*[%>](?: |\s*\Z)",
    r"(?:PS )?[A-Za-z]:\\[^>\n]*>",
    "(?:\u279c|\u276f) ",
    r"\++ \S",
    r"(?:exit|logout)\s*\Z",
)
_NOISE: Final = re.compile("|".join((*_LOG_LINES, *_CONTAINER_LINES, *_SHELL_LINES)).encode())
#: The first bytes of lines of data. A check of the first byte is faster.
_DATA_FIRST_BYTES: Final = b"{|\t T"
#: A further line of a log entry: a setting or a stack frame, but no line of ``kafka-topics`` or of JSON.
#: log4j names a log file that it cannot open.
_CONTINUATION: Final = re.compile(rb"[ \t]+(?![ \t]|Topic:|[{\[\"])|java\.io\.FileNotFoundException: ")
_CONTINUATION_FIRST_BYTES: Final = b" \tj"

#: The time that ``kubectl logs --timestamps`` and ``docker logs -t`` put before a line, the pod of ``kubectl logs
#: --prefix``, the container of ``docker compose logs``.
_PREFIX: Final = re.compile(
    rb"^(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})(?: |(?=\r?$))"
    rb"|\[pod/[^\]\n]+\](?: |(?=\r?$))|[A-Za-z0-9][\w.-]* *\|(?: |(?=\r?$)))+",
    re.MULTILINE,
)
_ESCAPE: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[=>78cM])")
#: The bytes at the start of a text that show whether it has prefixes.
_START_BYTES: Final = 1 << 16
#: Most bytes that complete a line; ``files`` refuses longer ones.
_LINE_BYTES: Final = 32 << 20
_PARQUET: Final = b"PAR1"


class Readable(Protocol):
    """Bytes that are read in order."""

    def read(self, size: int, /) -> bytes:
        """``size`` bytes, fewer at the end."""

    def readline(self, size: int, /) -> bytes:
        """At most ``size`` bytes, to the end of a line."""


def is_noise(line: bytes) -> bool:
    """Whether the line is of a logger, a container or a shell."""
    return line[0] not in _DATA_FIRST_BYTES and _NOISE.match(line) is not None


def continues_log_entry(line: bytes) -> bool:
    """Whether the line may belong to the log entry before it."""
    return line[0] in _CONTINUATION_FIRST_BYTES and _CONTINUATION.match(line) is not None


def without_noise(document: bytes) -> bytes:
    """A document without the lines of loggers, containers and shells before and after it."""
    start, in_entry = 0, False
    while start < len(document):
        end = document.find(b"\n", start) + 1 or len(document)
        line = document[start:end]
        if not line.isspace() and not is_noise(line) and not (in_entry and continues_log_entry(line)):
            break
        start, in_entry = end, in_entry or not line.isspace()
    end = len(document)
    while end > start:
        last = document.rfind(b"\n", start, len(document[:end].rstrip())) + 1
        if last <= start or not is_noise(document[last:end].lstrip() or b"{"):
            break
        end = last
    return document[start:end]


class CleanText:
    """A text without colours, and without what containers put before each line. Binary content is not changed."""

    def __init__(self, content: Readable) -> None:
        self._content = content
        self._start = content.read(_START_BYTES)
        is_binary = b"\0" in self._start or self._start.startswith(_PARQUET)
        self._is_prefixed = not is_binary and _PREFIX.search(_ESCAPE.sub(b"", self._start)) is not None
        self._is_text = not is_binary

    def read(self, size: int) -> bytes:
        """About ``size`` bytes; to the end of the line where the text has prefixes or colours. Empty at the end."""
        while block := self._read(size):
            if not self._is_prefixed and not (self._is_text and b"\x1b" in block):
                return block
            if not block.endswith(b"\n"):
                block += self._read_line()
            if clean := self._without_prefixes(_ESCAPE.sub(b"", block)):
                return clean
        return b""

    def _without_prefixes(self, block: bytes) -> bytes:
        return _PREFIX.sub(b"", block) if self._is_prefixed else block

    def _read(self, size: int) -> bytes:
        start, self._start = self._start[:size], self._start[size:]
        return start if len(start) == size else start + self._content.read(size - len(start))

    def _read_line(self) -> bytes:
        line_end = self._start.find(b"\n") + 1
        if line_end:
            line, self._start = self._start[:line_end], self._start[line_end:]
            return line
        line, self._start = self._start, b""
        return line + self._content.readline(_LINE_BYTES)
