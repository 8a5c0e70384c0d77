"""A store on Django's models, in the website's own database."""

from django.db import IntegrityError, transaction

from ..jws import JWK, decode, encode
from ..stores import EVENT_LIFE, REQUEST_LIFE, SECRET_LIFE, key_of
from .models import Event, Phone, Request, Secret, User


class DjangoStore:
    def add_user(self, username: str, token: str) -> None:
        User.objects.update_or_create(name=key_of(username), defaults={"token": token})

    def token(self, username: str) -> str | None:
        return User.objects.filter(name=key_of(username)).values_list("token", flat=True).first()

    def add_secret(self, username: str, k: bytes, now: int) -> None:
        Secret.objects.filter(at__lt=now - SECRET_LIFE).delete()
        Secret.objects.create(name=key_of(username), k=encode(k), at=now)

    def secrets(self, username: str, now: int) -> list[bytes]:
        found = Secret.objects.filter(name=key_of(username), at__gt=now - SECRET_LIFE)
        return [decode(k) for k in found.values_list("k", flat=True)]

    def pin(self, username: str, device: str, jwk: JWK, k: bytes) -> bool:
        secrets = Secret.objects.filter(name=key_of(username))
        try:
            with transaction.atomic():
                # First: of two that run at once, the second waits here, and then finds no row.
                if secrets.filter(k=encode(k)).delete()[0] != 1:
                    return False
                secrets.delete()
                Phone.objects.create(name=key_of(username), device=device, jwk=jwk)
        except IntegrityError:
            return False
        return True

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
