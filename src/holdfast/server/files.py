"""Every attempt is a connection, and every connection is a file."""

import resource


def allow_many_files() -> None:
    """As many as the system lets this user have; the customary limit is below what a worker may open."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
