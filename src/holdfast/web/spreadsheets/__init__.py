"""CSV and XLSX files, read by imports and written by exports."""
