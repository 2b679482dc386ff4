"""Pages for people: the back office, the storefront, and what both share."""
