"""Every example of the documents, typed as it stands against a real server."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing

import pytest

from holdfast.demo import project as demo
from tests.docs.documents import DOCUMENTS, ROOT
from tests.docs.reader import ADDRESS, COMMANDS, DATABASE_URL, RECEIVER_PORT, Example, Reader, examples
from tests.support import commands
from tests.support.ports import free_port
from tests.support.server import HOLDFAST, RunningServer, environment, serving

EXAMPLES = {document: found for document in DOCUMENTS if (found := list(examples(document)))}
RECEIVER_KIT = ROOT / "sdk" / "python" / "src"
ALL = [example for found in EXAMPLES.values() for example in found]
SCOPES_OF_THE_DEMO = ("--scope", "integration", "--scope", "backoffice")
# As the payments guide says.
PAYMENTS = {
    "HOLDFAST_PAYMENT_URL": "http://127.0.0.1:9000/pay",
    "HOLDFAST_PAYMENT_SECRET": "payment-secret-of-this-guide",
}
# As the webhooks guide says: nobody waits for the last of eight attempts.
FEW_ATTEMPTS = {"HOLDFAST_ATTEMPTS": "2", "HOLDFAST_RETRY_FIRST_GAP_SECONDS": "1"}

pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("bash")), reason="the examples need curl and bash"
)


@pytest.fixture(scope="module")
def settings(module_postgres_url: str) -> dict[str, str]:
    return {"HOLDFAST_DATABASE_URL": module_postgres_url, **FEW_ATTEMPTS, **PAYMENTS}


@pytest.fixture(scope="module")
def docs_server(
    tmp_path_factory: pytest.TempPathFactory, settings: dict[str, str]
) -> Iterator[RunningServer]:
    """On a database of its own, so that lists and the feed hold what the document says, and no more."""
    with serving(tmp_path_factory.mktemp("docs-server"), settings) as running:
        yield running


@pytest.fixture(scope="module")
def demo_key(settings: dict[str, str]) -> str:
    """What `make serve` has ready for a reader of the README: the demo's project, and a key."""
    commands.run(settings, "project", "add", "narjis-heights", "--name", demo.NAME)
    return str(commands.run_for_json(settings, "key", "add", "--name", "Demo", *SCOPES_OF_THE_DEMO)["key"])


@pytest.fixture(scope="module")
def differences(
    tmp_path_factory: pytest.TempPathFactory,
    settings: dict[str, str],
    docs_server: RunningServer,
    demo_key: str,
) -> dict[str, list[str]]:
    """What each example got wrong; they are followed in order, for each builds on those before it."""
    found: dict[str, list[str]] = {}
    variables = {**settings, "KEY": demo_key, "PATH": os.environ["PATH"], "PYTHONPATH": str(RECEIVER_KIT)}
    for listed in EXAMPLES.values():
        folder = tmp_path_factory.mktemp("reader")
        replaced = _replacements(docs_server, settings["HOLDFAST_DATABASE_URL"])
        with closing(Reader(folder, replaced, environment(variables))) as reader:
            found |= {example.name: reader.follow(example) for example in listed}
    return found


def _replacements(server: RunningServer, database_url: str) -> dict[str, str]:
    port = free_port()
    return {
        ADDRESS: server.address,
        DATABASE_URL: database_url,
        COMMANDS: f"{HOLDFAST.parent}/",
        f"127.0.0.1:{RECEIVER_PORT}": f"127.0.0.1:{port}",
        f"--port {RECEIVER_PORT}": f"--port {port}",
        f"PORT={RECEIVER_PORT}": f"PORT={port}",
        " examples/": f" {ROOT}/examples/",
    }


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.name)
def test_example_gives_the_answer_that_is_shown(example: Example, differences: dict[str, list[str]]) -> None:
    assert not differences[example.name], example.command.text


def test_documents_have_examples() -> None:
    assert len(EXAMPLES) > 5
    assert sum(example.answer is not None for example in ALL) > 150
