"""Certificates of receivers, good and bad, for one test run."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from functools import cache

import trustme


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


def self_signed() -> ssl.SSLContext:
    own = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with own.cert_pem.tempfile() as certificate, own.private_key_pem.tempfile() as key:
        context.load_cert_chain(certificate, key)
    return context
