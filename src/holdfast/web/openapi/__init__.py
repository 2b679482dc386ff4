"""The description of the API that machines read: OpenAPI 3.1, made from the code itself."""
