"""How fast Holdfast is, as ratios to its peers and to the bare database. Run with ``make bench``."""
