"""Requests that any broker answers as well as any other, passed on frame by frame, and the answers back.

Only from listeners without authentication, and only where no authorizer is configured. There a broker that we connect
to sees what it would see of the client itself: nobody in particular. On any other listener a broker would see *us*,
with the rights of a controller, in place of a stranger; so nothing is passed on there, and ``apis.strangers`` answers.
"""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from kframe import ClusterState, KframeError
from kframe.model.brokers import Endpoint, Registration
from kframe_kafka_wire.apis.table import API_VERSIONS, OFFERED, RELAYED
from kframe_kafka_wire.calls import Desk
from kframe_kafka_wire.codec import CodecError, decode_response, encode_request
from kframe_kafka_wire.frames import Refused, read_size

_SIZE = struct.Struct(">i")
_CHUNK: Final = 1 << 16
#: Largest answer to a question of our own that a broker may give.
_ANSWER_MOST: Final = 1 << 20
_CONNECT_S: Final = 5.0
_FAILED_FOR_S: Final = 5.0
_NO_ANSWER: Final = (OSError, TimeoutError, CodecError, Refused, asyncio.IncompleteReadError)
Ranges = Mapping[int, tuple[int, int]]


class Relays:
    """Where requests are passed on to, and what is offered of it. One for each listener."""

    def __init__(self, desk: Desk, listener: str, most: int, timeout_s: float) -> None:
        self._desk = desk
        self._listener = listener
        self.most = most
        self.timeout_s = timeout_s
        self._ranges: dict[tuple[int, int], Ranges] = {}
        self._failed_s = float("-inf")

    async def brokers(self) -> list[tuple[Registration, Endpoint]]:
        """The live brokers that have this listener, in random order."""

        def look(cluster: ClusterState | None) -> list[Registration]:
            if cluster is None:
                return []
            live = zip(cluster.brokers.registrations, cluster.brokers.live, strict=True)
            return [one for one, here in live if one is not None and here]

        found = []
        for one in await self._desk.look(look):
            found += [(one, endpoint) for endpoint in one.endpoints if endpoint.listener == self._listener]
        random.shuffle(found)
        return found

    async def offered(self) -> Ranges:
        """Our own versions; of what is passed on only those that a broker of the moment has too, and without one none.

        A broker is asked once for each of its registrations.
        """
        theirs: Ranges = {}
        now = asyncio.get_running_loop().time()
        live = await self.brokers()
        known = [self._ranges[key] for one, _ in live if (key := (one.broker_id, one.broker_epoch)) in self._ranges]
        if known:
            theirs = known[0]
        elif now - self._failed_s > _FAILED_FOR_S:
            for one, endpoint in live[:1]:
                try:
                    async with asyncio.timeout(_CONNECT_S):
                        body = await _ask(endpoint, API_VERSIONS, 0, {})
                    theirs = {each["api_key"]: (each["min_version"], each["max_version"]) for each in body["api_keys"]}
                    self._ranges[one.broker_id, one.broker_epoch] = theirs
                except _NO_ANSWER:
                    self._failed_s = now
        return {
            key: (max(least, theirs[key][0]), min(most, theirs[key][1])) if key in RELAYED else (least, most)
            for key, (least, most) in OFFERED.items()
            if key not in RELAYED or (key in theirs and theirs[key][0] <= most)
        }

    async def ask(self, api_key: int, version: int, fields: Mapping[str, Any]) -> bool:
        """Put a question to some live broker, in the name of nobody; whether it has answered, whatever that is."""
        for _, endpoint in (await self.brokers())[:1]:
            with suppress(*_NO_ANSWER):
                async with asyncio.timeout(_CONNECT_S):
                    await _ask(endpoint, api_key, version, fields)
                return True
        return False


class Relay:
    """The connection to a broker behind one connection of a client; made when it is first needed."""

    def __init__(self, relays: Relays) -> None:
        self._relays = relays
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def pass_on(self, frame: bytes, client: asyncio.StreamWriter) -> None:
        """Send a request and copy the answer, a piece at a time. Raises Refused where that fails: the client's
        connection ends, and the client asks somebody else."""
        try:
            async with asyncio.timeout(self._relays.timeout_s):
                reader, writer = await self._connected()
                writer.write(_SIZE.pack(len(frame)) + frame)
                await writer.drain()
                left = await read_size(reader, self._relays.most)
                if left is None:
                    raise Refused("the broker that requests are passed on to has closed the connection")
                client.write(_SIZE.pack(left))
                while left:
                    piece = await reader.read(min(_CHUNK, left))
                    if not piece:
                        raise Refused("the broker that requests are passed on to has closed the connection")
                    client.write(piece)
                    await client.drain()
                    left -= len(piece)
        except (OSError, TimeoutError, KframeError) as error:
            raise Refused(f"a request could not be passed on: {error}") from error

    def close(self) -> None:
        """Close the connection to the broker."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is not None and self._streams[0].at_eof():
            self.close()
        if self._streams is None:
            for _, endpoint in await self._relays.brokers():
                try:
                    async with asyncio.timeout(_CONNECT_S):
                        self._streams = await asyncio.open_connection(endpoint.host, endpoint.port)
                        return self._streams
                except (OSError, TimeoutError):
                    continue
            raise Refused("there is no broker to pass a request on to")
        return self._streams


async def _ask(endpoint: Endpoint, api_key: int, version: int, fields: Mapping[str, Any]) -> dict[str, Any]:
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    try:
        writer.write(encode_request(api_key, version, 0, "kframe", fields))
        size = await read_size(reader, _ANSWER_MOST)
        if size is None:
            raise Refused("no answer")
        _, body = decode_response(api_key, version, await reader.readexactly(size))
        return body
    finally:
        writer.close()
