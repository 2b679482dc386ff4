"""Agreement and receipt, as pages to print and as PDF, for whoever may see the booking."""
