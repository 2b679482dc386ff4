"""Certificates of receivers, good and bad, for one test run."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@cache
def authority() -> trustme.CA:
    return trustme.CA()


def trusting() -> ssl.SSLContext:
    """What the sender uses: its own authority is the only one."""
    context = ssl.create_default_context(cafile=None, cadata=authority().cert_pem.bytes().decode())
    context.set_alpn_protocols(["http/1.1"])
    return context


def certified_for(
    *hosts: str, issuer: trustme.CA | None = None, expires_at: datetime | None = None
) -> ssl.SSLContext:
    certificate = (issuer or authority()).issue_cert(*hosts, not_after=expires_at)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def expired_for(host: str) -> ssl.SSLContext:
    return certified_for(host, expires_at=datetime.now(UTC) - timedelta(days=1))


def self_signed_for(host: str, folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    path = folder / "self-signed.pem"
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    path.write_bytes(private + certificate.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context
