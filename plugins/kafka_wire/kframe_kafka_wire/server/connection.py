"""A connection of a broker or client. Requests are answered one at a time, which preserves their order.

As in Kafka, later requests wait in the socket.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kframe.plugin import ErrorCode, KframeError
from kframe_kafka_wire.access.sasl import SaslError
from kframe_kafka_wire.access.session import API_VERSIONS, BEFORE_LOGIN, SASL_HANDSHAKE, ClientSession
from kframe_kafka_wire.protocol.codec import API_NAMES, Header, decode_request, encode_response
from kframe_kafka_wire.protocol.errors import CodecError, Refused
from kframe_kafka_wire.protocol.message_buffers import Buffers, FileSection
from kframe_kafka_wire.records.principals import NameMapper, Principal, distinguished_name
from kframe_kafka_wire.server.application import Application
from kframe_kafka_wire.server.authenticator import Logins, SaslAuthenticator
from kframe_kafka_wire.server.drops import DroppedConnections, DropReason
from kframe_kafka_wire.server.frames import Budget, read_frame
from kframe_kafka_wire.server.repeated import RepeatedRequests, SharedResponses

#: Larger frames and responses are processed outside the event loop, so that other connections are served meanwhile.
_LARGE_FRAME: Final = 1 << 17
#: Bytes of a file that are encrypted at once.
_PIECE: Final = 1 << 18
#: Seconds that the last response may take to be sent when a connection ends.
_LINGER_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of a connection.

    They are socket.request.max.bytes, sasl.server.max.receive.size and connections.max.idle.ms.
    """

    frame: int
    frame_before_login: int
    idle_s: float


@dataclass(frozen=True, slots=True)
class ListenerContext:
    """The state that all connections of a listener share."""

    name: str
    application: Application
    limits: ConnectionLimits
    budget: Budget
    logins: Logins | None
    """None if the listener has no login."""
    names: NameMapper
    """Maps the subject of a certificate to the name of a principal."""
    protocol: str
    """The security protocol."""
    drops: DroppedConnections
    """Counts dropped connections."""
    responses: SharedResponses
    """Encodes the responses."""


class ClientConnection:
    """Serves one connection until either side ends it."""

    def __init__(
        self,
        listener: ListenerContext,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_login: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_login`` is called once, after the first successful login."""
        self._listener = listener
        self._reader = reader
        self._writer = writer
        peer = writer.get_extra_info("peername")
        self._session = ClientSession(listener.name, str(peer[0]) if peer else "", protocol=listener.protocol)
        certificate = writer.get_extra_info("peercert")
        if certificate:
            self._session.principal = Principal(listener.names(distinguished_name(certificate)))
        self._authenticator = None if listener.logins is None else SaslAuthenticator(listener.logins, self._session)
        self._on_login = on_login
        self._requests = RepeatedRequests()
        self._throttle_ms = 0
        """How long no request is read after the next response."""

    @property
    def has_certificate(self) -> bool:
        """Whether the client is authenticated by a certificate."""
        return bool(self._writer.get_extra_info("peercert"))

    async def serve(self) -> None:
        """Answer requests until the connection ends for any reason."""
        try:
            while await self._serve_request():
                pass
            if self._authenticator is not None and self._authenticator.failure is not None:
                self._record_drop(DropReason.LOGIN_FAILED, self._authenticator.failure)
        except (Refused, CodecError) as error:
            self._record_drop(DropReason.FRAME_REFUSED, error)
        except SaslError as error:
            self._record_drop(DropReason.LOGIN_FAILED, error)
        except TimeoutError:
            self._record_drop(DropReason.IDLE, "connections.max.idle.ms")
        except (OSError, ssl.SSLError) as error:
            self._record_drop(DropReason.LOST, error)
        except KframeError as error:
            self._record_drop(DropReason.UNANSWERABLE, error)
        except Exception as error:
            self._record_drop(DropReason.FAILED, error, traceback=True)
        finally:
            await self._close()

    def _record_drop(self, reason: DropReason, problem: object, *, traceback: bool = False) -> None:
        client = f"{self._session.host} ({self._session.principal})"
        self._listener.drops.record(reason, client, problem, traceback=traceback)

    async def _close(self) -> None:
        """Close the connection. The last response may still be sent, for a limited time."""
        self._writer.close()
        try:
            async with asyncio.timeout(_LINGER_S):
                await self._writer.wait_closed()
        except (OSError, TimeoutError, asyncio.CancelledError):
            self._writer.transport.abort()

    async def _serve_request(self) -> bool:
        """Process one request. Return whether another may follow."""
        listener = self._listener
        was_authenticated = self._authenticator is None or self._authenticator.is_authenticated
        max_size = listener.limits.frame if was_authenticated else listener.limits.frame_before_login
        async with asyncio.timeout(listener.limits.idle_s):
            frame = await read_frame(self._reader, max_size, listener.budget)
        if frame is None:
            return False
        try:
            response = await self._respond(frame)
        finally:
            listener.budget.release(len(frame))
        if not was_authenticated and self._authenticator is not None and self._authenticator.is_authenticated:
            self._on_login()
        if response:
            async with asyncio.timeout(listener.limits.idle_s):
                await self._send(response)
        if self._throttle_ms:
            async with asyncio.timeout(listener.limits.idle_s):
                await asyncio.sleep(self._throttle_ms / 1000)
            self._throttle_ms = 0
        return self._authenticator is None or self._authenticator.failure is None

    async def _send(self, response: Buffers) -> None:
        for buffer in response:
            if isinstance(buffer, bytes):
                self._writer.write(buffer)
                await self._writer.drain()
            else:
                await self._send_section(buffer)

    async def _send_section(self, section: FileSection) -> None:
        """Send bytes of a file: from the kernel's cache to the socket, unless they are encrypted. Raises OSError."""
        transport, size = self._writer.transport, len(section)
        if transport.get_extra_info("sslcontext") is not None:
            for start in range(0, size, _PIECE):
                self._writer.write(section.read(start, min(_PIECE, size - start)))
                await self._writer.drain()
            return
        file: Any = section
        loop = asyncio.get_running_loop()
        if await loop.sendfile(transport, file, section.position, size, fallback=False) < size:
            raise ConnectionAbortedError("a file has become shorter while it was sent")

    async def _respond(self, frame: bytes) -> Buffers:
        """The response to a frame with its size; empty if there is none."""
        authenticator = self._authenticator
        if authenticator is not None and authenticator.expects_token:
            token = await authenticator.process_token(frame)
            return (len(token).to_bytes(4, "big") + token,)
        header, application = self._requests.header(frame), self._listener.application
        if not application.is_offered(header.api_key, header.api_version):
            if header.api_key == API_VERSIONS and header.api_version > 0:
                versions = application.versions_on_offer()
                response = {"error_code": ErrorCode.UNSUPPORTED_VERSION, "api_keys": versions}
                return (encode_response(API_VERSIONS, 0, header.correlation_id, response),)
            name = API_NAMES.get(header.api_key, "no API")
            raise Refused(f"version {header.api_version} of API {header.api_key} ({name}) is not served")
        if authenticator is not None and authenticator.check(header):
            return (await self._log_in(authenticator, header, frame),)
        return await self._handle(header, frame)

    async def _log_in(self, authenticator: SaslAuthenticator, header: Header, frame: bytes) -> bytes:
        body = decode_request(header, frame)
        if header.api_key == SASL_HANDSHAKE:
            response = authenticator.handshake(header.api_version, body)
        else:
            response = await authenticator.authenticate(body)
        return encode_response(header.api_key, header.api_version, header.correlation_id, response)

    async def _handle(self, header: Header, frame: bytes) -> Buffers:
        if len(frame) > _LARGE_FRAME:
            body = await asyncio.to_thread(decode_request, header, frame)
        else:
            body = self._requests.body(header, frame)
        application = self._listener.application
        if header.api_key not in BEFORE_LOGIN and not application.is_ready():
            raise Refused("ACLs were not read yet: clients try again")
        response = await application.respond(header, body, self._session)
        if response is None:
            return ()
        self._throttle_ms = response.get("throttle_time", 0)
        if application.is_large(header, response):
            message = header.api_key, header.api_version, header.correlation_id, response
            return (await asyncio.to_thread(encode_response, *message),)
        return self._listener.responses.encoded(header, response)
