"""The documents as a site; ``make site`` builds it.

The source is the whole repository, not this folder alone: so each link leads to the same page on the site as
it does where the files are read as files, to those outside ``docs`` too.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_site"))

project = "Holdfast"
html_title = "Holdfast"
language = "en"
extensions = ["myst_parser", "navigation", "status_picture"]

root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/decisions/*.md",
    "sdk/README.md",
    "sdk/python/README.md",
    "examples/README.md",
    "benchmarks/README.md",
    "benchmarks/**/README.md",
]
# Folders without pages, so that they are not walked through.
exclude_patterns = [".*", "data", "dist", "requirements", "src", "tests"]

myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
smartquotes = False
# "…" in an answer stands for what is left out. No lexer knows it, and every reader does.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_logo = html_favicon = "../src/holdfast/web/static/favicon.svg"
html_static_path = ["_static", "../src/holdfast/web/static/statuses.css"]
html_css_files = ["statuses.css", "holdfast.css"]
html_extra_path = ["_root"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b6656",
        "color-brand-content": "#0b6656",
        "color-brand-visited": "#0b6656",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6fd0bb",
        "color-brand-content": "#6fd0bb",
        "color-brand-visited": "#6fd0bb",
    },
    "footer_icons": [],
}
