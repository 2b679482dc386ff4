"""Backups: a file with the database and what opens its secrets, and the way back from it."""
