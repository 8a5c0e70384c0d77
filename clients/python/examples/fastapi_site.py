"""A website in FastAPI whose users log in with a password and their phone."""

import logging
import secrets
from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.middleware.sessions import SessionMiddleware

from twoefay import AsyncRelay, Conflict, Enrolment, SQLiteStore, Store, TwoefayError
from twoefay.fastapi import SecondFactor

log = logging.getLogger(__name__)

PASSWORDS = {"ada": "correct horse", "bob": "battery staple"}  # in place of your own check

HELP = "No phone of yours counts here at present. Try again, or ask the help desk."

FORM = """
<form method="post" action="/login">
<input name="username"><input name="password" type="password"><button>Log in</button>
</form>
"""


def create_app(origin: str, files: str = ".", store: Store | None = None) -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None)
    # The key comes from your settings, if there are several processes.
    app.add_middleware(SessionMiddleware, secret_key=secrets.token_hex(32), https_only=True)
    relay = AsyncRelay(
        origin,
        ca=f"{files}/relay/ca.pem",
        certificate=f"{files}/shop.pem",
        key=f"{files}/shop.key",
        store=store or SQLiteStore(Path(files, "shop.db").resolve()),
    )

    async def let_in(request: Request, username: str) -> Response:
        request.session["user"] = username
        return RedirectResponse("/", 303)

    async def first_code(username: str) -> Enrolment | None:
        """The code for a user's first phone; None once a phone has read it.

        Never call it for a user who had a phone: who has only the password would get a code.
        """
        try:
            return await relay.register(username)
        except Conflict:
            return None if await relay.confirm(username) else await relay.enrolment(username)

    factor = SecondFactor(relay, on_approved=let_in)
    app.include_router(factor.router, prefix="/second-factor")

    @app.get("/")
    async def home(request: Request) -> HTMLResponse:
        user = request.session.get("user")
        return HTMLResponse(f"Welcome, {user}" if user else FORM)

    @app.post("/login", response_model=None)
    async def login(
        request: Request, username: Annotated[str, Form()], password: Annotated[str, Form()]
    ) -> Response:
        if not password or not secrets.compare_digest(PASSWORDS.get(username, ""), password):
            return HTMLResponse("Wrong name or password", 403)
        try:
            if not await relay.is_enrolled(username):
                if code := await first_code(username):  # the first login: bind a phone
                    return HTMLResponse(code.qr, headers={"cache-control": "no-store"})
            elif not await run_in_threadpool(relay.store.pins, username) and not await relay.confirm(
                username
            ):
                return HTMLResponse(HELP, 403)
        except TwoefayError as error:
            log.warning("a phone cannot be bound: %s", error)
            return HTMLResponse(HELP, 403)
        return await factor.start(request, username, service="Shop")

    return app
