"""The payment system's own way in: what it tells is signed, and needs no key."""
