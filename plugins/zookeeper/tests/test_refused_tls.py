"""Commands end at once when TLS is refused, whatever their connection timeout is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from verification.zookeeper.certificates import Authority
from verification.zookeeper.commands import kframe
from verification.zookeeper.servers import HOST, ServerHandle

HOURS_MS: Final = 24 * 3_600_000
#: Commands, and the authority of the client certificate; empty for no certificate.
COMMANDS: Final = {
    "controller run": (("controller", "run", "--id", "1000", "--listener", f"PLAINTEXT://{HOST}:0"), "untrusted"),
    "controller shadow": (("controller", "shadow"), "untrusted"),
    "controller shadow, without a certificate": (("controller", "shadow"), ""),
    "controller status": (("controller", "status"), "untrusted"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_tls_refusal_ends_the_command(
    tls_zookeeper: ServerHandle, authority: Authority, tmp_path: Path, name: str
) -> None:
    arguments, signer = COMMANDS[name]
    keystore = Authority(tmp_path, signer).issue("kafka").key_and_certificate if signer else ""
    config = tmp_path / "server.properties"
    config.write_text(
        f"zookeeper.connect={tls_zookeeper.secure_address}\nzookeeper.connection.timeout.ms={HOURS_MS}\n"
        f"zookeeper.ssl.client.enable=true\nzookeeper.ssl.truststore.location={authority.path}\n"
        f"zookeeper.ssl.truststore.type=PEM\nzookeeper.ssl.keystore.type=PEM\nzookeeper.ssl.keystore.location={keystore}\n"
    )
    done = kframe(*arguments, "--config", config, folder=tmp_path)
    assert done.returncode != 0
    error = " ".join(done.stderr.split())
    pattern = (
        f"zookeeper.ssl.keystore.location={keystore}" if signer else "none (zookeeper.ssl.keystore.location is not set)"
    )
    assert f"{tls_zookeeper.secure_address}: refuses the client certificate" in error
    assert f"found {pattern}, expected a certificate that it trusts" in error
    assert "Traceback" not in error
