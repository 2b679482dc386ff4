"""PostgreSQL clusters from the wheel, and migrated databases on them."""

import signal
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import psutil

from holdfast.storage.embedded.server import EmbeddedPostgres
from tests.support import commands
from tests.support.server import PATIENCE_SECONDS
from tests.support.sql import Sql, remember_owner, with_database

NEWEST = 18
TEMPLATE = "migrated_template"
# Nothing here outlives its test, so nothing need reach the disk.
SETTINGS = {"fsync": "off", "max_connections": "200"}
# The rows that migrations insert are kept aside, for each time that the database is emptied.
KEEP_FIRST_ROWS = """
    create schema first_rows;
    create table first_rows.event_feed as table event_feed;
    create table first_rows.event_sums as table event_sums;
    create table first_rows.installation as table installation;
    grant usage on schema first_rows to public;
    grant select on all tables in schema first_rows to public
"""
CLOSE_OTHERS = """
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
"""
EMPTY = """
    do $$
    declare
        relation regclass;
        has_rows boolean;
        with_rows text[] = '{}';
    begin
        for relation in
            select inhrelid from pg_inherits join pg_class on pg_class.oid = inhrelid where relkind = 'r'
        loop
            execute format('drop table %s', relation);
        end loop;
        for relation in
            select oid from pg_class
            where relkind = 'r' and relnamespace = 'public'::regnamespace and relname <> 'alembic_version'
        loop
            execute format('select exists (select from %s)', relation) into has_rows;
            if has_rows then
                with_rows = with_rows || relation::text;
            end if;
        end loop;
        execute format('truncate %s cascade', array_to_string(with_rows, ', '));
        insert into event_feed table first_rows.event_feed;
        insert into event_sums table first_rows.event_sums;
        insert into installation table first_rows.installation;
        perform setval(seqrelid::regclass, seqstart, false) from pg_sequence;
    end $$
"""
# What tests have changed in the schema. Partitions come and go by themselves.
SCHEMA = """
    with relation as (
        select oid, relname from pg_class
        where relnamespace = 'public'::regnamespace and not relispartition
    )
    select
        (select array_agg((oid, relname) order by oid) from relation)::text as relations,
        (select array_agg((attrelid, attname, atttypid) order by attrelid, attnum)
            from pg_attribute where attrelid in (select oid from relation) and attnum > 0)::text as columns,
        (select array_agg((oid, conname) order by oid)
            from pg_constraint where conrelid in (select oid from relation))::text as constraints,
        (select array_agg((oid, tgname) order by oid) from pg_trigger
            where tgrelid in (select oid from relation) and not tgisinternal)::text as triggers,
        (select array_agg((oid, proname, xmin) order by oid)
            from pg_proc where pronamespace = 'public'::regnamespace)::text as functions,
        (select array_agg(setconfig) from pg_db_role_setting join pg_database on pg_database.oid = setdatabase
            where datname = current_database())::text as settings
"""


class Cluster:
    def __init__(self, folder: Path, version: int = NEWEST, **settings: str) -> None:
        self._postgres = EmbeddedPostgres(folder, version=version, extra_settings=SETTINGS | settings)
        self._has_template = False
        self._shared: tuple[str, dict[str, str]] | None = None
        self.url = ""
        """The owner's, who makes databases. Those that are made give a URL of the application."""

    def start(self) -> None:
        self._postgres.start()
        self.url = self._postgres.owner_url
        remember_owner(self._postgres.url, self.url)

    def allow_tcp(self) -> None:
        """Let anybody in who reaches the port that its settings name."""
        with (self._postgres.cluster / "pg_hba.conf").open("w") as file:
            file.write("local all all trust\nhost all all 127.0.0.1/32 trust\n")
        self._execute("select pg_reload_conf()")

    @property
    def log(self) -> Path:
        return self._postgres.log

    def stop(self) -> None:
        self._postgres.stop()

    def crash(self) -> None:
        """As if the power had failed: no goodbye to clients, no checkpoint."""
        postmaster = self.postmaster()
        postmaster.send_signal(signal.SIGQUIT)
        postmaster.wait(PATIENCE_SECONDS)

    def postmaster(self) -> psutil.Process:
        lock_file = self._postgres.cluster / "postmaster.pid"
        return psutil.Process(int(lock_file.read_text().splitlines()[0]))

    def new_database(self) -> str:
        """The URL of a database of its own, with the schema of today and nothing in it."""
        if not self._has_template:
            self._make_template()
        name = f"test_{uuid4().hex}"
        self._execute(f"create database {name} template {TEMPLATE}")
        return with_database(self._postgres.url, name)

    def empty_database(self) -> str:
        """The URL of a database that tests use one after the other, with nothing in it.

        Whoever is still connected is thrown out. If a test has changed the schema, it is made anew.
        """
        if self._shared is not None:
            url, schema = self._shared
            with Sql(url) as sql:
                sql.execute(CLOSE_OTHERS)
                if sql.row(SCHEMA) == schema:
                    sql.execute(EMPTY)
                    return url
            self.drop_database(url)
        url = self.new_database()
        with Sql(url) as sql:
            sql.execute(KEEP_FIRST_ROWS)
            self._shared = url, sql.row(SCHEMA)
        return url

    def drop_database(self, url: str) -> None:
        name = url.split("?")[0].rsplit("/", 1)[1]
        self._execute(f"drop database if exists {name} with (force)")

    def _make_template(self) -> None:
        self._execute(f"create database {TEMPLATE}")
        commands.run({"HOLDFAST_DATABASE_URL": with_database(self.url, TEMPLATE)}, "migrate")
        self._has_template = True

    def _execute(self, statement: str) -> None:
        with Sql(with_database(self.url, "postgres")) as sql:
            sql.execute(statement)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
