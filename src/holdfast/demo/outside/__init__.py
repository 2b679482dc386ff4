"""What stands outside of Holdfast in the demo: a receiver of webhooks, a payment page that moves no money.

It speaks to Holdfast as any other system does: over HTTP, by the documents. Whoever writes a receiver or
connects a payment provider can read here what there is to do: `receiver.py` and `payments.py`.
"""
