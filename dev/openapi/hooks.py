"""What dev/try-openapi adds to Schemathesis, so that its requests reach the verbs of the relay.

- Each request comes from its caller: a website, a phone, or a client without a certificate (the tags of the document).
- An Idempotency-Key is used once, as the document says. Otherwise the answer is that of another request, or 422.
- Most valid requests concern a user, phone or challenge that exists: see `arrange`. A signed statement is signed, because
  no schema can describe one, and generated letters are refused as such.
- A character that Unicode has not assigned, and one that is invisible beyond U+FFFF, becomes another one in valid texts:
  the relay refuses them, and a portable pattern cannot (`FieldPattern` in Sources/Product/API).

- Undeclared header fields are generated, too. Two of them have a meaning for the relay, and are left out. So are those with
  which the client frames its message.

A valid request may be refused with 400 only for the faults in POLICIES. 413 counts as a refusal of a wrong one.
"""
import base64
import hmac
import itertools
import json
import os
import re
import time
import unicodedata
import urllib.parse

import schemathesis
from urllib3.util import SKIP_HEADER
from schemathesis.core.parameters import ParameterLocation

from mail_server import Mailbox
from phone import Gone, Phone, Website, certificate_request

# `operation parameter code` of faults that depend on the website's policy, or on what was lost, of which a schema says
# nothing. All others are failures.
POLICIES = {
    "login number length": "the policy number says how many digits it has",
    "login factors mismatch": "the policy factors allows some of them",
    "finishRecovery secret missing": "a hardware token was lost, and the next one has a secret",
    "login min_assurance mismatch": "none of the allowed factors has this assurance",
}
WEBSITE = Website(os.environ["TWOEFAY_ORIGIN"], os.environ["TWOEFAY_RELAY"], "shop")
MAILBOX = Mailbox(int(os.environ["TWOEFAY_MAIL"]))
CODE, LINK = re.compile(r"^\s*(\d{6})\s*$", re.MULTILINE), re.compile(r"#(?:recovery|cancel)=([\w-]+)")
ANSWERS = open(os.environ["TWOEFAY_ANSWERS"], "a", buffering=1)
KEYS, TURNS, RUN = itertools.count(), itertools.count(), os.urandom(4).hex()
# They stand in for members of a body, and must not contradict it.
STAND_INS = {"token", "username"}
FRAMING = {"connection", "content-length", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade"}
# Operations of others, about a phone or its user.
OF_PHONES = {"login", "cancelChallenge", "beginFactor", "showResult", "enterCode", "changeDevice"}
# A phone answers so many requests: some routes take ten in a minute.
REQUESTS_OF_A_PHONE = 8


class Phones:
    """The phones that send requests in turn. A spare one is for a request that unbinds it."""

    def __init__(self):
        self.present, self.left = None, 0

    def next(self):
        if self.left == 0:
            self.present, self.left = Phone(WEBSITE), REQUESTS_OF_A_PHONE
        self.left -= 1
        return self.present

    def renew(self):
        self.left = 0
        return self.next()

    def spare(self):
        return Phone(WEBSITE)


PHONES = Phones()


def shown(value):
    """The same JSON value with another letter for each character that no pattern excludes."""
    if isinstance(value, str):
        return "".join("x" if is_hidden(letter) else letter for letter in value)
    if isinstance(value, list):
        return [shown(item) for item in value]
    return {name: shown(item) for name, item in value.items()} if isinstance(value, dict) else value


def is_hidden(letter):
    return unicodedata.category(letter) == "Cn" or letter > "\uffff" and (
        unicodedata.category(letter) in ("Cf", "Co") or "\U000e0000" <= letter <= "\U000e0fff")


def arrange(name, case, phone):
    """Makes a valid request of this operation concern something that exists.

    Returns the phone that sends the request, for an operation of phones."""
    body = case.body if isinstance(case.body, dict) else {}
    if "username" in case.path_parameters and name not in ("changeDevice", "unbindDevice"):
        case.path_parameters["username"] = user(name)
    if name in ("changeDevice", "unbindDevice"):
        phone = PHONES.spare() if name == "unbindDevice" else phone
        case.path_parameters.update(username=phone.username, device=phone.device)
    elif name == "deleteMessage":
        username = case.path_parameters["username"]
        case.path_parameters["message"] = message(username)
    elif name == "confirmAddress":
        body["address"] = address(case.path_parameters["username"])
    elif name == "login":
        # Both name one user, who has a phone.
        body.update(username=phone.username, token=phone.token)
    elif name in ("cancelChallenge", "beginFactor"):
        case.path_parameters["challenge"] = opened(phone)
    elif name in ("showResult", "enterCode"):
        body.update(challenge=opened(phone), token=phone.token)
    elif name == "verifyOTP":
        body.pop("device", None)
        body["username"] = user("resyncHOTP")
    elif name == "openRecovery":
        body["token"] = recovery()
    elif name in ("showRecovery", "proveRecovery", "askPhones", "finishRecovery"):
        body["handle"] = WEBSITE.call("POST", "/recovery", {"token": recovery()})["handle"]
        if name == "finishRecovery":
            # What was lost is a hardware token, and the next one has a secret.
            body.setdefault("secret", "A" * 32)
    elif name == "verifySignature":
        case.body = PHONES.spare().document()
    elif name == "fetchMessage":
        case.path_parameters["message"] = message(phone.username)
    elif name == "openAccount":
        body["link"] = account_link(phone.token)
    elif name == "reportLogin":
        # It freezes the user.
        phone = PHONES.spare()
        body.update(link=account_link(phone.token), challenge=opened(phone))
    elif name == "revokeDevice":
        body["revocation_code"] = PHONES.spare().revocation_code
    elif name == "unbindOwnDevice":
        phone = PHONES.spare()
    return phone


def sign(name, body, phone):
    """Puts signed statements in place of generated letters, and returns the phone that sends them."""
    if name == "sayGoodbye":
        body.update(PHONES.spare().goodbye(leaves=True))
    elif name == "renewCertificate":
        body["csr"] = certificate_request(WEBSITE.key)
    elif name == "bindPhone":
        # The document has the members of both forms, and these are those of the form for phones. Too many wrong codes would
        # stop the address.
        body.pop("dev_token", None)
        body.update(Phone(WEBSITE, is_bound=False).enrolment())
    elif name == "changeOwnDevice":
        if "dev_token" in body:
            body["dev_token"] = phone.sign("token", dev_token="")
        if "csr" in body:
            body.update(certificate=True, csr=certificate_request(phone.key))
    elif name == "reportStatus":
        body["status"] = phone.sign("status", os="Android", battery=81)
    elif name == "fetchPhoneCodes":
        body["request"] = phone.secret_request()
    elif name == "certifyKey":
        body.update(phone.certification()[1])
    elif name == "changePIN":
        phone = PHONES.spare()
        if next(TURNS) % 2:
            phone.call("POST", "/device/pin", phone.pin())
        body.update(phone.pin())
    elif name in ("approve", "deny"):
        # `token` is of the form for websites, `number` of the form without a signature.
        for member in ("token", "number", "pin_signature", "assertion"):
            body.pop(member, None)
        body.update(phone.decision(name))
    return phone


def user(name):
    """A new user, with what an operation needs."""
    username, _ = WEBSITE.register()
    if name in ("confirmTOTP", "deleteTOTP"):
        WEBSITE.call("POST", f"/user/{username}/totp", {})
    elif name in ("resyncHOTP", "deleteHOTP"):
        WEBSITE.call("POST", f"/user/{username}/hotp", {"secret": "A" * 32})
    elif name in ("confirmRecoveryCodes", "unlockUser"):
        WEBSITE.call("POST", f"/user/{username}/recovery-codes", {})
    return username


def address(username):
    """A new address of a user, which waits for its code."""
    address = f"{os.urandom(8).hex()}@example.com"
    WEBSITE.call("PATCH", f"/user/{username}", {"email": address})
    return address


def recovery():
    """The token of a mailed link, for a user who has lost a hardware token."""
    username = user("resyncHOTP")
    mailed = address(username)
    WEBSITE.call("POST", f"/user/{username}/confirm", {"address": mailed, "otp": MAILBOX.find(mailed, CODE)})
    WEBSITE.call("POST", f"/user/{username}/recovery", {"factor": "hotp"})
    return MAILBOX.find(mailed, LINK)


def account_link(token):
    """A link to an account, as a mail of the relay has it: the key is derived from the last line of the master key."""
    with open(os.path.join(os.environ["TWOEFAY_RELAY"], "master.key")) as file:
        key = bytes.fromhex([line.strip() for line in file if not line.startswith("#")][-1])
    for label in (b"twoefay proofs", b"twoefay account links"):
        key = hmac.digest(key, label, "sha256")
    now = int(time.time())
    claims = {
        "v": 1, "aud": f"{os.environ['TWOEFAY_ORIGIN']}#shop", "id_token": token, "iat": now, "exp": now + 86400,
        "jti": os.urandom(16).hex()}
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "typ": "twoefay-account+jwt"}, claims)]
    text = ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)
    return f"{text}.{base64.urlsafe_b64encode(hmac.digest(key, text.encode(), 'sha256')).rstrip(b'=').decode()}"


def message(username):
    return WEBSITE.call("POST", f"/user/{username}/messages", {"title": "a", "text": "b"})["message"]


def opened(phone):
    return WEBSITE.call("POST", "/login", {"username": phone.username})["challenge"]


@schemathesis.hook
def before_call(context, case, kwargs):
    operation = context.operation.definition.raw
    name, tag = operation["operationId"], operation["tags"][0]
    is_valid = case.meta is None or case.meta.generation.mode.is_positive
    # A request can be wrong in its header alone.
    has_valid_body = is_valid or not case.meta.is_negative_at(ParameterLocation.BODY)
    phone = PHONES.next() if tag == "phones" or name in OF_PHONES else None
    if "Idempotency-Key" in case.headers and case.headers["Idempotency-Key"].isascii():
        case.headers["Idempotency-Key"] = f"{RUN}-{next(KEYS)}-{case.headers['Idempotency-Key']}"[:255]
    # A value that means something to the client itself, and that Hypothesis has found there.
    for field in [field for field, value in (case.headers or {}).items()
                  if field.lower() in STAND_INS | FRAMING or value == SKIP_HEADER]:
        del case.headers[field]
    if is_valid and case.method == context.operation.method.upper():
        for place, value in case.path_parameters.items():
            case.path_parameters[place] = shown(value)
        if next(TURNS) % 4:
            try:
                phone = arrange(name, case, phone)
            except Gone:
                # A request that names what an earlier answer had can have deleted the user.
                phone = arrange(name, case, PHONES.renew())
    if has_valid_body and isinstance(case.body, dict):
        case.body = shown(case.body)
        phone = sign(name, case.body, phone)
    if tag == "websites":
        kwargs["cert"] = WEBSITE.certificate
    elif tag == "phones":
        # No certificate: the check `ignored_auth` repeats the request without the proof.
        path = urllib.parse.urlsplit(case.as_transport_kwargs(WEBSITE.origin)["url"]).path
        case.headers["DPoP"] = phone.possession(case.method, path)
        case._has_explicit_auth = True


@schemathesis.hook
def after_call(context, case, response):
    if case.method == context.operation.method.upper():
        kind = response.headers.get("content-type", [""])[0]
        ANSWERS.write(json.dumps({
            "operation": context.operation.definition.raw["operationId"], "status": response.status_code, "type": kind,
            "body": response.content.decode(errors="replace")}) + "\n")


@schemathesis.hook
def filter_failure(context, failure, case, response):
    if type(failure).__name__ == "AcceptedNegativeData":
        return response.status_code != 413
    if type(failure).__name__ != "RejectedPositiveData" or response.status_code != 400:
        return True
    name = context.operation.definition.raw["operationId"]
    faults = [f"{name} {fault['parameter']} {fault['code']}" for fault in response.json().get("errors", [])]
    return not faults or any(fault not in POLICIES for fault in faults)
