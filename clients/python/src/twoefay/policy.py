"""What a website requires of a login and its proof. The defaults are the strong form."""

from dataclasses import dataclass

from .login import UserVerification


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

    longest_age = 600
    """No challenge lives longer, so a later approval was held back."""

    @property
    def audience(self) -> str:
        return f"{self.origin}#{self.website}"
