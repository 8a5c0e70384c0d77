"""The waiting page, and the two functions that a website calls: `relay` and `start`."""

from functools import cache
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth import login as log_in
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render, resolve_url
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_GET, require_http_methods

from .. import pages
from ..errors import TwoefayError
from ..pages import Page, Pending
from ..relay import Relay
from .store import DjangoStore


@cache
def relay() -> Relay:
    """The relay of settings.TWOEFAY. All workers of this process share it."""
    return Relay(**{"store": DjangoStore(), **settings.TWOEFAY})


def start(request: HttpRequest, user: AbstractBaseUser, target: str = "", **asked: Any) -> HttpResponse:
    """Asks the user's phone, and shows the waiting page. `asked` are arguments of `Relay.ask`.

    `user` is what `authenticate` returned. `target` is the page after the login, on this site.
    """
    try:
        login = relay().ask(
            user.get_username(),
            **{
                "ip": request.META.get("REMOTE_ADDR"),
                "user_agent": request.headers.get("user-agent"),
                "accept_language": request.headers.get("accept-language"),
                **asked,
            },
        )
    except TwoefayError as error:
        return _show(request, None, pages.page_of_error(error))
    is_own = url_has_allowed_host_and_scheme(target, request.get_host(), request.is_secure())
    # A new session: what somebody else has put into this browser must not be logged in.
    request.session.flush()
    pending = Pending.begin(login, target if is_own else "")
    backend = getattr(user, "backend", settings.AUTHENTICATION_BACKENDS[0])
    request.session[pages.SESSION_KEY] = {**pending.to_json(), "user": str(user.pk), "backend": backend}
    return redirect("twoefay:page")


def _pending(request: HttpRequest) -> Pending | None:
    return Pending.from_json(request.session.get(pages.SESSION_KEY))


@require_http_methods(["GET", "POST"])
@csrf_exempt  # Only `_answer` lets in, and checks the form. That of a second click has an old token.
def page(request: HttpRequest) -> HttpResponse:
    pending = _pending(request)
    return _answer(request, pending) if pending else _show(request, None, pages.GO_ON)


@csrf_protect
def _answer(request: HttpRequest, pending: Pending) -> HttpResponse:
    if request.method != "POST":
        return _show(request, pending, Page())
    code = request.POST.get("code", "").strip()
    try:
        login = pending.login
        decision = relay().enter(login, code) if code else relay().wait(login, within=0)
    except TwoefayError as error:
        return _show(request, pending, pages.page_of_error(error))
    if not decision.approved:
        return _show(request, pending, pages.page_of(decision, bool(code)))
    kept = request.session.pop(pages.SESSION_KEY)
    user = get_user_model().objects.get(pk=kept["user"])
    if user.get_username() != pending.login.username or not user.is_active:
        return _show(request, None, Page("Log in again.", 403, ended=True))
    log_in(request, user, kept["backend"])  # it also changes the session's key
    return _go_on(pending)


@require_GET
def state(request: HttpRequest) -> HttpResponse:
    pending = _pending(request)
    if pending is None:
        _leave_session(request)
        return JsonResponse({"ended": True})
    try:
        return JsonResponse({"ended": relay().state(pending.login)["login"] != "wait"})
    except TwoefayError:
        return JsonResponse({"ended": False}, status=503)


def _go_on(pending: Pending | None) -> HttpResponse:
    # A path is no name of a view, for which `redirect` would look first.
    target = pending.target if pending else ""
    return HttpResponseRedirect(target or resolve_url(settings.LOGIN_REDIRECT_URL))


def _leave_session(request: HttpRequest) -> None:
    """Has Django neither save nor delete the session. The login has given the browser another one;
    Django would delete its cookie, because the session of this request is gone."""
    del request.session


def _show(request: HttpRequest, pending: Pending | None, page: Page) -> HttpResponse:
    if page.goes_on:
        _leave_session(request)
        return _go_on(pending)
    if page.ended:
        request.session.pop(pages.SESSION_KEY, None)
    nonce = pages.new_nonce()
    context = pages.context(pending, page, nonce, reverse("twoefay:state"), relay().policy.accept_codes)
    context |= {"token_name": "csrfmiddlewaretoken", "token": get_token(request)}
    response = render(request, pages.TEMPLATE, context, status=page.status)
    for name, value in pages.headers(nonce, page).items():
        response[name] = value
    return response
