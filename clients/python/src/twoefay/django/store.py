"""A store on Django's models, in the website's own database."""

from typing import Any

from django.db import IntegrityError, router, transaction
from django.db.models import F, QuerySet

from ..jws import JWK, decode, encode
from ..stores import EVENT_LIFE, REQUEST_LIFE, SECRET_LIFE, key_of
from .models import Event, Phone, Request, Secret, User


def _transaction() -> transaction.Atomic:
    """In the database to which the website's router sends these tables."""
    return transaction.atomic(using=router.db_for_write(User))


def _delete(rows: "QuerySet[Any, Any]") -> None:
    """Row by row, by the primary key. MySQL may look through a small table as a whole for anything
    else, and would lock the rows of other users: two of these would wait for each other."""
    for key in rows.order_by("pk").values_list("pk", flat=True):
        rows.model._default_manager.filter(pk=key).delete()


def _unpin(name: str, device: str) -> None:
    with _transaction():
        User.objects.filter(name=name).update(token=F("token"))  # the lock of `pin`
        phones = Phone.objects.filter(name=name, device=device)
        if not phones.filter(revoked=True).exists():
            _delete(Secret.objects.filter(name=name))
        phones.update(revoked=True)


class DjangoStore:
    def add_user(self, username: str, token: str) -> None:
        # Not `update_or_create`: on MySQL, two of them for new users would wait for each other.
        try:
            with _transaction():
                User.objects.create(name=key_of(username), token=token)
        except IntegrityError:
            User.objects.filter(name=key_of(username)).update(token=token)

    def token(self, username: str) -> str | None:
        return User.objects.filter(name=key_of(username)).values_list("token", flat=True).first()

    def add_secret(self, username: str, k: bytes, now: int) -> None:
        _delete(Secret.objects.filter(at__lt=now - SECRET_LIFE))
        Secret.objects.create(name=key_of(username), k=encode(k), at=now)

    def secrets(self, username: str, now: int) -> list[bytes]:
        found = Secret.objects.filter(name=key_of(username), at__gt=now - SECRET_LIFE)
        return [decode(k) for k in found.values_list("k", flat=True)]

    def pin(self, username: str, device: str, jwk: JWK, k: bytes) -> bool:
        secrets = Secret.objects.filter(name=key_of(username))
        try:
            with _transaction():
                # Locks the user: of two that run at once, the second waits here, and finds no `k`.
                User.objects.filter(name=key_of(username)).update(token=F("token"))
                if secrets.filter(k=encode(k)).delete()[0] != 1:
                    return False
                _delete(secrets)
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
        _unpin(key_of(username), device)

    def unpin_by_token(self, token: str, device: str) -> None:
        for name in list(User.objects.filter(token=token).values_list("name", flat=True)):
            _unpin(name, device)

    def forget(self, username: str) -> None:
        with _transaction():
            # SQLite refuses to write in a transaction that has read, if another one wrote since; and
            # `delete` reads first if the site has a receiver of its signals.
            User.objects.filter(name=key_of(username)).update(token=F("token"))
            User.objects.filter(name=key_of(username)).delete()
            for table in (Secret, Phone):
                _delete(table.objects.filter(name=key_of(username)))

    def open(self, request: str, now: int) -> None:
        _delete(Request.objects.filter(at__lt=now - REQUEST_LIFE))
        Request.objects.create(request=request, at=now)

    def spend(self, request: str) -> bool:
        return Request.objects.filter(request=request).delete()[0] == 1

    def has_seen(self, event: str) -> bool:
        return Event.objects.filter(event=event).exists()

    def see(self, event: str, now: int) -> None:
        _delete(Event.objects.filter(at__lt=now - EVENT_LIFE))
        Event.objects.get_or_create(event=event, defaults={"at": now})
