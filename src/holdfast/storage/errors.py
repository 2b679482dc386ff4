"""Errors of databases and backups. Each text is one sentence for the operator."""


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL cannot be had."""


class SchemaError(Exception):
    """This server, database or schema is not one that this release can work on."""


class WrongDatabase(SchemaError):
    """There is no database, or it is not one for this command: the operator named another than was meant."""


class BackupError(Exception):
    """A backup cannot be made, or not be restored."""
