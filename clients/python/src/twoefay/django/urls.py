from django.urls import path

from . import views

app_name = "twoefay"
urlpatterns = [
    path("", views.page, name="page"),
    path("state", views.state, name="state"),
]
