#!/usr/bin/env bash
# uvicorn 0.54.0 on CPython: connections lack TCP_NODELAY where uvicorn binds the socket itself, as it does for --workers
# and --reload.
#
# asyncio sets TCP_NODELAY only for sockets whose protocol number is that of TCP. Those that asyncio opens for a host and a
# port have it; Config.bind_socket, which serves several workers, opens a socket without a number, and so do callers of
# socket.create_server. A response in two writes then waits for the acknowledgement of the first one.
#
# Seen: "one process 1, workers 0, socket.create_server 0".
source "$(dirname "$0")/common/setup.sh"
python_packages uvicorn==0.54.0 h11==0.16.0
result=$(python - <<'EOF'
import socket
import threading
import urllib.request

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

seen = []


class Protocol(H11Protocol):
    def connection_made(self, transport):
        sock = transport.get_extra_info("socket")
        seen.append(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        super().connection_made(transport)


async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})


def option(sockets, port):
    config = uvicorn.Config(app, port=port, http=Protocol, lifespan="off", log_level="warning")
    sockets = [config.bind_socket()] if sockets == "workers" else sockets
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": sockets})
    thread.start()
    while not server.started:
        thread.join(0.01)
    address = server.servers[0].sockets[0].getsockname()
    urllib.request.urlopen(f"http://127.0.0.1:{address[1]}/").read()
    server.should_exit = True
    thread.join()
    return int(bool(seen[-1]))


print("one process", option(None, 0), "workers", option("workers", 0), "create_server", option([socket.create_server(("127.0.0.1", 0))], 0))
EOF
)
check "TCP_NODELAY by how the socket was opened" "one process 1 workers 0 create_server 0" "$(tail -n 1 <<<"$result")"
