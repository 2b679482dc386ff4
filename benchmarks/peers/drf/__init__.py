"""The unit API as a Django REST framework user would write it."""
