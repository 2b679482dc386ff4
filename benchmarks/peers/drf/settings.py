"""Production settings: no debug, JSON only, one persistent connection per worker thread."""

import os
from urllib.parse import parse_qs, unquote, urlsplit

_url = urlsplit(os.environ["BENCHMARK_DATABASE_URL"])
_query = parse_qs(_url.query)

SECRET_KEY = os.environ.get("BENCHMARK_SECRET_KEY", "signs nothing: the API has no sessions")
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
INSTALLED_APPS = ["rest_framework", "benchmarks.peers.drf"]
MIDDLEWARE = ["django.middleware.security.SecurityMiddleware", "django.middleware.common.CommonMiddleware"]
ROOT_URLCONF = "benchmarks.peers.drf.urls"
APPEND_SLASH = False
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _url.path.lstrip("/"),
        "USER": unquote(_url.username or ""),
        "PASSWORD": unquote(_url.password or ""),
        "HOST": _query.get("host", [_url.hostname or ""])[0],
        "PORT": str(_url.port or _query.get("port", [""])[0]),
        "CONN_MAX_AGE": None,
    }
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["benchmarks.peers.drf.authentication.BearerKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["benchmarks.peers.drf.authentication.HasIntegrationScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "COERCE_DECIMAL_TO_STRING": False,
    "UNAUTHENTICATED_USER": None,
}

# gunicorn writes the line for each request; a failure must not go unseen either.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"django.request": {"handlers": ["console"], "level": "ERROR", "propagate": False}},
}
