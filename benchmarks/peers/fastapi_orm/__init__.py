"""The unit API as a user of FastAPI and SQLAlchemy's async ORM would write it."""
