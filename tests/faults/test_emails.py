"""E-mail survives a worker that is killed while it sends."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import UNLIMITED
from tests.support.backoffice import Desk
from tests.support.clusters import NEWEST
from tests.support.installation import opened
from tests.support.mail import mail_server_in_thread
from tests.support.processes import children, wait_until_gone
from tests.support.server import serving, wait_until

STATUS = "select status from email"


@pytest.mark.slow
def test_the_e_mail_of_a_killed_worker_goes_out_again(tmp_path: Path, cluster_of: Any) -> None:
    url = cluster_of(NEWEST).new_database()
    with mail_server_in_thread() as mail:
        mail.hangs = True
        settings = {"HOLDFAST_DATABASE_URL": url, **UNLIMITED, **mail.settings}
        with serving(tmp_path, settings) as server, opened(server.address, url) as installation:
            (unit,) = installation.units(1)
            Desk(installation.http).signed(unit)
            wait_until(lambda: mail.messages)
            workers = children(server, "work")
            for worker in workers:
                worker.kill()
            wait_until_gone(workers)
            mail.hangs = False
            assert installation.sql.value(STATUS) == "queued"
            # As if the lease of the killed worker were over.
            installation.sql.value("update email set due_at = now() returning 1")
            wait_until(lambda: installation.sql.value(STATUS) == "sent")
        assert len({message["Message-ID"] for message in mail.messages}) == 1
    cluster_of(NEWEST).drop_database(url)
