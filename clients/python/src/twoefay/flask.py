"""The second factor for Flask: a blueprint with the waiting page.

    factor = SecondFactor(relay, on_approved=let_in)
    app.register_blueprint(factor.blueprint, url_prefix="/second-factor")

After the right password, `return factor.start(username)`. `let_in(username)` runs after the phone
has approved and the receipt was checked; it fills the session, which is new then.
"""

from collections.abc import Callable
from typing import Any

import flask
from flask.typing import ResponseReturnValue

from . import pages
from .errors import TwoefayError
from .pages import Page, Pending
from .relay import Relay


class SecondFactor:
    """The second factor of a Flask application. Sessions must be on (`app.secret_key`)."""

    def __init__(
        self, relay: Relay, on_approved: Callable[[str], ResponseReturnValue], home: str = "/"
    ) -> None:
        """`home` is where a browser goes that has nothing to confirm, such as after a double click."""
        self.relay = relay
        self._on_approved = on_approved
        self._home = home
        self.blueprint = flask.Blueprint("twoefay", __name__, template_folder=pages.TEMPLATES)
        self.blueprint.add_url_rule("/", "page", self._page, methods=["GET"])
        self.blueprint.add_url_rule("/", "finish", self._finish, methods=["POST"])
        self.blueprint.add_url_rule("/state", "state", self._state, methods=["GET"])

    def start(self, username: str, **asked: Any) -> ResponseReturnValue:
        """Asks the user's phone, and shows the waiting page. `asked` are arguments of `Relay.ask`."""
        request = flask.request
        try:
            login = self.relay.ask(
                username,
                **{
                    "ip": request.remote_addr,
                    "user_agent": request.headers.get("user-agent"),
                    "accept_language": request.headers.get("accept-language"),
                    **asked,
                },
            )
        except TwoefayError as error:
            return self._show(None, pages.page_of_error(error))
        # A new session: what somebody else has put into this browser must not be logged in.
        flask.session.clear()
        flask.session[pages.SESSION_KEY] = Pending.begin(login).to_json()
        return flask.redirect(flask.url_for("twoefay.page"), 303)

    def _pending(self) -> Pending | None:
        return Pending.from_json(flask.session.get(pages.SESSION_KEY))

    def _page(self) -> ResponseReturnValue:
        pending = self._pending()
        return self._show(pending, Page() if pending else pages.GO_ON)

    def _state(self) -> ResponseReturnValue:
        pending = self._pending()
        if pending is None:
            return {"ended": True}
        try:
            return {"ended": self.relay.state(pending.login)["login"] != "wait"}
        except TwoefayError:
            return {"ended": False}, 503

    def _finish(self) -> ResponseReturnValue:
        pending, form = self._pending(), flask.request.form
        if pending is None:
            return self._show(None, pages.GO_ON)
        if not pending.is_own(form.get("form_token")):
            return self._show(pending, pages.STALE_FORM)
        code = form.get("code", "").strip()
        try:
            login = pending.login
            decision = self.relay.enter(login, code) if code else self.relay.wait(login, within=0)
        except TwoefayError as error:
            return self._show(pending, pages.page_of_error(error))
        if decision.approved:
            flask.session.clear()
            return self._on_approved(pending.login.username)
        return self._show(pending, pages.page_of(decision, bool(code)))

    def _show(self, pending: Pending | None, page: Page) -> ResponseReturnValue:
        if page.goes_on:
            flask.after_this_request(_leave_session)
            return flask.redirect(self._home, 303)
        if page.ended:
            flask.session.pop(pages.SESSION_KEY, None)
        nonce = pages.new_nonce()
        codes = self.relay.policy.accept_codes
        context = pages.context(pending, page, nonce, flask.url_for("twoefay.state"), codes)
        return flask.render_template(pages.TEMPLATE, **context), page.status, pages.headers(nonce, page)


def _leave_session(response: flask.Response) -> flask.Response:
    """Sets no cookie, even if the session is permanent: the browser may have a newer one."""
    flask.session.pop("_permanent", None)
    flask.session.modified = False
    return response
