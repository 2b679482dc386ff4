"""Agreement and receipt of a booking, as pages to print and as PDF."""
