"""Keystores and truststores by Kafka's ``ssl.*`` keys: PEM in files or in the keys themselves, and PKCS12.

Java's own format, JKS, is refused. The error has the command that converts it.
"""

from __future__ import annotations

import secrets
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kframe.plugin import ConfigError

_TYPES: Final = ("PEM", "PKCS12")
_CONVERT: Final = "keytool -importkeystore -deststoretype PKCS12 converts a store"


@dataclass(frozen=True, slots=True)
class KeyStore:
    """Key and certificate chain: a file of ``type``, or PEM in ``text``."""

    type: str
    path: Path | None
    text: str = field(repr=False)
    store_password: str = field(repr=False)
    key_password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TrustStore:
    """The trusted authorities. They are a file of ``type``, or PEM in ``text``."""

    type: str
    path: Path | None
    text: str = field(repr=False)
    password: str = field(repr=False)


def key_store(values: Mapping[str, str]) -> KeyStore | None:
    """The keystore of ``ssl.keystore.*`` and ``ssl.key.password``, or None. Raises ConfigError."""
    store = _store(values, "ssl.keystore", "ssl.keystore.certificate.chain")
    if store is None:
        return None
    type_, path, chain = store
    text = f"{values.get('ssl.keystore.key', '')}\n{chain}" if chain else ""
    password = values.get("ssl.keystore.password", "")
    return KeyStore(type_, path, text, password, values.get("ssl.key.password", password))


def trust_store(values: Mapping[str, str]) -> TrustStore | None:
    """The truststore of ``ssl.truststore.*``, or None. Raises ConfigError."""
    store = _store(values, "ssl.truststore", "ssl.truststore.certificates")
    return None if store is None else TrustStore(*store, values.get("ssl.truststore.password", ""))


def load_key(context: ssl.SSLContext, store: KeyStore) -> None:
    """Present this certificate. Raises ConfigError with the key if the store cannot be used."""
    where = "config key ssl.keystore." + ("location" if store.path else "certificate.chain")
    if store.type == "PEM" and store.path is not None:
        _load_chain(context, store.path, store.key_password, where)
        return
    text, password = store.text.encode(), store.key_password
    if store.path is not None:
        password = secrets.token_hex(16)
        text = _pem_of_pkcs12(store.path, store.store_password, password, where)
    # OpenSSL reads chains from files only. The file is private and deleted at once.
    with tempfile.NamedTemporaryFile("wb", suffix=".pem") as file:
        file.write(text)
        file.flush()
        _load_chain(context, Path(file.name), password, where)


def load_trust(context: ssl.SSLContext, store: TrustStore) -> None:
    """Trust these authorities only. Raises ConfigError with the key if the store cannot be used."""
    where = "config key ssl.truststore." + ("location" if store.path else "certificates")
    try:
        if store.path is None:
            context.load_verify_locations(cadata=store.text)
        elif store.type == "PEM":
            context.load_verify_locations(store.path)
        else:
            store_content = _pkcs12(store.path, store.password, where)
            certificates = [
                entry.certificate
                for entry in (*store_content.additional_certs, store_content.cert)
                if entry is not None
            ]
            context.load_verify_locations(cadata="".join(_pem(certificate) for certificate in certificates))
    except (OSError, ValueError) as problem:
        raise ConfigError(where, f"a store that cannot be used ({problem})", "certificates") from problem


def _store(values: Mapping[str, str], prefix: str, inline: str) -> tuple[str, Path | None, str] | None:
    """Type, path and text of a store. None if it is not configured."""
    location, text = values.get(f"{prefix}.location", "").strip(), values.get(inline, "").strip()
    if not location and not text:
        return None
    type_ = values.get(f"{prefix}.type", "JKS").strip().upper()
    if type_ not in _TYPES:
        raise ConfigError(f"config key {prefix}.type", type_, f"{' or '.join(_TYPES)} ({_CONVERT})")
    if location and text:
        raise ConfigError(f"config key {prefix}.location", f"{inline} as well", "one of the two")
    if text and type_ != "PEM":
        raise ConfigError(f"config key {prefix}.type", type_, f"PEM with {inline}")
    return type_, Path(location) if location else None, text


def _load_chain(context: ssl.SSLContext, path: Path, password: str, where: str) -> None:
    try:
        # A callable, because OpenSSL would otherwise prompt on the terminal.
        context.load_cert_chain(path, password=lambda: password)
    except OSError as problem:
        raise ConfigError(where, f"a store that cannot be used ({problem})", "a key and its certificates") from problem


def _pkcs12(path: Path, password: str, where: str) -> Any:
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise ConfigError(where, "PKCS12 without the package cryptography", "kframe-kafka-wire[pkcs12]") from None
    try:
        return load_pkcs12(path.read_bytes(), password.encode() or None)
    except (OSError, ValueError) as problem:
        raise ConfigError(where, f"a store that cannot be read ({problem})", "PKCS12 and its password") from problem


def _pem_of_pkcs12(path: Path, password: str, new_password: str, where: str) -> bytes:
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

    content = _pkcs12(path, password, where)
    if content.key is None or content.cert is None:
        raise ConfigError(where, "no private key with a certificate", "a key store")
    encryption = BestAvailableEncryption(new_password.encode())
    key: bytes = content.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    chain = [content.cert.certificate, *(cert.certificate for cert in content.additional_certs)]
    return key + "".join(_pem(certificate) for certificate in chain).encode()


def _pem(certificate: Any) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    text: str = certificate.public_bytes(Encoding.PEM).decode()
    return text
