"""The tables of the store. Names of users are hashed, since collations compare texts loosely."""

from django.db import models


class User(models.Model):
    name = models.CharField(max_length=64, primary_key=True)
    token = models.CharField(max_length=255)


class Secret(models.Model):
    k = models.CharField(max_length=64, primary_key=True)
    name = models.CharField(max_length=64, db_index=True)
    at = models.BigIntegerField(db_index=True)


class Phone(models.Model):
    name = models.CharField(max_length=64)
    device = models.CharField(max_length=255, db_index=True)
    jwk = models.JSONField()
    revoked = models.BooleanField(default=False)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["name", "device"], name="twoefay_phone_once"),)


class Request(models.Model):
    request = models.CharField(max_length=64, primary_key=True)
    at = models.BigIntegerField(db_index=True)


class Event(models.Model):
    event = models.CharField(max_length=255, primary_key=True)
    at = models.BigIntegerField(db_index=True)
