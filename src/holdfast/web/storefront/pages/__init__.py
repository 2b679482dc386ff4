"""The pages of the storefront, for buyers: a project, its units, and a buyer's own bookings."""
