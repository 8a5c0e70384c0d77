"""A store on Django's models, in the website's own database."""

from django.db import transaction

from ..jws import JWK, decode, encode
from ..stores import EVENT_LIFE, REQUEST_LIFE, key_of
from .models import Event, Phone, Request, Secret, User


class DjangoStore:
    def add_user(self, username: str, token: str) -> None:
        User.objects.update_or_create(name=key_of(username), defaults={"token": token})

    def token(self, username: str) -> str | None:
        return User.objects.filter(name=key_of(username)).values_list("token", flat=True).first()

    def add_secret(self, username: str, k: bytes) -> None:
        Secret.objects.create(name=key_of(username), k=encode(k))

    def secrets(self, username: str) -> list[bytes]:
        return [decode(k) for k in Secret.objects.filter(name=key_of(username)).values_list("k", flat=True)]

    @transaction.atomic
    def pin(self, username: str, device: str, jwk: JWK, k: bytes) -> None:
        Phone.objects.get_or_create(name=key_of(username), device=device, defaults={"jwk": jwk})
        Secret.objects.filter(name=key_of(username), k=encode(k)).delete()

    def pins(self, username: str) -> dict[str, JWK]:
        phones = Phone.objects.filter(name=key_of(username), revoked=False)
        return dict(phones.values_list("device", "jwk"))

    def was_pinned(self, username: str) -> bool:
        return Phone.objects.filter(name=key_of(username)).exists()

    def unpin(self, username: str, device: str) -> None:
        Phone.objects.filter(name=key_of(username), device=device).update(revoked=True)

    def unpin_by_token(self, token: str, device: str) -> None:
        names = User.objects.filter(token=token).values("name")
        Phone.objects.filter(name__in=names, device=device).update(revoked=True)

    @transaction.atomic
    def forget(self, username: str) -> None:
        User.objects.filter(name=key_of(username)).delete()
        Secret.objects.filter(name=key_of(username)).delete()
        Phone.objects.filter(name=key_of(username)).delete()

    def open(self, request: str, now: int) -> None:
        Request.objects.filter(at__lt=now - REQUEST_LIFE).delete()
        Request.objects.create(request=request, at=now)

    def spend(self, request: str) -> bool:
        return Request.objects.filter(request=request).delete()[0] == 1

    def has_seen(self, event: str) -> bool:
        return Event.objects.filter(event=event).exists()

    def see(self, event: str, now: int) -> None:
        Event.objects.filter(at__lt=now - EVENT_LIFE).delete()
        Event.objects.get_or_create(event=event, defaults={"at": now})
