"""The commands that documents show: which are typed, which are not and why, and what can be said of those."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from holdfast.cli import main
from tests.docs.documents import DOCUMENTS, OF_OTHER_FOLDERS, blocks, prose

SHELLS = ("sh", "shell", "bash", "console", "zsh")
TYPED = "bash"
"""What the reader of test_examples.py types."""

RUNS_THIS = "it runs the tests, or what they run in"
TAKES_LONG = "it takes most of an hour"
FOR_GOOD = "it would run until somebody stops it"
READERS_OWN = "the value is the reader's own; the tests put in theirs"
INSTALLS = "it would change the environment; tests/sdk/test_package.py builds the wheel and imports it"
PAYMENT_SECRET = "HOLDFAST_PAYMENT_SECRET=payment-secret-of-this-guide"
NOT_TYPED = {
    "make test": RUNS_THIS,
    'make test ARGS="tests/web/test_catalogues.py tests/web/pages/storefront"': RUNS_THIS,
    """grep -rn '"Show more"' src/holdfast/web""": "test_the_first_change_finds_its_word does",
    "make check": RUNS_THIS,
    "make format": "it would change the files",
    "make chaos SEED=7 MINUTES=1.5": "it needs root, and minutes; tests/chaos/test_run.py does",
    "make bench": TAKES_LONG,
    'make bench ARGS="put latency"': TAKES_LONG,
    'make bench ARGS="--quick"': TAKES_LONG,
    "make serve": f"{FOR_GOOD}; test_make.py does",
    "HOLDFAST_ATTEMPTS=2 HOLDFAST_RETRY_FIRST_GAP_SECONDS=1 make serve": f"{FOR_GOOD}; test_examples.py does",
    ".venv/bin/holdfast serve --host 0.0.0.0 --processes 4": f"{FOR_GOOD}, and for the whole network",
    f"HOLDFAST_PAYMENT_URL=http://127.0.0.1:9000/pay {PAYMENT_SECRET} make serve": (
        f"{FOR_GOOD}; test_examples.py does"
    ),
    "PAYMENT_SECRET=payment-secret-of-this-guide PORT=9000 python3 examples/payment-adapter/adapter.py": (
        f"{FOR_GOOD}; tests/web/api/payments/test_example_adapter.py does"
    ),
    (
        ".venv/bin/uvicorn --factory holdfast.web.app:create_app --timeout-graceful-shutdown 15"
        " --no-proxy-headers --no-access-log"
    ): (f"{FOR_GOOD}; tests/web/test_asgi_servers.py does"),
    'eval "$(_HOLDFAST_COMPLETE=bash_source .venv/bin/holdfast)"': "tests/cli/test_commands.py does",
    "export KEY=hfk_...": READERS_OWN,
    "export HOLDFAST_PUBLIC_URL=https://sales.example.com": "the commands after it are for another machine",
    "export HOLDFAST_TRUSTED_PROXIES=10.0.0.0/24": "the commands after it are for another machine",
    "export HOLDFAST_ALLOWED_NETWORKS=10.20.0.0/16,fd12:3456::/48": "receivers of the tests are elsewhere",
    (
        "export HOLDFAST_SMTP_URL=smtp://holdfast:secret@mail.example.com"
        " HOLDFAST_MAIL_FROM='Narjis Heights <sales@example.com>'"
    ): "there is no such mail server; tests/web/pages/backoffice/test_emails.py has one",
    "export HOLDFAST_DATABASE_URL=postgresql://…": READERS_OWN,
    (
        'HOLDFAST_DATABASE_URL="postgresql://holdfast:secret@db1/holdfast?holdfast.application_role=holdfast_app"'
        " .venv/bin/holdfast migrate"
    ): "it needs a service; test_a_service_can_have_two_roles_too does",
    (
        'HOLDFAST_DATABASE_URL="postgresql://holdfast_app:…@db1/holdfast"'
        " .venv/bin/holdfast serve --no-migrate"
    ): f"{FOR_GOOD}, and needs a service",
    "HOLDFAST_DATABASE_URL=postgresql://… .venv/bin/holdfast advance": READERS_OWN,
    'PGPASSFILE=data/database-passwords psql -h "$PWD/data/socket" -U holdfast holdfast': (
        "psql may be missing"
    ),
    ".venv/bin/holdfast restore holdfast.backup": "it needs an empty service; test_backup.py has one",
    ".venv/bin/holdfast restore holdfast.backup --data new-data": "the page restores into another folder",
    (
        "0 3 * * * cd /srv/holdfast && .venv/bin/holdfast backup --force backups/$(date +\\%u).backup"
        " && rsync -a backups/ vault:holdfast/"
    ): "it is for the night",
    ".venv/bin/holdfast simulate": "it takes minutes; tests/cli/test_simulate.py does",
    (
        "HOLDFAST_KEY=hfk_... .venv/bin/holdfast simulate --url https://staging.example.com"
        " --project palm-court"
    ): READERS_OWN,
    ".venv/bin/pip install ./sdk/python": INSTALLS,
    "pip install ./sdk/python": INSTALLS,
    "HOLDFAST_SECRET=hfs_... PORT=9000 INBOX=inbox.ndjson python3 examples/receiver-python/receiver.py": (
        f"{FOR_GOOD}; tests/sdk/test_example_receivers.py does"
    ),
    "HOLDFAST_SECRET=hfs_... PORT=9000 INBOX=inbox.ndjson node examples/receiver-node/receiver.mjs": (
        f"{FOR_GOOD}; tests/sdk/test_example_receivers.py does"
    ),
    'printf \'%s.\' "$TIMESTAMP" | cat - body.json | openssl dgst -sha256 -hmac "$HOLDFAST_SECRET"': (
        "the webhooks guide has it with values, and there it is typed"
    ),
}
"""Commands that no reader types, and why. Keep it short: what can be typed is marked `bash`."""

_INLINE = re.compile(r"`((?:\.venv/bin/)?holdfast [^`]+)`")
_BARE = re.compile(rf"`((?:{'|'.join(main.list_commands(click.Context(main)))}) [^`]*--[^`]+)`")
_COMMENT = re.compile(r"(^|\s)#.*$")
_ASSIGNMENT = re.compile(r"^([A-Z_]+)=(.*)$")
_LEFT_OUT = re.compile(r"…|\[|\]|\.\.\.$")
_ALTERNATIVE = re.compile(r"\|[\w|]+")


def untyped_commands() -> set[str]:
    """Every command in a block that no reader types."""
    return {
        command
        for document in (*DOCUMENTS, *OF_OTHER_FOLDERS)
        for block in blocks(document)
        if block.language in SHELLS and block.language != TYPED
        for command in commands_in(block.text)
    }


def commands_in(text: str) -> Iterator[str]:
    """Continued lines are put together, and comments left away."""
    for line in text.replace("\\\n", " ").splitlines():
        command = " ".join(_COMMENT.sub("", line).split())
        if command:
            yield command


def inline_commands(document: Path) -> list[str]:
    """`holdfast …` as it is named in a sentence or a table; with an option, `serve --demo` is enough."""
    text = prose(document)
    bare = (f"holdfast {found}" for found in _BARE.findall(text))
    return [" ".join(found.split()) for found in (*_INLINE.findall(text), *bare)]


def words_of(command: str) -> tuple[dict[str, str], list[str]]:
    """The variables that a command sets, and the command itself without them."""
    words = shlex.split(command, comments=True)
    if words[:1] == ["export"]:
        del words[0]
    variables: dict[str, str] = {}
    while words and (found := _ASSIGNMENT.match(words[0])):
        variables[found[1]] = found[2]
        del words[0]
    return variables, words


def check_named(text: str) -> None:
    """That a command named in a sentence exists, and so do its options. What it lacks there is left out."""
    words = shlex.split(_LEFT_OUT.sub(" ", _ALTERNATIVE.sub("", text)))
    command, rest = _found(words[1:])
    parser = command.make_parser(click.Context(command))
    _, left, _ = parser.parse_args(rest)
    if left:
        raise click.UsageError(f"{text}: too much stands there: {left}")


def check_complete(words: list[str]) -> None:
    """That a command could be run as it stands: every option, every value."""
    command, rest = _found(words)
    command.make_context(command.name, list(rest))


def _found(words: list[str]) -> tuple[click.Command, list[str]]:
    command: click.Command = main
    at = 0
    while isinstance(command, click.Group) and at < len(words):
        found = command.get_command(click.Context(command), words[at])
        if found is None:
            raise click.UsageError(f"there is no {' '.join(words[: at + 1])}")
        command, at = found, at + 1
    return command, words[at:]
