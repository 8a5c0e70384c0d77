"""A website in Django, in one file, whose users log in with a password and their phone.

`configure` stands for settings.py. `urlpatterns` and the views are those of a usual project.
"""

import logging
import secrets
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from twoefay import Conflict, Enrolment, TwoefayError

log = logging.getLogger(__name__)

HELP = "No phone of yours counts here at present. Try again, or ask the help desk."


def configure(origin: str, files: str = ".", **more: Any) -> None:
    settings.configure(
        SECRET_KEY=secrets.token_hex(32),
        ALLOWED_HOSTS=["testserver", "localhost"],
        ROOT_URLCONF="django_site",
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "twoefay.django",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{files}/site.db"}},
        LOGIN_REDIRECT_URL="/",
        TWOEFAY={
            "origin": origin,
            "ca": f"{files}/relay/ca.pem",
            "certificate": f"{files}/shop.pem",
            "key": f"{files}/shop.key",
        },
        **more,
    )


def home(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"Welcome, {request.user}" if request.user.is_authenticated else "Log in")


def first_code(username: str) -> Enrolment | None:
    """The code for a user's first phone; None once a phone has read it.

    Never call it for a user who had a phone: who has only the password would get a code.
    """
    from twoefay.django.views import relay

    try:
        return relay().register(username)
    except Conflict:
        return None if relay().confirm(username) else relay().enrolment(username)


def login(request: HttpRequest) -> HttpResponse:
    from django.contrib.auth import authenticate

    from twoefay.django.views import relay, start

    username = request.POST.get("username", "")
    user = authenticate(request, username=username, password=request.POST.get("password", ""))
    if user is None:
        return HttpResponse("Wrong name or password", status=403)
    try:
        if not relay().is_enrolled(username):
            if code := first_code(username):  # the first login: bind a phone
                return HttpResponse(code.qr, headers={"cache-control": "no-store"})
        elif not relay().store.pins(username) and not relay().confirm(username):
            return HttpResponse(HELP, status=403)
    except TwoefayError as error:
        log.warning("a phone cannot be bound: %s", error)
        return HttpResponse(HELP, status=403)
    return start(request, user, request.POST.get("next", ""), service="Shop")


def urls() -> list[Any]:
    from django.urls import include, path

    return [
        path("", home),
        path("login", login),
        path("second-factor/", include("twoefay.django.urls")),
    ]


if settings.configured:
    urlpatterns = urls()
