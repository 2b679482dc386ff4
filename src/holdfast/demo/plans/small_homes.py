"""The plans of the smaller homes. Their front is at the bottom, the stairwell at the top."""

from __future__ import annotations

from holdfast.demo.plans.model import (
    Door,
    FloorPlan,
    Pane,
    Piece,
    Rect,
    Room,
    Use,
    Window,
    across,
    upright,
)

STUDIO = FloorPlan(
    "studio", "Studio", "استوديو", 7.0, 6.0,
    Rect(2.0, 6.0, 3.0, 1.5), ("Balcony", "شرفة"),
    rooms=(
        Room("Living and sleeping", "معيشة ونوم", Use.LIVING, (Rect(0, 2.4, 7.0, 3.6),), (3.5, 4.1)),
        Room("Bathroom", "حمام", Use.BATHROOM, (Rect(0, 0, 2.3, 2.4),), (1.25, 1.3)),
        Room("Entrance", "مدخل", Use.HALL, (Rect(2.3, 0, 1.8, 2.4),)),
        Room("Kitchen", "مطبخ", Use.KITCHEN, (Rect(4.1, 0, 2.9, 2.4),), (5.5, 1.5)),
    ),
    doors=(
        Door(across(2.75, 0, 0.95)),
        Door(upright(2.3, 1.3, 0.8), swings_back=True),
    ),
    openings=(across(2.36, 2.4, 1.68), across(4.16, 2.4, 2.59)),
    windows=(
        Window(across(0.5, 6.0, 1.3)),
        Window(across(2.3, 6.0, 2.4), Pane.SLIDING),
        Window(across(5.2, 6.0, 1.3)),
    ),
    pieces=(
        Piece("bed-1.6", 0.3, 2.98, 270), Piece("night", 0.3, 2.5), Piece("night", 0.3, 4.66),
        Piece("wardrobe-1.4", 0.3, 5.12, 0),
        Piece("sofa-2", 5.78, 3.4, 90), Piece("coffee", 5.0, 3.85, 90), Piece("tv", 3.3, 2.46),
        Piece("kitchen-2.5", 4.2, 0.28), Piece("wc", 0.3, 0.28), Piece("basin-0.7", 1.0, 0.28),
        Piece("shower", 0.28, 1.38), Piece("armchair", 3.9, 4.85, 180), Piece("plant", 6.12, 2.75),
    ),
)  # fmt: skip

ONE_BEDROOM = FloorPlan(
    "one-bedroom", "1-bedroom apartment", "شقة بغرفة نوم واحدة", 9.0, 7.25,
    Rect(0.5, 7.25, 4.0, 1.5), ("Balcony", "شرفة"),
    rooms=(
        Room("Living and dining", "معيشة وطعام", Use.LIVING, (Rect(0, 2.75, 5.1, 4.5),), (2.6, 4.9)),
        Room("Bedroom", "غرفة نوم", Use.BEDROOM, (Rect(5.1, 2.75, 3.9, 4.5),), (7.0, 3.75)),
        Room("Kitchen", "مطبخ", Use.KITCHEN, (Rect(0, 0, 3.0, 2.75),), (1.6, 1.75)),
        Room("Entrance", "مدخل", Use.HALL, (Rect(3.0, 0, 2.1, 2.75),)),
        Room("Bathroom", "حمام", Use.BATHROOM, (Rect(5.1, 0, 2.3, 2.75),), (6.2, 1.5)),
        Room("Dressing", "غرفة ملابس", Use.SERVICE, (Rect(7.4, 0, 1.6, 2.75),), (8.0, 1.3)),
    ),
    doors=(
        Door(across(3.6, 0, 0.95)),
        Door(upright(5.1, 1.65, 0.8)),
        Door(upright(5.1, 2.95, 0.9)),
        Door(across(7.55, 2.75, 0.8), hinged_at_end=True),
    ),
    openings=(across(3.06, 2.75, 1.98), across(0.9, 2.75, 1.9)),
    windows=(
        Window(across(0.9, 7.25, 3.0), Pane.SLIDING),
        Window(across(5.9, 7.25, 2.3)),
    ),
    pieces=(
        Piece("kitchen-2.6", 0.3, 0.28), Piece("table4", 0.4, 3.0, 90),
        Piece("sofa-1.8", 0.3, 4.75, 270), Piece("coffee", 1.45, 5.1, 90), Piece("tv", 4.58, 4.5, 90),
        Piece("plant", 4.2, 6.42),
        Piece("bed-1.8", 6.62, 4.75, 90), Piece("night", 8.25, 4.28), Piece("night", 8.25, 6.57),
        Piece("desk", 5.18, 5.6, 270), Piece("plant", 8.1, 3.6),
        Piece("shower", 6.37, 0.28), Piece("wc", 5.3, 0.28), Piece("basin-0.8", 6.8, 1.5, 90),
        Piece("wardrobe-2", 8.13, 0.3, 90), Piece("lounger", 2.45, 7.95, 90),
        Piece("plant", 0.6, 8.05),
    ),
)  # fmt: skip

TWO_BEDROOMS = FloorPlan(
    "two-bedroom", "2-bedroom apartment", "شقة بغرفتي نوم", 12.0, 8.8,
    Rect(0, 8.8, 4.8, 1.5), ("Balcony", "شرفة"),
    rooms=(
        Room("Living and dining", "معيشة وطعام", Use.LIVING, (Rect(0, 2.6, 5.0, 6.2),), (2.7, 5.35)),
        Room("Master bedroom", "غرفة النوم الرئيسية", Use.BEDROOM,
             (Rect(8.3, 3.8, 3.7, 5.0), Rect(9.6, 2.6, 2.4, 1.2)), (10.2, 4.8)),
        Room("Bedroom", "غرفة نوم", Use.BEDROOM, (Rect(5.0, 3.8, 3.3, 5.0),), (6.7, 5.3)),
        Room("Kitchen", "مطبخ", Use.KITCHEN, (Rect(0, 0, 3.0, 2.6),), (1.7, 1.5)),
        Room("Entrance", "مدخل", Use.HALL, (Rect(3.0, 0, 2.0, 2.6),)),
        Room("Bathroom", "حمام", Use.BATHROOM, (Rect(5.0, 0, 2.2, 2.6),), (6.1, 1.4)),
        Room("Laundry", "غسيل", Use.SERVICE, (Rect(7.2, 0, 2.4, 2.6),), (8.4, 1.45)),
        Room("Bathroom", "حمام", Use.BATHROOM, (Rect(9.6, 0, 2.4, 2.6),), (10.7, 1.4)),
        Room("Hall", "ممر", Use.HALL, (Rect(5.0, 2.6, 4.6, 1.2),)),
    ),
    doors=(
        Door(across(3.5, 0, 0.95)),
        Door(across(6.1, 2.6, 0.8), swings_back=True, hinged_at_end=True),
        Door(across(8.5, 2.6, 0.8), swings_back=True, hinged_at_end=True),
        Door(across(5.3, 3.8, 0.9)),
        Door(across(8.45, 3.8, 0.9)),
        Door(across(9.75, 2.6, 0.8), swings_back=True),
    ),
    openings=(across(3.06, 2.6, 1.88), upright(5.0, 2.66, 1.08), across(0.8, 2.6, 1.9)),
    windows=(
        Window(upright(0, 0.9, 1.1)),
        Window(upright(0, 4.3, 2.2)),
        Window(across(0.6, 8.8, 3.4), Pane.SLIDING),
        Window(across(5.7, 8.8, 1.9)),
        Window(across(9.2, 8.8, 2.0)),
        Window(upright(12.0, 5.4, 1.6)),
        Window(upright(12.0, 0.9, 0.7)),
    ),
    pieces=(
        Piece("kitchen-2.6", 0.3, 0.28), Piece("table6", 0.6, 3.0),
        Piece("sofa-2.8", 0.3, 5.6, 270), Piece("coffee", 1.75, 6.4, 90), Piece("tv", 4.5, 6.1, 90),
        Piece("armchair", 1.7, 7.65, 180), Piece("plant", 4.3, 7.95),
        Piece("bed-1.4", 6.16, 6.9, 90), Piece("night", 7.74, 6.42),
        Piece("wardrobe-1.8", 7.62, 3.9, 90), Piece("desk", 5.08, 5.9, 270),
        Piece("bed-1.8", 9.15, 6.28, 90), Piece("night", 11.22, 5.8),
        Piece("night", 11.22, 8.1), Piece("plant", 8.42, 7.9),
        Piece("wardrobe-1", 10.72, 2.68), Piece("tv", 8.38, 5.7, 270),
        Piece("tub", 5.25, 0.27), Piece("wc", 5.1, 1.95, 270), Piece("basin-0.8", 5.08, 1.1, 270),
        Piece("washer", 7.3, 0.28), Piece("washer", 7.98, 0.28), Piece("shelf-1.3", 9.12, 0.3, 90),
        Piece("shower", 9.68, 0.28), Piece("wc", 10.75, 0.28), Piece("basin-1.2", 11.23, 1.35, 90),
        Piece("lounger", 0.2, 9.2, 90), Piece("armchair", 3.8, 9.1, 90),
    ),
)  # fmt: skip
