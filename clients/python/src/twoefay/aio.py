"""The asynchronous client: `Relay` with `async`, on httpx.AsyncClient."""

from collections.abc import Mapping
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import httpx

from . import wire
from .answers import Answer
from .enrolment import Enrolment
from .errors import Unreachable
from .jsontext import Object
from .login import Assurance, Decision, Login
from .operations import Factor
from .relay import BaseRelay, languages
from .steps import Call, Operation, Pause, Step, Use

T = TypeVar("T")


class AsyncRelay(BaseRelay):
    """The relay, for one website. Make one for each event loop. `Relay` documents the methods."""

    _http: httpx.AsyncClient | None = None

    # MARK: Enrolment

    async def register(
        self,
        username: str,
        *,
        email: str | None = None,
        phone: str | None = None,
        display_name: str | None = None,
        language: str | None = None,
        expires_at: str | None = None,
    ) -> Enrolment:
        optional = {
            "email": email,
            "phone": phone,
            "display_name": display_name,
            "language": language,
            "expires_at": expires_at,
        }
        return await self._run(self._operations.register(username, optional))

    async def enrolment(self, username: str, *, approval: str | None = None) -> Enrolment:
        return await self._run(self._operations.enrolment(username, approval))

    async def confirm(self, username: str) -> list[str]:
        return await self._run(self._operations.confirm(username))

    # MARK: Logins

    async def ask(
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
        return await self._run(
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

    async def wait(self, login: Login, *, within: float | None = None) -> Decision:
        return await self._run(self._operations.wait(login, within))

    async def state(self, login: Login, *, hold: int = 0) -> Object:
        return await self._run(self._operations.state(login, hold))

    async def enter(self, login: Login, code: str) -> Decision:
        return await self._run(self._operations.enter(login, code))

    async def begin(self, login: Login, factor: str) -> None:
        await self._run(self._operations.begin(login, factor))

    async def cancel(self, login: Login) -> None:
        await self._run(self._operations.cancel(login))

    async def check(self, login: Login, answer: Mapping[str, Any]) -> Decision:
        return await self._run(self._operations.check(login, dict(answer)))

    # MARK: Users

    async def is_enrolled(self, username: str) -> bool:
        return await anyio.to_thread.run_sync(self.store.was_pinned, username)

    async def factors(self, username: str) -> list[Factor]:
        return await self._run(self._operations.factors(username))

    async def user(self, username: str) -> Object:
        return await self._run(self._operations.user(username))

    async def unbind(self, username: str, device: str) -> None:
        await self._run(self._operations.unbind(username, device))

    async def forget(self, username: str) -> None:
        await self._run(self._operations.forget(username))

    async def reset(self, username: str) -> None:
        await self._run(self._operations.reset(username))

    async def call(self, method: str, path: str, body: Object | None = None) -> Object:
        return await self._run(self._operations.call(method, path, body))

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def __aenter__(self) -> "AsyncRelay":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # MARK: The world

    async def _run(self, operation: Operation[T]) -> T:
        try:
            step = next(operation)
            while True:
                step = operation.send(await self._do(step))
        except StopIteration as end:
            result: T = end.value
            return result

    async def _do(self, step: Step) -> Any:
        match step:
            case Call():
                return await self._send(step)
            case Use():
                return await anyio.to_thread.run_sync(step.work)
            case Pause():
                return await anyio.sleep(step.seconds)

    async def _send(self, call: Call) -> Answer | Unreachable:
        reading = wire.Reading(call)
        options: Any = wire.arguments(call)
        try:
            async with self._client().stream(call.method, call.path, **options) as response:
                async for part in response.aiter_raw():
                    reading.add(part)
                return reading.answer(response)
        except httpx.TransportError as error:
            return Unreachable(f"the relay gave no answer: {error!r}")
        except Unreachable as error:
            return error

    def _client(self) -> httpx.AsyncClient:
        if self._http is None:
            options: Any = self._options
            self._http = httpx.AsyncClient(**options)
        return self._http
