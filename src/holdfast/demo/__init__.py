"""The demo of `serve --demo`: a project with data, a login, a webhook receiver and a payment page."""
