"""conversation.py ORIGIN DIRECTORY TWOEFAY : a website's conversation with the relay, by requests."""
import subprocess
import sys

import requests

origin, directory, twoefay = sys.argv[1:]
website = requests.Session()
# Otherwise REQUESTS_CA_BUNDLE, if it is set, replaces `verify`.
website.trust_env = False
website.verify, website.cert = f"{directory}/relay/ca.pem", (f"{directory}/shop.pem", f"{directory}/shop.key")


def call(method, path, body=None, **fields):
    answer = website.request(method, origin + path, json=body, headers=fields)
    if answer.raw.version != 11:
        sys.exit(f"HTTP version {answer.raw.version}")
    return answer.status_code, answer.json() if answer.content else {}


def phone(*words):
    return subprocess.Popen([twoefay, "phone", *words, "--keys", f"{directory}/phone"], stdout=subprocess.DEVNULL)


status, user = call("POST", "/register", {"username": "ada"})
print(status)
phone("enrol", user["activation"]["uri"]).wait()
status, user = call("GET", "/user/ada")
print(status, user["state"], len(user["devices"]))
status, login = call("POST", "/login", {"username": "ada", "request": "r-1"})
print(status)
challenge = {"challenge": login["challenge"]}
status, answer = call("POST", "/auth", challenge, Prefer="wait=1")
print(status, answer["login"])
approval = phone("approve", "--challenge", login["challenge"], "--number", login["number"])
status, answer = call("POST", "/auth", challenge, Prefer="wait=60")
print(status, answer["login"], answer["proof"], answer["receipt"].count("."))
approval.wait()
status, answer = call("GET", "/webhook/secrets")
print(status, len(answer["secrets"]))
status, answer = call("GET", "/user/nobody")
print(status, answer["code"])
print(call("DELETE", "/user/ada")[0])
