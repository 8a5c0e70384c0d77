"""What a website requires of a login and its proof. The defaults are the strong form."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from .login import UserVerification
from .webphones import is_same_host, page_host

Phones = Literal["any", "native", "web"]


@dataclass(frozen=True)
class Policy:
    """The requirements of one website at one relay."""

    origin: str
    website: str
    display_name: str | None = None
    """The name that phones must show. None: the operator may rename the website."""
    least_user_verification: UserVerification = "none"
    longest_verification_age: int | None = None
    least_digits: int = 2
    """0 only if the policy of the website needs no number: a dishonest relay could leave it out."""
    allow_unpinned: bool = False
    """Trust the relay for users without a pinned phone."""
    accept_codes: bool = False
    """Trust the relay's word that a code was right. No phone signs it."""
    phones: Phones = "any"
    """The phones that may be pinned."""
    app_origin: str | None = None
    """The origin of the web app that the website chose. None: any but the relay's."""
    login_origins: Sequence[str] = ()
    """The website's own origins. A web phone reaches `high` only if its page has none of their hosts."""

    longest_age = 600
    """No challenge lives longer, so a later approval was held back."""

    def __post_init__(self) -> None:
        if self.phones not in get_args(Phones):
            raise ValueError(f"phones={self.phones!r} is none of any, native and web")
        if self.app_origin is not None:
            page_host(self.app_origin)
            if self.is_of_relay(self.app_origin):
                raise ValueError("app_origin has the relay's host, where the relay could read k")
        for origin in self.login_origins:
            page_host(origin)

    def is_of_relay(self, app: str) -> bool:
        """Whether a page is of the relay's host, and so under its control."""
        return is_same_host(app, self.origin)

    def is_apart(self, app: str) -> bool:
        """Whether a page is known to be of another host than those where users type their passwords."""
        return bool(self.login_origins) and not any(is_same_host(app, own) for own in self.login_origins)

    @property
    def audience(self) -> str:
        return f"{self.origin}#{self.website}"
