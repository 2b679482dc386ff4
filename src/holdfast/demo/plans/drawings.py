"""All of them, by the name of their file."""

from holdfast.demo.plans.drawing import drawn
from holdfast.demo.plans.elevation import elevation
from holdfast.demo.plans.large_homes import FOUR_BEDROOMS, THREE_BEDROOMS
from holdfast.demo.plans.penthouse import PENTHOUSE
from holdfast.demo.plans.small_homes import ONE_BEDROOM, STUDIO, TWO_BEDROOMS
from holdfast.demo.project import ELEVATION

PLANS = (STUDIO, ONE_BEDROOM, TWO_BEDROOMS, THREE_BEDROOMS, FOUR_BEDROOMS, PENTHOUSE)


def drawings() -> dict[str, str]:
    return {**{f"{plan.name}.svg": drawn(plan) for plan in PLANS}, f"{ELEVATION}.svg": elevation()}
