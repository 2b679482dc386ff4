"""Simulated buyers, staff, payment system and ERP that use a Holdfast over HTTP."""
