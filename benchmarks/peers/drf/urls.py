"""The one route of the comparison."""

from django.urls import path

from benchmarks.peers.drf.views import UnitView

urlpatterns = [path("v1/integration/projects/<slug:slug>/units/<str:code>", UnitView.as_view())]
