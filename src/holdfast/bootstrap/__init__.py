"""The only place where the parts are wired together."""
