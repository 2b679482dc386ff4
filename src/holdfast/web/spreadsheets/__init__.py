"""CSV and XLSX, read and written."""
