"""A login from both sides: what the website asked, and how it ended."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from .jsontext import Object

UserVerification = Literal["none", "passcode", "biometric"]
Assurance = Literal["low", "restricted", "substantial", "high"]


@dataclass(frozen=True)
class Login:
    """The website's own record of one login. Keep it in the visitor's session until the login ends.

    `check` compares the receipt with it. Only `challenge` comes from the relay, and `number` if the
    website needs none (`least_digits=0`) and so chose none.
    """

    challenge: str
    number: str | None
    """Show it to the visitor, who enters it on the phone. None if no phone can answer."""
    asked_at: int
    sent: Object
    factors: list[str] | None = None
    min_assurance: Assurance | None = None
    factor: str | None = None
    has_phone: bool = True
    codes_locked: bool = False
    missing: list[str] = field(default_factory=list)

    @property
    def username(self) -> str:
        return str(self.sent["username"])

    @property
    def request(self) -> str:
        return str(self.sent["request"])

    def to_json(self) -> Object:
        """An object of JSON, for a session."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Login":
        return cls(**value)


@dataclass(frozen=True)
class Decision:
    """How a login stands. It is true only if it was approved, and the proof was checked."""

    state: Literal["approved", "denied", "open"]
    reason: str | None = None
    """Why it was denied: `denied`, `fraud`, `expired`, … After a wrong code it is None."""
    factor: str | None = None
    proof: str | None = None
    assurance: str | None = None
    device: str | None = None
    user_verification: UserVerification | None = None
    """The phone's own word, from the checked receipt; that of a web phone counts only with a right
    assertion, and as `passcode` at most."""
    answer: Object = field(default_factory=dict, repr=False, compare=False)

    @property
    def approved(self) -> bool:
        return self.state == "approved"

    @property
    def ended(self) -> bool:
        return self.state != "open"

    # Without this, `if relay.wait(login):` would let in whoever was denied.
    def __bool__(self) -> bool:
        return self.approved
