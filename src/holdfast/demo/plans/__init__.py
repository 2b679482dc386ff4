"""The drawings of the demo, made from rooms, doors and furniture. `make drawings` writes them anew."""
