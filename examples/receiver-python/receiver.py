"""Receives webhooks of Holdfast with Python's standard library alone, 3.9 or newer.

    HOLDFAST_SECRET=hfs_... python3 receiver.py

Every event is a line of the file INBOX before it is answered; that file is where your own work begins. While
the secret is rotated, HOLDFAST_SECRET has both, with a space between them.
"""

import hashlib
import hmac
import json
import os
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOLERANCE_SECONDS = 300
LONGEST_BODY = 1024 * 1024
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_delivery(headers, body, secrets, now):
    """Whether Holdfast has signed these very bytes, within five minutes of now."""
    timestamp = headers.get("X-Service-Timestamp") or ""
    signature = headers.get("X-Service-Signature") or ""
    if not re.fullmatch("[0-9]{1,15}", timestamp) or not re.fullmatch("sha256=[0-9a-f]{64}", signature):
        return False
    if abs(now - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    signed = timestamp.encode() + b"." + body
    expected = ["sha256=" + hmac.new(one.encode(), signed, hashlib.sha256).hexdigest() for one in secrets]
    return any(hmac.compare_digest(signature, one) for one in expected)


def event_of(headers, body):
    """The event, if the headers name the same one as the signed body; otherwise None."""
    try:
        event = json.loads(body)
        complete = "unit" in event["data"] and event["createdAt"].endswith("Z")
        named = (event["id"], event["type"]) == (headers["X-Service-Delivery"], headers["X-Service-Event"])
        return event if complete and named and UUID.fullmatch(event["id"]) else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


class Inbox:
    """One line for each event, on disk before it counts; a repeated id adds none."""

    def __init__(self, path):
        self._path = path
        self._lock = threading.Lock()
        path.touch()
        whole = path.read_bytes().rpartition(b"\n")[0]
        os.truncate(path, len(whole) + 1 if whole else 0)  # a line cut off by a crash was never answered
        self._ids = {json.loads(line)["id"] for line in whole.splitlines()}

    def add(self, event):
        with self._lock:
            if event["id"] in self._ids:
                return False
            with self._path.open("a") as file:
                file.write(json.dumps(event) + "\n")
                file.flush()
                os.fsync(file.fileno())
            self._ids.add(event["id"])
            return True


class Hook(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self):
        length = self.headers.get("Content-Length") or ""
        if not re.fullmatch("[0-9]{1,9}", length) or int(length) > LONGEST_BODY:
            self.close_connection = True
            return self.answer(413)
        return self.answer(self.judge(self.rfile.read(int(length))))

    def judge(self, body):
        if not is_delivery(self.headers, body, self.server.secrets, int(time.time())):
            return 401
        event = event_of(self.headers, body)
        if event is None:
            return 400
        if self.server.inbox.add(event):
            unit = event["data"]["unit"]
            print(event["type"], unit["code"] if unit else "-", flush=True)
        return 200

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *details):
        """Holdfast keeps a log of what was answered."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Hook)
    server.secrets = os.environ["HOLDFAST_SECRET"].split()
    server.inbox = Inbox(Path(os.environ.get("INBOX", "inbox.ndjson")))
    server.serve_forever()
