"""HTTP/1.1 for our own routes: connections, and one request and answer after the other on them."""
