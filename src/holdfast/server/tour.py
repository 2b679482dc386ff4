"""The tour on the first page of a demo."""

from holdfast import demo
from holdfast.settings import Settings
from holdfast.web.tour import Tour


def tour_of(settings: Settings) -> Tour | None:
    """Return what the demo has to show, where one is served."""
    if settings.demo_receiver is None:
        return None
    return Tour(
        public_url=settings.public_url or "",
        project_path=demo.PROJECT_PAGE,
        board_path=f"{demo.PAGES}/projects/{demo.SLUG}",
        email=demo.EMAIL,
        receiver=settings.demo_receiver,
        price_path=demo.EXAMPLE_PRICE_PATH,
        price_body=demo.EXAMPLE_PRICE_BODY,
        picture=demo.PICTURE,
    )
