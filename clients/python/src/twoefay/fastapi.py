"""The second factor for FastAPI and Starlette: a router with the waiting page.

    factor = SecondFactor(relay, on_approved=let_in)
    app.include_router(factor.router, prefix="/second-factor")

After the right password, `return await factor.start(request, username)`. `let_in(request, username)`
runs after the phone has approved and the receipt was checked; it fills the session, which is new
then. The application needs Starlette's SessionMiddleware, of Starlette 1.0 or newer: older ones set
the cookie with each answer, so the answer to a double click would log out.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.templating import Jinja2Templates

from . import pages
from .aio import AsyncRelay
from .errors import TwoefayError
from .pages import Page, Pending

_templates = Jinja2Templates(directory=pages.TEMPLATES)


class SecondFactor:
    """The second factor of a FastAPI application."""

    def __init__(
        self,
        relay: AsyncRelay,
        on_approved: Callable[[Request, str], Awaitable[Response]],
        home: str = "/",
    ) -> None:
        """`home` is where a browser goes that has nothing to confirm, such as after a double click."""
        self.relay = relay
        self._on_approved = on_approved
        self._home = home
        self.router = APIRouter(include_in_schema=False)
        self.router.add_api_route("/", self._page, methods=["GET"], name="twoefay_page", response_model=None)
        self.router.add_api_route(
            "/", self._finish, methods=["POST"], name="twoefay_finish", response_model=None
        )
        self.router.add_api_route(
            "/state", self._state, methods=["GET"], name="twoefay_state", response_model=None
        )

    async def start(self, request: Request, username: str, **asked: Any) -> Response:
        """Asks the user's phone, and shows the waiting page. `asked` are arguments of `ask`."""
        try:
            login = await self.relay.ask(
                username,
                **{
                    "ip": request.client.host if request.client else None,
                    "user_agent": request.headers.get("user-agent"),
                    "accept_language": request.headers.get("accept-language"),
                    **asked,
                },
            )
        except TwoefayError as error:
            return self._show(request, None, pages.page_of_error(error))
        # A new session: what somebody else has put into this browser must not be logged in.
        request.session.clear()
        request.session[pages.SESSION_KEY] = Pending.begin(login).to_json()
        return RedirectResponse(request.url_for("twoefay_page").path, 303)

    async def _page(self, request: Request) -> Response:
        pending = _pending(request)
        return self._show(request, pending, Page() if pending else pages.GO_ON)

    async def _state(self, request: Request) -> Response:
        pending = _pending(request)
        if pending is None:
            return JSONResponse({"ended": True})
        try:
            answer = await self.relay.state(pending.login)
        except TwoefayError:
            return JSONResponse({"ended": False}, 503)
        return JSONResponse({"ended": answer["login"] != "wait"})

    async def _finish(self, request: Request) -> Response:
        pending, form = _pending(request), await request.form()
        if pending is None:
            return self._show(request, None, pages.GO_ON)
        if not pending.is_own(form.get("form_token")):
            return self._show(request, pending, pages.STALE_FORM)
        code = str(form.get("code") or "").strip()
        try:
            login = pending.login
            decision = await (self.relay.enter(login, code) if code else self.relay.wait(login, within=0))
        except TwoefayError as error:
            return self._show(request, pending, pages.page_of_error(error))
        if decision.approved:
            request.session.clear()
            return await self._on_approved(request, pending.login.username)
        return self._show(request, pending, pages.page_of(decision, bool(code)))

    def _show(self, request: Request, pending: Pending | None, page: Page) -> Response:
        if page.goes_on:
            return RedirectResponse(self._home, 303)
        if page.ended:
            request.session.pop(pages.SESSION_KEY, None)
        nonce = pages.new_nonce()
        state = request.url_for("twoefay_state").path
        context = pages.context(pending, page, nonce, state, self.relay.policy.accept_codes)
        return _templates.TemplateResponse(
            request, pages.TEMPLATE, context, page.status, pages.headers(nonce, page)
        )


def _pending(request: Request) -> Pending | None:
    return Pending.from_json(request.session.get(pages.SESSION_KEY))
