"""The relay itself, as its own process, with a listener for browsers and a website."""

import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import time

POLICIES = {"answers": "signed", "factors": "push,totp", "phone-codes": "again", "pin": "optional", "guesses": "100"}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def setting(text, name, value):
    """Sets a key such as `push.web.key`, which is a comment in the file that `twoefay init` writes."""
    *groups, key = name.split(".")
    outer = "".join(rf"{'  ' * depth}{group}:\n(?:{'  ' * (depth + 1)}.*\n)*?" for depth, group in enumerate(groups))
    indent = "  " * len(groups)
    text, count = re.subn(rf"(\n{outer}){indent}# {key}: .*\n", lambda found: f"{found[1]}{indent}{key}: {value}\n", text)
    assert count == 1, name
    return text


class RealRelay:
    """A relay in its own directory, with a listener for browsers at `origin`. `more` are further settings."""

    def __init__(self, programs, directory, certificate, port, browsers, more=()):
        self.programs, self.directory, self.port = programs, directory, port
        self.origin = f"https://localhost:{browsers}"
        self.settings = os.path.join(directory, "twoefay.yaml")
        self.tool("init", directory, "--listen", f"127.0.0.1:{self.port}")
        with open(self.settings) as file:
            text = file.read()
        phone = {"listen": f"127.0.0.1:{browsers}", "origin": self.origin, "certificate": certificate, "key": certificate}
        for name, value in {**{f"phone.{name}": value for name, value in phone.items()}, **dict(more)}.items():
            text = setting(text, name, value)
        with open(self.settings, "w") as file:
            file.write(text)
        self.tool("--config", self.settings, "website", "add", "shop", "--out", directory,
                  *(word for name, value in POLICIES.items() for word in (f"--{name}", value)))
        self.log = open(os.path.join(directory, "log"), "w")
        self.process = subprocess.Popen(
            [os.path.join(programs, "twoefayd"), "--config", self.settings], stdin=subprocess.DEVNULL, stderr=self.log)
        self.website = ssl.create_default_context(cafile=os.path.join(directory, "ca.pem"))
        self.website.load_cert_chain(os.path.join(directory, "shop.pem"), os.path.join(directory, "shop.key"))
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port)):
                    break
            except ConnectionRefusedError:
                assert self.process.poll() is None, "the relay does not start"
                time.sleep(0.05)

    def tool(self, *words):
        subprocess.run([os.path.join(self.programs, "twoefay"), *words], check=True, stdout=subprocess.DEVNULL)

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()

    def ask(self, method, path, body=None):
        """A request of the website, with whatever answer: (status, object)."""
        connection = http.client.HTTPSConnection("localhost", self.port, context=self.website)
        if body is None:
            connection.request(method, path)
        else:
            connection.request(method, path, json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, json.loads(content) if content else None

    def call(self, method, path, body=None):
        status, found = self.ask(method, path, body)
        assert status < 300, (method, path, status, found)
        return found

    def login(self, username, **more):
        return self.call("POST", "/login", {"username": username, **more})
