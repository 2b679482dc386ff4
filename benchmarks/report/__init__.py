"""What was found: as JSON, as Markdown and as a picture."""
