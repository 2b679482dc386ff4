"""Bearer keys, looked up by their hash."""

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from benchmarks.peers.drf.models import ApiKey

if TYPE_CHECKING:  # the views import their authentication
    from rest_framework.views import APIView


class BearerKeyAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[None, ApiKey] | None:
        scheme, _, text = get_authorization_header(request).partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        key = ApiKey.objects.filter(key_hash=hashlib.sha256(text.strip()).digest(), revoked_at=None).first()
        now = timezone.now()
        if key is None or (key.expires_at and key.expires_at <= now):
            raise AuthenticationFailed("The key is not valid.")
        if key.last_used_at is None or now - key.last_used_at > timedelta(minutes=1):
            ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)
        return None, key

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class HasIntegrationScope(BasePermission):
    def has_permission(self, request: Request, view: "APIView") -> bool:
        return request.auth is not None and "integration" in request.auth.scopes
