"""The self-service of the relay for the tests: what a person sees of the own account, by a phone or by the link of a mail."""

import hashlib
import hmac
import json
import secrets

from statements import decode, encode


class Accounts:
    """The part of `Relay` for `/account` and `/revoke`. `factors` has the code factors of each user, as the answer shows them."""

    def __init__(self):
        self.factors, self.frozen, self.reported = {}, [], []
        self.link_key = secrets.token_bytes(32)

    def link(self, username, life=86400, key=None):
        """The text behind `#account=` in a mail."""
        token = next(one["token"] for one in self.activations.values() if one["username"] == username)
        now = int(self.now())
        head = encode(json.dumps({"alg": "HS256", "typ": "twoefay-account+jwt"}).encode())
        claims = {"v": 1, "aud": self.aud, "id_token": token, "iat": now, "exp": now + life, "jti": secrets.token_hex(8)}
        text = f"{head}.{encode(json.dumps(claims).encode())}"
        return f"{text}.{encode(hmac.new(key or self.link_key, text.encode(), hashlib.sha256).digest())}"

    def linked(self, body, *more):
        """The user of a link; a refusal if it does not count."""
        assert set(body) == {"link", *more}, body
        text, _, signature = body["link"].rpartition(".")
        claims = json.loads(decode(text.split(".")[1]))
        expected = encode(hmac.new(self.link_key, text.encode(), hashlib.sha256).digest())
        if signature != expected or claims["exp"] < self.now():
            raise self.refusal(401, "unauthenticated")
        return next(one["username"] for one in self.activations.values() if one["token"] == claims["id_token"])

    def can_report(self, one, by):
        # A phone answers an open login; a link reports it, too.
        return (one["login"] is not None or by == "link") and one.get("reason") != "fraud" and (by, one["challenge"]) not in self.reported

    def account(self, username, device=None):
        """The answer for a phone, or for a link if there is no phone."""
        if not self.policy["account"]:
            raise self.refusal(404, "route_not_found")
        devices = [
            {"device": one["device"], **({"name": one["name"]} if one["name"] else {}), "platform": "web",
             "state": one["state"], "created_at": self.stamp(one["created"]), "last_seen_at": self.stamp(self.now()),
             **({"this": True} if one is device else {})}
            for one in self.devices.values() if one["username"] == username and one["state"] in ("active", "suspended", "waiting")]
        mine = [one for one in self.challenges.values() if one["username"] == username]
        logins = [self.login(one, device) for one in sorted(mine, key=lambda one: -one["created"])][:50]
        return {"username": username, "website": self.website, "display_name": self.display_name, "devices": devices,
                "factors": self.factors.get(username, []), "logins": logins}

    def login(self, one, device):
        context = json.loads(one["context"])
        found = {"challenge": one["challenge"], "created_at": self.stamp(one["created"]), "login": one["login"] or "wait"}
        found |= {name: context[name] for name in ("service", "action", "ip", "place", "user_agent") if name in context}
        found |= {name: one[name] for name in ("reason", "factor", "device") if one.get(name)}
        if one.get("ended"):
            found["ended_at"] = self.stamp(one["ended"])
        if device and self.can_report(one, device["device"]):
            found["report"] = {"nonce": one["nonce"], "context": encode(one["context"])}
        if not device and self.can_report(one, "link"):
            found["can_report"] = True
        return found

    def report_by_phone(self, device, one):
        """A signed report about a login that has ended: the answer is 409, and the user is frozen."""
        if self.can_report(one, device["device"]):
            self.reported.append((device["device"], one["challenge"]))
            self.frozen.append(one["username"])

    def report_by_link(self, body):
        username = self.linked(body, "challenge")
        one = self.challenges.get(body["challenge"])
        if one is None or one["username"] != username:
            raise self.refusal(404, "not_found")
        if not self.can_report(one, "link"):
            raise self.refusal(409, "conflict")
        self.reported.append(("link", one["challenge"]))
        self.frozen.append(username)

    def revoke(self, body):
        code = body["revocation_code"]
        assert len(code) == 20, code
        for device in self.devices.values():
            if device["revocation"] == code:
                device.update(state="unbound", by="code")
