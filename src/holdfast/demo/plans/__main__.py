"""Writes the drawings to where the server has its files: `make drawings`."""

from pathlib import Path

from holdfast.demo.plans.drawings import drawings
from holdfast.web.pages.templates import STATIC

FOLDER = STATIC / "demo"


def main(folder: Path = FOLDER) -> None:
    for name, drawing in drawings().items():
        (folder / name).write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
