"""The back office as pages: what staff see and click."""
