"""Holdfast: sale units of real estate projects, kept in one place and never sold twice."""

__version__ = "0.1.0"
