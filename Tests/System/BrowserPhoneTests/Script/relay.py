"""A relay for the tests: the routes of phones as docs/phones/device-protocol.md specifies them, with every proof verified.

A test opens challenges and notices, and reads `decisions`. `Refusal` is an answer with problem+json.
"""

import datetime
import hashlib
import json
import re
import secrets
import threading
import time

from account import Accounts
from statements import Signer, check_assertion, check_web_claims, decode, encode, is_signed, read, read_binding, seal, thumbprint


class Refusal(Exception):
    def __init__(self, status, code, **more):
        super().__init__(code)
        self.status, self.code, self.more = status, code, more


def stamp(seconds):
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Relay(Accounts):
    refusal, stamp = Refusal, staticmethod(stamp)

    def __init__(self, identity, at, website="shop", display_name="The Shop"):
        super().__init__()
        self.identity, self.at, self.website, self.display_name = identity, at, website, display_name
        self.aud = f"{identity}#{website}"
        self.signer = Signer()
        self.activations, self.devices, self.challenges = {}, {}, {}
        self.messages, self.recoveries, self.decisions, self.reports = {}, [], [], []
        self.changed = threading.Condition()
        self.nonce, self.used = "n1", set()
        # The clock of the relay, ahead of that of this machine.
        self.ahead = 0
        self.policy = {"wait": None, "codes": True, "needs_uv": False, "down": False, "account": True, "assertions": True}
        self.unlock = None
        self.application_server_key = encode(b"\x04" + secrets.token_bytes(64))

    def now(self):
        return time.time() + self.ahead

    # What the website does

    def activate(self, username="alice", k=None, **more):
        code = secrets.token_urlsafe(15)
        self.activations[code] = {"username": username, "k": k, "token": secrets.token_hex(16), "device": None}
        values = {"relay": self.identity, "website": self.website, "token": self.activations[code]["token"], "code": code,
                  "pin": encode(b"\1" * 32), "at": self.at, **more}
        if k:
            values["k"] = encode(k)
        return values

    def ask(self, username="alice", number="47", life=300, demands=None, asks_place=False, **context):
        challenge = secrets.token_hex(16)
        now = self.now()
        members = {
            "v": 1, "website": self.website, "display_name": self.display_name, "username": username, **context,
            "number_digits": len(number), "created_at": stamp(now), "expires_at": stamp(now + life),
        }
        text = json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode()
        with self.changed:
            self.challenges[challenge] = {
                "challenge": challenge, "created": now, "username": username, "number": number, "context": text, "nonce": secrets.token_urlsafe(12), "demands": demands, "asks_place": asks_place,
                "expires": now + life, "login": None,
            }
            self.changed.notify_all()
        return challenge

    def end(self, challenge):
        with self.changed:
            self.challenges[challenge].update(login="failure", reason="cancelled", ended=self.now())
            self.changed.notify_all()

    def decided(self, challenge, patience=60):
        with self.changed:
            self.changed.wait_for(lambda: any(one["challenge"] == challenge for one in self.decisions), patience)
        return next(one for one in self.decisions if one["challenge"] == challenge)

    def leave_message(self, username, title, text):
        name = secrets.token_hex(16)
        self.messages[name] = {"username": username, "title": title, "text": text, "read": None, "at": self.now()}
        return name

    # What a phone sends

    def answer(self, method, path, fields, body):
        """Returns (status, object, fields), whatever the request is."""
        if self.policy["down"]:
            return 503, {"code": "unavailable"}, {"Retry-After": "1"}
        try:
            return self.route(method, path, fields, body)
        except Refusal as refusal:
            more = {"DPoP-Nonce": self.nonce} if refusal.status == 401 else {}
            if refusal.code == "use_dpop_nonce":
                more["WWW-Authenticate"] = 'DPoP error="use_dpop_nonce"'
            return refusal.status, {"code": refusal.code, "status": refusal.status, "title": refusal.code, **refusal.more}, more

    def route(self, method, path, fields, body):
        open_routes = {
            ("POST", "/verify"): lambda: self.verify(body), ("GET", "/time"): lambda: self.time(fields),
            ("GET", "/push"): lambda: {"web": {"application_server_key": self.application_server_key}},
            ("POST", "/device/goodbye"): lambda: self.goodbye(body), ("POST", "/account"): lambda: self.account(self.linked(body)),
        }
        silent_routes = {("POST", "/account/report"): self.report_by_link, ("POST", "/revoke"): self.revoke}
        if (method, path) in silent_routes:
            assert "dpop" not in fields, "a request of anyone names a phone"
            silent_routes[method, path](body)
            return 204, None, {}
        if (method, path) in open_routes:
            return 200, open_routes[method, path](), {}
        device = self.authenticate(method, path, fields)
        routes = {
            ("POST", "/pending"): lambda: self.pending(device, fields, body),
            ("GET", "/account"): lambda: self.account(device["username"], device),
            ("POST", "/success"): lambda: self.decide(device, body, True), ("POST", "/failure"): lambda: self.decide(device, body, False),
            ("POST", "/device"): lambda: self.change(device, body), ("POST", "/device/status"): lambda: self.status(device, body),
            ("POST", "/device/totp"): lambda: self.codes(device, body), ("GET", "/device/pin"): lambda: self.pin_state(device),
            ("POST", "/device/pin"): lambda: self.change_pin(device, body), ("GET", "/messages"): lambda: self.list(device, False),
            ("GET", "/messages/archive"): lambda: self.list(device, True), ("GET", "/recovery"): lambda: {"recoveries": self.recoveries},
        }
        if (method, path) in routes:
            found = routes[method, path]()
        elif method == "GET" and path.startswith("/messages/"):
            found = self.message(device, path.rsplit("/", 1)[1])
        elif method == "DELETE" and path.startswith("/recovery/"):
            self.recoveries = [one for one in self.recoveries if one["recovery"] != path.rsplit("/", 1)[1]]
            return 204, None, {}
        else:
            raise Refusal(404, "route_not_found")
        unread = sum(1 for one in self.messages.values() if one["username"] == device["username"] and not one["read"])
        return 200, found, {"X-MessageCount": str(unread)} if unread else {}

    def authenticate(self, method, path, fields):
        try:
            head, claims = read(fields["dpop"], "dpop+jwt")
        except (KeyError, ValueError):
            raise Refusal(401, "unauthenticated") from None
        if claims.get("nonce") != self.nonce:
            raise Refusal(401, "use_dpop_nonce")
        assert claims["htm"] == method and claims["htu"] == self.at + path, claims
        assert claims["jti"] not in self.used, "the same proof twice"
        self.used.add(claims["jti"])
        device = next((one for one in self.devices.values() if one["thumbprint"] == thumbprint(head["jwk"])), None)
        if device is None or device["state"] != "active" or abs(claims["iat"] - self.now()) > 86400:
            raise Refusal(401, "unauthenticated")
        return device

    def verify(self, body):
        assert set(body) <= {"id_token", "dev_token", "activation_code", "proof", "binding", "name", "platform"}, body
        activation = self.activations.get(body["activation_code"])
        head, claims = read(body["proof"], "twoefay-enrol+jwt")
        if activation is None or (activation["device"] and self.devices[activation["device"]]["jwk"] != head["jwk"]):
            raise Refusal(401, "unauthenticated")
        assert claims["aud"] == self.aud and claims["id_token"] == activation["token"] and body["platform"] == "web"
        assert claims["activation_code"] == body["activation_code"], claims
        passkey = check_web_claims(claims)
        if activation["k"]:
            binding = read_binding(body["binding"], activation["k"])
            assert binding["jwk"] == head["jwk"] and binding["agreement"] == claims["agreement"]
            assert binding["app"] == claims["app"] and binding.get("webauthn") == claims.get("webauthn")
        else:
            assert "binding" not in body
        if not activation["device"]:
            name = secrets.token_hex(16)
            activation["device"] = name
            self.devices[name] = {
                "device": name, "username": activation["username"], "jwk": head["jwk"], "thumbprint": thumbprint(head["jwk"]),
                "agreement": claims["agreement"], "passkey": passkey, "name": body.get("name"), "app": claims["app"],
                "token": activation["token"], "dev_token": body.get("dev_token", ""), "state": "active", "created": self.now(),
                "pin": {"state": "none", "version": 0, "tries_left": 3, "puk_tries_left": 5}, "keys": {}, "revocation": secrets.token_urlsafe(15),
            }
        device = self.devices[activation["device"]]
        if self.policy["wait"]:
            device["state"] = "waiting"
            return {"login": "wait", "device": device["device"], "number": self.policy["wait"]}
        device["state"] = "active"
        return {"login": "verified", "device": device["device"], "revocation_code": device["revocation"]}

    def open(self, device):
        return {name: one for name, one in self.challenges.items()
                if one["username"] == device["username"] and one["login"] is None and one["expires"] > self.now()}

    def pending(self, device, fields, body):
        known = set(body.get("known", []))
        wait = fields.get("prefer", "").removeprefix("wait=")
        if wait:
            with self.changed:
                self.changed.wait_for(lambda: set(self.open(device)) != known or device["state"] != "active", min(int(wait), 10))
        if device["state"] != "active":
            raise Refusal(401, "unauthenticated")
        entries = []
        for name, one in self.open(device).items():
            entry = {"challenge": name, "nonce": one["nonce"], "context": encode(one["context"]), "expires_at": stamp(one["expires"])}
            asked = {name: one[name] for name in ("demands", "asks_place") if one[name]}
            entries.append({**entry, **asked})
        return {"pending": entries, "time": stamp(self.now())}

    def decide(self, device, body, approves):
        assert set(body) <= {"challenge", "answer", "webauthn", "pin_signature"}, body
        if "webauthn" in body and not self.policy["assertions"]:
            raise Refusal(400, "invalid", errors=[{"parameter": "webauthn", "code": "unknown", "message": "is unknown"}])
        one = self.challenges.get(body["challenge"])
        if one is None:
            raise Refusal(404, "not_found")
        _, claims = read(body["answer"], "twoefay-decision+jwt", device["jwk"])
        assert claims["aud"] == self.aud and claims["challenge"] == body["challenge"] and claims["nonce"] == one["nonce"]
        assert claims["context"] == encode(hashlib.sha256(one["context"]).digest()), "it is about another context"
        assert (claims["decision"] == "approve") == approves and ("number" in claims) == (approves and bool(one["number"]))
        if "place" in claims:
            assert one["asks_place"] and re.fullmatch(r"-?[0-9]{1,2}\.[0-9],-?[0-9]{1,3}\.[0-9]", claims["place"]), claims
        if claims["uv"] == "none":
            assert "webauthn" not in body
        else:
            assert claims["uv"] == "passcode"
            check_assertion(body["webauthn"], device["app"], device["passkey"], body["answer"])
        if one["login"]:
            if claims["decision"] == "fraud":
                self.report_by_phone(device, one)
            raise Refusal(409, "already_decided", login=one["login"])
        if approves and self.policy["needs_uv"] and claims["uv"] == "none":
            raise Refusal(403, "forbidden", detail="The website requires user verification by passcode")
        if approves and (one["demands"] or {}).get("pin") == "sign":
            self.check_pin(device, "pin", body["answer"], body.get("pin_signature"))
        with self.changed:
            one["login"] = "success" if approves and claims.get("number", "") == one["number"] else "failure"
            reason = "wrong_number" if approves else "denied" if claims["decision"] == "deny" else "fraud"
            one.update(ended=self.now(), factor="push", device=device["device"], reason=None if one["login"] == "success" else reason)
            self.decisions.append({"device": device["device"], **claims})
            self.changed.notify_all()
        return {"login": one["login"]}

    def check_pin(self, device, name, jws, signature):
        if name not in device["keys"] or not signature:
            raise Refusal(403, "pin_required")
        tries = f"{name}_tries_left" if name == "puk" else "tries_left"
        if device["pin"][tries] == 0:
            raise Refusal(403, f"{name}_locked")
        if not is_signed(device["keys"][name], jws.rsplit(".", 1)[0], signature):
            device["pin"][tries] -= 1
            if device["pin"]["tries_left"] == 0:
                device["pin"]["state"] = "locked"
            raise Refusal(403, f"{name}_wrong", tries_left=device["pin"][tries])

    def pin_state(self, device):
        return {"device": device["device"], "pin": device["pin"]}

    def change_pin(self, device, body):
        _, claims = read(body["pin"], "twoefay-pin+jwt", device["jwk"])
        if claims["version"] != device["pin"]["version"] + 1:
            raise Refusal(409, "conflict")
        if claims["change"] == "change":
            self.check_pin(device, "pin", body["pin"], body.get("pin_signature"))
        elif claims["change"] == "reset":
            self.check_pin(device, "puk", body["pin"], body.get("puk_signature"))
        elif claims["change"] == "unlock":
            assert "pin_signature" not in body and "puk_signature" not in body and "puk" in claims, body
            self.check_unlock(claims["unlock_code"])
        device["keys"].update({name: claims[name] for name in ("pin", "puk") if name in claims})
        device["pin"].update(state="set", version=claims["version"], tries_left=3, puk_tries_left=5)
        return self.pin_state(device)

    def check_unlock(self, code):
        """Takes the code of the help desk once: `unlock` has it and its tries, or is None."""
        assert len(code) == 8 and code.isdigit(), code
        if not self.unlock or self.unlock["tries"] == 0:
            raise Refusal(403, "unlock_void")
        if code != self.unlock["code"]:
            self.unlock["tries"] -= 1
            raise Refusal(403, "unlock_wrong", tries_left=self.unlock["tries"])
        self.unlock = None

    def change(self, device, body):
        if "name" in body:
            device["name"] = body["name"]
        if "dev_token" in body:
            device["dev_token"] = read(body["dev_token"], "twoefay-token+jwt", device["jwk"])[1]["dev_token"]
        return {"device": device["device"]}

    def status(self, device, body):
        _, claims = read(body["status"], "twoefay-status+jwt", device["jwk"])
        assert abs(claims["iat"] - self.now()) < 300, "the clock of the report is wrong"
        self.reports.append(claims)
        return {"device": device["device"], "report": {"reported_at": stamp(claims["iat"]), "received_at": stamp(self.now())}}

    def codes(self, device, body):
        _, claims = read(body["request"], "twoefay-secret+jwt", device["jwk"])
        assert claims["agreement"] == device["agreement"] and abs(claims["iat"] - self.now()) < 300
        if not self.policy["codes"]:
            raise Refusal(403, "forbidden")
        content = {"v": 1, "secret": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", "algorithm": "sha1", "digits": 6, "period": 30}
        return {"factor": "f1", "secret": seal(device["agreement"], self.aud, device["device"], "f1", content)}

    def time(self, fields):
        claims = {"aud": self.identity, "nonce": fields["nonce"], "time": stamp(self.now())}
        return {"time": self.signer.sign("twoefay-time+jwt", claims)}

    def goodbye(self, body):
        kid = json.loads(decode(body["goodbye"].split(".")[0]))["kid"]
        device = self.devices[kid]
        _, claims = read(body["goodbye"], "twoefay-goodbye+jwt", device["jwk"])
        assert set(claims) == {"v", "aud", "nonce", "leaves", "iat"} and claims["aud"] == self.aud
        if device["state"] == "suspended":
            raise Refusal(401, "unauthenticated")
        if claims["leaves"]:
            device.update(state="unbound", by="phone")
        if device["state"] == "active":
            return {"device": kid, "bound": True}
        told = {"aud": self.aud, "device": kid, "thumbprint": device["thumbprint"], "nonce": claims["nonce"], "by": device["by"], "time": stamp(self.now())}
        return {"device": kid, "farewell": self.signer.sign("twoefay-farewell+jwt", told)}

    def list(self, device, is_old):
        found = [{"message": name, "from": "website", "title": one["title"], "created_at": stamp(one["at"])}
                 for name, one in self.messages.items() if one["username"] == device["username"] and bool(one["read"]) == is_old]
        return {"messages": found, "unread": 0, "archived": 0}

    def message(self, device, name):
        one = self.messages.get(name)
        if one is None:
            raise Refusal(404, "not_found")
        one["read"] = one["read"] or self.now()
        claims = {"aud": self.aud, "id_token": device["token"], "message": name, "from": "website", "title": one["title"],
                  "text": one["text"], "created_at": stamp(one["at"])}
        return {"statement": self.signer.sign("twoefay-message+jwt", claims)}
