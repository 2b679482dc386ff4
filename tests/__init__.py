"""The tests. What they share asserts too, so pytest is to explain its failures as well."""

import pytest

pytest.register_assert_rewrite("tests.support")
