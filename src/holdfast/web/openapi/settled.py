"""The operations on projects and layouts in the back office: what staff settle."""

from __future__ import annotations

from typing import Any

from holdfast.domain.access import Scope
from holdfast.web.backoffice.routes import PREFIX
from holdfast.web.openapi import selling_examples as examples
from holdfast.web.openapi import selling_texts as texts
from holdfast.web.openapi.answers import OF_STAFF, WITH_BODY, json_answer, problems
from holdfast.web.openapi.operations import Operation, Paths, body_of, key_with, operation

_OF_A_PROJECT = (*OF_STAFF, "UnknownProject")


def settled_paths() -> Paths:
    project = f"{PREFIX}/projects/{{slug}}"
    return {
        f"{PREFIX}/projects": {"get": _list(), "post": _add()},
        project: {"get": _get(), "patch": _change()},
        f"{project}/layout": {"get": _get_layout(), "put": _put_layout()},
    }


def _of_staff(name: str, summary: str, *parameters: str, **members: Any) -> Operation:
    security = key_with(Scope.BACKOFFICE)
    return operation(name, "Settings", summary, *parameters, security=security, **members)


def _project_answer(description: str) -> dict[str, Any]:
    return json_answer(description, "StaffProject", examples.staff_project())


def _layout_answer(description: str) -> dict[str, Any]:
    return json_answer(description, "Layout", examples.layout())


def _list() -> Operation:
    page = {"projects": [examples.staff_project()], "nextCursor": None}
    answers = {"200": json_answer("A page of projects.", "StaffProjectList", page), **problems(*OF_STAFF)}
    return _of_staff(
        "listStaffProjects", "List projects with their settings", "cursor", "limit", responses=answers
    )


def _add() -> Operation:
    body = body_of("NewProject", project=("A project", examples.new_project()))
    answers = {
        "201": _project_answer("Added."),
        **problems(*_OF_A_PROJECT, *WITH_BODY, "ProjectExists"),
    }
    return _of_staff("addProject", "Add a project", requestBody=body, responses=answers)


def _get() -> Operation:
    answers = {"200": _project_answer("The project."), **problems(*_OF_A_PROJECT)}
    return _of_staff("getProject", "Read a project with its settings", "slug", responses=answers)


def _change() -> Operation:
    body = body_of(
        "ProjectChange",
        periods=("Longer holds, shorter reservations", {"holdSeconds": 600, "reservationDays": 7}),
        back=("As the server settles it", {"holdSeconds": None, "reservationDays": None}),
    )
    answers = {
        "200": _project_answer("The project after the change."),
        **problems(*_OF_A_PROJECT, *WITH_BODY),
    }
    return _of_staff(
        "changeProject", "Change the settings of a project", "slug",
        description=texts.CHANGE_PROJECT, requestBody=body, responses=answers,
    )  # fmt: skip


def _get_layout() -> Operation:
    answers = {"200": _layout_answer("The layout."), **problems(*_OF_A_PROJECT)}
    return _of_staff("getLayout", "Read the layout of a project", "slug", responses=answers)


def _put_layout() -> Operation:
    body = body_of("LayoutReplacement", layout=("One unit that is placed by hand", examples.layout()))
    answers = {
        "200": _layout_answer("The layout after the change."),
        **problems(*_OF_A_PROJECT, *WITH_BODY),
    }
    return _of_staff(
        "putLayout", "Replace the layout of a project", "slug",
        description=texts.PUT_LAYOUT, requestBody=body, responses=answers,
    )  # fmt: skip
