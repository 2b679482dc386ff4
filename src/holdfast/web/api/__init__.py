"""The JSON API: one module per noun, with the models of its bodies beside its routes."""
