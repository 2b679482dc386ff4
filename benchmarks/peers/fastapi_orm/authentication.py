"""Bearer keys, looked up by their hash."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Depends, HTTPException
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from benchmarks.peers.fastapi_orm.database import session
from benchmarks.peers.fastapi_orm.models import ApiKey

SessionOfRequest = Annotated[AsyncSession, Depends(session)]
bearer = HTTPBearer()


async def integration_key(
    credentials: Annotated[HTTPAuthorizationCredentials, Depends(bearer)], db: SessionOfRequest
) -> ApiKey:
    key_hash = hashlib.sha256(credentials.credentials.encode()).digest()
    key = await db.scalar(select(ApiKey).where(ApiKey.key_hash == key_hash, ApiKey.revoked_at.is_(None)))
    now = datetime.now(UTC)
    if key is None or (key.expires_at and key.expires_at <= now):
        raise HTTPException(401, "The key is not valid.", {"WWW-Authenticate": "Bearer"})
    if "integration" not in key.scopes:
        raise HTTPException(403, "The key lacks the scope.")
    if key.last_used_at is None or now - key.last_used_at > timedelta(minutes=1):
        key.last_used_at = now
    return key


KeyOfRequest = Annotated[ApiKey, Depends(integration_key)]
