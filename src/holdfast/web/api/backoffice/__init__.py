"""The back office: what staff do, for keys of scope `backoffice` and `admin`."""

PREFIX = "/v1/backoffice"
