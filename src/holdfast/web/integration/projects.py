"""The projects that a key may use."""

from __future__ import annotations

from holdfast.operations.inventory import Inventory
from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.project_pages import projects_page
from holdfast.web.wire import project_document


class ProjectRoutes:
    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory

    async def list(self, call: Call) -> JsonAnswer:
        return await projects_page(call, self._inventory, project_document)
