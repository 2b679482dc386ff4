"""The embedded PostgreSQL: the real server, run from the programs of a wheel, in the data directory."""
