"""What `serve --demo` brings along: a believable project, a way in, and a world outside to talk to.

`outside` is imported only by the process that serves it.
"""

from holdfast.demo.access import EMAIL, KEY_NAME, DemoAccess
from holdfast.demo.history import fill, is_demo
from holdfast.demo.project import (
    EXAMPLE_BODY,
    EXAMPLE_HOLD_PATH,
    EXAMPLE_PATH,
    EXAMPLE_PRICE_BODY,
    EXAMPLE_PRICE_PATH,
    NAME,
    PICTURE,
    PROJECT_PAGE,
    SLUG,
    DemoUnit,
    demo_units,
)

__all__ = [
    "EMAIL",
    "EXAMPLE_BODY",
    "EXAMPLE_HOLD_PATH",
    "EXAMPLE_PATH",
    "EXAMPLE_PRICE_BODY",
    "EXAMPLE_PRICE_PATH",
    "KEY_NAME",
    "NAME",
    "PAGES",
    "PICTURE",
    "PROJECT_PAGE",
    "SLUG",
    "DemoAccess",
    "DemoUnit",
    "demo_units",
    "fill",
    "is_demo",
]

PAGES = "/backoffice"
