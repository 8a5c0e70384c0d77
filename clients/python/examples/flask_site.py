"""A website in Flask whose users log in with a password and their phone.

pip install './clients/python[flask]' && cd clients/python
flask --app 'examples.flask_site:create_app("https://localhost:8080")' run
"""

import secrets
from pathlib import Path

from flask import Flask, Response, redirect, request, session
from flask.typing import ResponseReturnValue

from twoefay import Conflict, Enrolment, Relay, SQLiteStore, Store, TwoefayError, Webhooks
from twoefay.flask import SecondFactor

PASSWORDS = {"ada": "correct horse", "bob": "battery staple"}  # in place of your own check

HELP = "No phone of yours counts here at present. Try again, or ask the help desk."

FORM = """
<form method="post" action="/login">
<input name="username"><input name="password" type="password"><button>Log in</button>
</form>
"""


def create_app(origin: str, files: str = ".", store: Store | None = None) -> Flask:
    app = Flask(__name__)
    app.secret_key = secrets.token_bytes(32)  # from your settings, if there are several processes
    app.config.update(SESSION_COOKIE_SECURE=True, SESSION_COOKIE_SAMESITE="Lax")
    relay = Relay(
        origin,
        ca=f"{files}/relay/ca.pem",
        certificate=f"{files}/shop.pem",
        key=f"{files}/shop.key",
        store=store or SQLiteStore(Path(files, "shop.db").resolve()),
    )

    def let_in(username: str) -> ResponseReturnValue:
        session["user"] = username
        return redirect("/", 303)

    def first_code(username: str) -> Enrolment | None:
        """The code for a user's first phone; None once a phone has read it.

        Never call it for a user who had a phone: who has only the password would get a code.
        """
        try:
            return relay.register(username)
        except Conflict:
            return None if relay.confirm(username) else relay.enrolment(username)

    factor = SecondFactor(relay, on_approved=let_in)
    app.register_blueprint(factor.blueprint, url_prefix="/second-factor")

    @app.get("/")
    def home() -> str:
        return f"Welcome, {session['user']}" if "user" in session else FORM

    @app.post("/login")
    def login() -> ResponseReturnValue:
        username, password = request.form["username"], request.form["password"]
        if not secrets.compare_digest(PASSWORDS.get(username, ""), password) or not password:
            return "Wrong name or password", 403
        try:
            if not relay.is_enrolled(username):
                if code := first_code(username):  # the first login: bind a phone
                    return Response(code.qr, mimetype="text/html", headers={"cache-control": "no-store"})
            elif not relay.store.pins(username) and not relay.confirm(username):
                return HELP, 403
        except TwoefayError as error:
            app.logger.warning("a phone cannot be bound: %s", error)
            return HELP, 403
        return factor.start(username, service="Shop")

    @app.post("/webhook")
    def webhook() -> ResponseReturnValue:
        with open(f"{files}/shop.secret") as secret:
            inbox = Webhooks([secret.read()], relay.store)
        return "", inbox.receive(
            request.headers, request.get_data(), lambda event: app.logger.info(event.type)
        )

    return app
