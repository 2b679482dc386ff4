"""Units from a file: kept, checked, brought in."""
