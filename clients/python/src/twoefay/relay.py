"""The synchronous client."""

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import httpx

from . import wire
from .answers import Answer
from .enrolment import Enrolment
from .errors import Unreachable
from .jsontext import Object
from .login import Assurance, Decision, Login, UserVerification
from .operations import Factor, Operations
from .policy import Phones, Policy
from .steps import Call, Operation, Pause, Step, Use, World
from .stores import Store
from .wire import Path_

T = TypeVar("T")


class BaseRelay:
    """What the two clients share: their settings."""

    def __init__(
        self,
        origin: str,
        *,
        ca: Path_,
        certificate: Path_,
        key: Path_,
        store: Store,
        display_name: str | None = None,
        least_user_verification: UserVerification = "none",
        longest_verification_age: int | None = None,
        least_digits: int = 2,
        allow_unpinned: bool = False,
        accept_codes: bool = False,
        phones: Phones = "any",
        app_origin: str | None = None,
        login_origins: Sequence[str] = (),
    ) -> None:
        """Makes a client. Make one for the process, and share it.

        `origin` is the relay's, as in its settings: https://login.example.com:8080. `ca` is the
        relay's ca.pem; `certificate` and `key` are the website's files. `store` keeps pinned keys.

        `accept_codes` lets users in by codes too, for which only the relay vouches. `allow_unpinned`
        trusts the relay for users without a pinned phone. Both give up a part of the strong form.

        `phones` is `native` or `web` if only such phones may be pinned. `app_origin` is the origin of
        the web app that the website chose: the QR code leads there, and web phones of other pages are
        refused. `login_origins` are the website's own origins: a web phone's login counts as `high`
        only if its page has none of their hosts, and without them it is `substantial` at most.
        """
        policy = Policy(
            wire.origin_of(origin),
            wire.website_of(certificate),
            display_name,
            least_user_verification,
            longest_verification_age,
            least_digits,
            allow_unpinned,
            accept_codes,
            phones,
            app_origin,
            tuple(login_origins),
        )
        self._set_up(policy, store, World(), wire.options(origin, wire.tls(ca, certificate, key)))

    def _set_up(self, policy: Policy, store: Store, world: World, options: dict[str, Any]) -> None:
        self.policy = policy
        self.store = store
        self._operations = Operations(policy, store, world)
        self._options = options


def languages(accepted: str | None, chosen: str | None) -> dict[str, str]:
    """The header fields that select the language of mails and texts. Long ones are left out."""
    fields = {"accept-language": accepted, "accept-user-language": chosen}
    return {name: value for name, value in fields.items() if value and value.isascii() and len(value) <= 256}


class Relay(BaseRelay):
    """The relay, for one website. All methods may be called by several threads.

    relay = Relay("https://login.example.com:8080", ca="ca.pem", certificate="shop.pem",
                  key="shop.key", store=SQLiteStore("/srv/shop/shop.db"))
    """

    _http: httpx.Client | None = None
    _process = 0

    # MARK: Enrolment

    def register(
        self,
        username: str,
        *,
        email: str | None = None,
        phone: str | None = None,
        display_name: str | None = None,
        language: str | None = None,
        expires_at: str | None = None,
    ) -> Enrolment:
        """Registers a user, once. Raises Conflict if the relay knows the user: see `enrolment`."""
        optional = {
            "email": email,
            "phone": phone,
            "display_name": display_name,
            "language": language,
            "expires_at": expires_at,
        }
        return self._run(self._operations.register(username, optional))

    def enrolment(self, username: str, *, approval: str | None = None) -> Enrolment:
        """Another code, for a further phone or after the first has expired (ten minutes).

        Raises ApprovalRequired once the user has a factor: show its number, wait for its challenge,
        and call again with it as `approval`.
        """
        return self._run(self._operations.enrolment(username, approval))

    def confirm(self, username: str) -> list[str]:
        """Pins the phones that have read a code of this website, and returns their new ids.

        It is empty until a phone has read the code. Raises BindingError if the relay reports a key
        that no phone proved. `wait` calls it too, for a phone that was bound since.
        """
        return self._run(self._operations.confirm(username))

    # MARK: Logins

    def ask(
        self,
        username: str,
        *,
        ip: str | None = None,
        user_agent: str | None = None,
        service: str | None = None,
        action: str | None = None,
        details: list[dict[str, str]] | None = None,
        number: str | None = None,
        factors: list[str] | None = None,
        min_assurance: Assurance | None = None,
        known: bool = False,
        expires_in: int | None = None,
        accept_language: str | None = None,
        chosen_language: str | None = None,
    ) -> Login:
        """Opens a login, after the right password. Keep the result in the visitor's session.

        `ip`, `user_agent` and `accept_language` may stand as the browser sent them: they are cleaned
        or left out. `details` are pairs of label and value, which the phone shows and signs. Without
        a `number`, the client chooses one of `least_digits` digits.
        """
        return self._run(
            self._operations.ask(
                username,
                ip=ip,
                user_agent=user_agent,
                service=service,
                action=action,
                details=details,
                number=number,
                factors=factors,
                min_assurance=min_assurance,
                known=known,
                expires_in=expires_in,
                headers=languages(accept_language, chosen_language),
            )
        )

    def wait(self, login: Login, *, within: float | None = None) -> Decision:
        """Waits for the decision and checks it. Let the user in only if it is approved.

        `within` is the time to wait in seconds, 0 for none; then the decision may be `open`. An
        approval is returned once: a second call for the same login raises ReceiptError.
        """
        return self._run(self._operations.wait(login, within))

    def state(self, login: Login, *, hold: int = 0) -> Object:
        """The relay's own answer, unchecked: for a page that shows how things stand. It lets nobody in."""
        return self._run(self._operations.state(login, hold))

    def enter(self, login: Login, code: str) -> Decision:
        """Submits a code that the visitor typed. After a wrong one the decision is `open`.

        Raises ReceiptError unless the client accepts codes (`accept_codes`).
        """
        return self._run(self._operations.enter(login, code))

    def begin(self, login: Login, factor: str) -> None:
        """Begins a factor now, or sends its code again."""
        self._run(self._operations.begin(login, factor))

    def cancel(self, login: Login) -> None:
        """Cancels a login, for example because the visitor left."""
        self._run(self._operations.cancel(login))

    def check(self, login: Login, answer: Mapping[str, Any]) -> Decision:
        """Checks an answer that came another way: the data of the webhook `login.decided`."""
        return self._run(self._operations.check(login, dict(answer)))

    # MARK: Users

    def is_enrolled(self, username: str) -> bool:
        """Whether a phone of the user was ever pinned, by the website's own store.

        Decide by this whether a user needs the second factor. The relay is not asked: neither a 404
        nor the unbinding of a phone makes this false, only `forget` and `reset` do.

        With `accept_codes` or `allow_unpinned` it is not enough: it is also false for a user who has
        only codes, or a phone that was never pinned. Keep a mark of your own for such users.
        """
        return self.store.was_pinned(username)

    def factors(self, username: str) -> list[Factor]:
        """The user's factors, as the relay says. Raises NotFound for an unknown user."""
        return self._run(self._operations.factors(username))

    def user(self, username: str) -> Object:
        """The whole answer of GET /user/{username}."""
        return self._run(self._operations.user(username))

    def unbind(self, username: str, device: str) -> None:
        """Unpins and unbinds a phone, for example a lost one. The user stays enrolled."""
        self._run(self._operations.unbind(username, device))

    def forget(self, username: str) -> None:
        """Deletes the user, at the relay and in the store."""
        self._run(self._operations.forget(username))

    def reset(self, username: str) -> None:
        """Forgets in the store that the user ever had a phone, so that the password alone suffices to
        bind a first one. For a help desk that has identified the user."""
        self._run(self._operations.reset(username))

    def call(self, method: str, path: str, body: Object | None = None) -> Object:
        """Calls any other route of api.md, with the same retries and errors."""
        return self._run(self._operations.call(method, path, body))

    def close(self) -> None:
        if self._http is not None:
            self._http.close()
            self._http = None

    def __enter__(self) -> "Relay":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # MARK: The world

    def _run(self, operation: Operation[T]) -> T:
        try:
            step = next(operation)
            while True:
                step = operation.send(self._do(step))
        except StopIteration as end:
            result: T = end.value
            return result

    def _do(self, step: Step) -> Any:
        match step:
            case Call():
                return self._send(step)
            case Use():
                return step.work()
            case Pause():
                return time.sleep(step.seconds)

    def _send(self, call: Call) -> Answer | Unreachable:
        reading = wire.Reading(call)
        options: Any = wire.arguments(call)
        try:
            with self._client().stream(call.method, call.path, **options) as response:
                reading.add_all(response.iter_raw())
                return reading.answer(response)
        except httpx.TransportError as error:
            return Unreachable(f"the relay gave no answer: {error!r}")
        except Unreachable as error:
            return error

    def _client(self) -> httpx.Client:
        # A server that forks after the first call must not share its connections with its children.
        if self._http is None or self._process != os.getpid():
            options: Any = self._options
            self._http, self._process = httpx.Client(**options), os.getpid()
        return self._http
