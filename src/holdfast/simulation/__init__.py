"""Buyers, staff, a payment system and an ERP, played against any Holdfast over HTTP alone."""
