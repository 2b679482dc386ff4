"""The demo's external systems: a webhook receiver and a payment page that moves no money.

They talk to Holdfast over HTTP, as any other system does. Read `receiver.py` before you write a receiver and
`payments.py` before you connect a payment provider.
"""
