"""Stands between Holdfast and a card provider, with Python's standard library alone, 3.11 or newer.

    PAYMENT_SECRET=... PORT=9000 python3 adapter.py

Buyers come to /pay with an address that Holdfast has signed. What was charged is a line of the file PAYMENTS
before anything else happens, and Holdfast is told until it has answered. `charge` and `refund` are where your
provider comes in.
"""

import hashlib
import hmac
import html
import itertools
import json
import os
import re
import threading
import time
import urllib.error
import urllib.request
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl

TOLERANCE_SECONDS = 300
PAUSES_SECONDS = (1, 2, 5, 10, 30, 60)
NOT_TAKEN = (404, 409, 422)
NOT_VALID = "This link is not valid. Go back to your booking and try again."
PAGE = """<!doctype html><html lang="{language}"><meta charset="utf-8"><title>Pay the deposit</title>
<h1>Pay the deposit</h1><p>{reference}: SAR {amountSar}</p>
<form method="post"><button>Pay</button></form></html>"""


def charge(asked):
    """Take the money, with the reference as the key of idempotency: a second click charges nobody twice.

    The provider's id of the payment; None if the card was declined.
    """
    return "pay_" + asked["reference"].replace("-", "").lower()


def refund(payment, why):
    """Give the money back: Holdfast has no unit for it."""
    print("refund", payment["id"], payment["reference"], payment["amountSar"], why, flush=True)


def signature_of(secret, timestamp, signed):
    digest = hmac.new(secret.encode(), timestamp.encode() + b"." + signed, hashlib.sha256).hexdigest()
    return "sha256=" + digest


def asked_in(query, secret, now):
    """What Holdfast asks for in this query, and how old that is; None if Holdfast has not signed it."""
    signed, _, rest = query.partition("&timestamp=")
    timestamp, _, signature = rest.partition("&signature=")
    right = signature_of(secret, "redirect." + timestamp, signed.encode())
    if not re.fullmatch("[0-9]{1,15}", timestamp) or not hmac.compare_digest(
        right.encode(), signature.encode()
    ):
        return None
    return dict(parse_qsl(signed), age=now - int(timestamp))


def is_over(asked, now):
    """Whether the hold has ended: what is paid now would come too late."""
    return now >= datetime.fromisoformat(asked["expiresAt"]).timestamp()


class Payments:
    """One line when money was taken, and one when Holdfast has answered; on disk before it counts."""

    def __init__(self, path):
        self._path = path
        self._lock = threading.Lock()
        self.told, self.untold = {}, {}
        path.touch()
        whole = path.read_bytes().rpartition(b"\n")[0]
        os.truncate(path, len(whole) + 1 if whole else 0)  # a line cut off by a crash was never acted on
        for line in whole.splitlines():
            self._note(json.loads(line))

    def add(self, payment):
        """Whether it is new: the same id is the same payment."""
        with self._lock:
            if payment["id"] in self.told or payment["id"] in self.untold:
                return False
            self._write(payment)
            return True

    def end(self, payment, outcome):
        with self._lock:
            self._write({"id": payment["id"], "outcome": outcome})

    def _write(self, line):
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._note(line)

    def _note(self, line):
        if "outcome" in line:
            self.told[line["id"]] = dict(self.untold.pop(line["id"]), **line)
        else:
            self.untold[line["id"]] = line


def tell(payment, secret):
    """Until Holdfast has answered; the same id again does no harm. What it says of the payment."""
    pauses = itertools.chain(PAUSES_SECONDS, itertools.repeat(PAUSES_SECONDS[-1]))
    while True:
        status, answer = post(payment, secret)
        if status == 200:
            return answer["status"]
        if status in NOT_TAKEN:
            return "refused: " + answer["detail"]
        # Anything else is a server that is away, or a setting to be put right: the money is still taken.
        print("not told yet", payment["id"], status, flush=True)
        time.sleep(next(pauses))


def post(payment, secret):
    # The amount as Holdfast wrote it: a binary fraction could lose a halala.
    body = '{{"id": {}, "reference": {}, "amountSar": {}}}'.format(
        json.dumps(payment["id"]), json.dumps(payment["reference"]), payment["amountSar"]
    ).encode()
    timestamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "X-Payment-Timestamp": timestamp,
        "X-Payment-Signature": signature_of(secret, timestamp, body),
    }
    request = urllib.request.Request(payment["callbackUrl"], body, headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read() or b"{}") if refused.code in NOT_TAKEN else {}
    except (OSError, ValueError) as failure:
        return str(failure), {}


def settle(payment, secret, payments):
    outcome = tell(payment, secret)
    if outcome == "refund-due" or outcome.startswith("refused"):
        refund(payment, outcome)
    payments.end(payment, outcome)


class PaymentPage(BaseHTTPRequestHandler):
    def do_GET(self):
        asked = self.asked(TOLERANCE_SECONDS)
        if asked is None:
            return self.answer(403, NOT_VALID)
        return self.answer(200, PAGE.format(**{name: html.escape(str(asked[name])) for name in asked}))

    def do_POST(self):
        asked = self.asked(float("inf"))
        if asked is None:
            return self.answer(403, NOT_VALID)
        payment_id = None if is_over(asked, time.time()) else charge(asked)
        if payment_id is not None:
            names = ("reference", "amountSar", "callbackUrl")
            self.take({"id": payment_id, **{name: asked[name] for name in names}})
        return self.answer(303, "", asked["returnUrl"])

    def take(self, payment):
        """The buyer waits for Holdfast a moment, and not for long."""
        if self.server.payments.add(payment):
            teller = threading.Thread(
                target=settle, args=(payment, self.server.secret, self.server.payments), daemon=True
            )
            teller.start()
            teller.join(3)

    def asked(self, oldest_seconds):
        path, _, query = self.path.partition("?")
        asked = asked_in(query, self.server.secret, time.time())
        if path != "/pay" or asked is None or not -TOLERANCE_SECONDS <= asked["age"] <= oldest_seconds:
            return None
        return asked

    def answer(self, status, text, location=None):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        if location is not None:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *details):
        """The addresses are the buyers' own."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), PaymentPage)
    server.secret = os.environ["PAYMENT_SECRET"]
    server.payments = Payments(Path(os.environ.get("PAYMENTS", "payments.ndjson")))
    for left_over in list(server.payments.untold.values()):
        threading.Thread(target=settle, args=(left_over, server.secret, server.payments), daemon=True).start()
    server.serve_forever()
