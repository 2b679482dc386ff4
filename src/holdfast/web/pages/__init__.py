"""What all pages for people are made of: templates, languages, forms, cookies."""
