"""Teaches Schemathesis to send JSON lines; it loads this file by its path."""

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def as_lines(context: schemathesis.SerializationContext, value: object) -> bytes:
    return str(value).encode("utf-8", errors="surrogatepass")
