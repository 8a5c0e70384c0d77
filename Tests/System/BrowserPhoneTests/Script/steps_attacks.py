"""The steps of attackers: hostile texts, frames, links of others, replayed fragments, and pages of other origins."""

import os
import re
import ssl
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlencode

from steps import bind, link, open_request, whole
from steps_updates import bound

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../..")
MARKUP = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"


def markup(stage):
    """markup in every shown text stays text"""
    browser, relay = bound(stage, "nine", "ivy"), stage.near.relay
    relay.display_name, old = MARKUP, relay.display_name
    challenge = relay.ask(
        "ivy", number="", service=MARKUP, action=MARKUP, ip=MARKUP, place=MARKUP, user_agent=MARKUP, device=MARKUP,
        details=[{"label": MARKUP, "value": MARKUP}])
    relay.leave_message("ivy", MARKUP, MARKUP)
    open_request(browser, challenge)
    whole(browser)
    assert browser.text().count("<script>") >= 8
    browser.press("Reject")
    browser.heading("Rejected")
    browser.press("Done")
    browser.tab("notices")
    browser.press("<img…", "#screen .entry")
    browser.until(lambda: browser.script("return document.querySelector('article')?.innerText.includes('<script>')"), "the notice")
    browser.tab("settings")
    browser.says("<img")
    assert browser.driver.title == "Twoefay"
    assert browser.script("return document.querySelectorAll('#screen img, #screen script').length") == 0
    relay.display_name = old


def hidden_characters(stage):
    """a request with hidden characters cannot be answered"""
    browser, relay = stage.browser("nine"), stage.near.relay
    challenge = relay.ask("ivy", details=[{"label": "to", "value": "Zo\u202eeb"}])
    browser.tab("home")
    browser.says("a request that cannot be shown or answered here")
    stage.looks.look(browser, "40-hidden")
    relay.end(challenge)
    browser.until(lambda: "cannot be shown" not in browser.text(), "the end of the request")


def refused_links(stage):
    """a link of another relay, one with k, one for native apps and a damaged one are refused, and nothing is sent"""
    browser, relay = stage.browser("nine"), stage.near.relay
    cases = (
        (relay.activate("ivy", at="https://evil.example"), "This link is for https://evil.example."),
        (relay.activate("ivy", k=bytes(32)), "This link has a key of the website that the relay https://login.example.com:8080 must never see"),
        (relay.activate("ivy", phones="native"), "The website shop takes native apps only"),
        ({**relay.activate("ivy"), "relay": "https://a/b"}, "The link is damaged"),
    )
    for at, (values, words) in enumerate(cases):
        if at == 0:
            browser.open(link(stage.near, values))
        else:
            # The app is open already: the browser only changes the fragment.
            browser.press("Done")
            browser.script("location.href = arguments[0]", link(stage.near, values))
        browser.heading("This link was not used")
        browser.says(words)
        assert browser.driver.current_url == f"{stage.near.origin}/phone/"
        assert relay.activations[values["code"]]["device"] is None
    stage.looks.look(browser, "41-refused-link")
    # The same holds for what was scanned or pasted.
    for change, words in (({"k": bytes(32)}, "which could read the key"), ({"phones": "native"}, "Install the app that the website recommends"),
                          ({"phones": "any"}, "The link is damaged: phones is neither native nor web.")):
        values = relay.activate("ivy", **change)
        browser.tab("home")
        browser.press("Add an account")
        browser.fill("Link", "twoefay://enrol?" + urlencode(values))
        browser.press("Continue")
        browser.says(words)
        assert relay.activations[values["code"]]["device"] is None


def replayed_fragment(stage):
    """a stolen fragment that was used gives no second phone, and its key is deleted"""
    browser, relay = stage.browser("ten"), stage.near.relay
    values = next({"code": code, **one} for code, one in relay.activations.items() if one["device"] and one["username"] == "ivy")
    browser.authenticator()
    browser.open(link(stage.near, {
        "relay": relay.identity, "website": "shop", "token": values["token"], "code": values["code"], "pin": "A" * 43, "at": relay.at}))
    browser.heading("Add this phone?")
    browser.press("Add this phone")
    browser.heading("Phone not added")
    browser.says("was used before")
    count = browser.ask("""
        indexedDB.open("twoefay-phone").onsuccess = ({ target: { result } }) => {
          result.transaction("phones").objectStore("phones").count().onsuccess = ({ target: { result: found } }) => done(found);
        };
    """)
    assert count == 0
    stage.close("ten")


def same_policy(stage):
    """the pages of these tests have the policy of the product, which lets no other website frame them"""
    with open(os.path.join(ROOT, "Sources/Product/PhoneApp/PhoneApp.swift"), encoding="utf-8") as file:
        source = file.read()
    body = source[source.index("let policy = ["):source.index("/// The file by which an app for iOS")]
    words = {text for text in re.findall(r'"([^"]*)"', body) if text not in ("; ", " ")}
    context = ssl.create_default_context(cafile=os.path.join(stage.directory, "server.pem"))
    answer = urllib.request.urlopen(f"{stage.near.origin}/phone/", context=context)
    fields = {name.lower(): value for name, value in answer.headers.items()}
    directives = fields["content-security-policy"].split("; ")
    connect = next(one for one in directives if one.startswith("connect-src "))
    assert connect == " ".join(["connect-src 'self'", *stage.app.relays]), connect
    served = {*directives, "connect-src 'self'"} - {connect}
    for name in ("cross-origin-opener-policy", "cross-origin-resource-policy", "referrer-policy", "x-content-type-options"):
        served |= {name, fields[name]}
    # The longest field is written in two parts.
    permissions = [text for text in words if "=(" in text]
    assert "".join(sorted(permissions, key=body.index)) == fields["permissions-policy"], (permissions, fields["permissions-policy"])
    served |= {"content-security-policy", "permissions-policy", *permissions}
    # For all ports of a host, and so never in these tests.
    assert words - {"strict-transport-security", "max-age=31536000"} == served, words ^ served
    assert "frame-ancestors 'none'" in directives and "form-action 'none'" in directives


class Hostile(BaseHTTPRequestHandler):
    target = None

    def do_GET(self):
        content = f"<!doctype html><title>hostile</title><iframe src='{self.target}/phone/'></iframe>".encode()
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def hostile_website(stage):
    """another website can neither frame the app, nor reach its window, nor call the relay with a phone's identity"""
    browser = stage.browser("nine")
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Here", (Hostile,), {"target": stage.near.origin}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser.driver.get(f"http://localhost:{server.server_port}/")
    browser.until(lambda: browser.script("return document.readyState") == "complete", "the hostile page")
    browser.driver.switch_to.frame(0)
    assert browser.script("return document.documentElement.dataset.ready ?? null") is None and "Requests" not in browser.text()
    browser.driver.switch_to.default_content()
    reached = browser.ask(f"""
        const opened = open("{stage.near.origin}/phone/#open=abc");
        setTimeout(() => {{
          let found = "no access";
          try {{ found = opened?.document?.title ?? "no window"; }} catch (error) {{ found = error.name; }}
          fetch("{stage.near.origin}/pending", {{ method: "POST", credentials: "include", headers: {{ "content-type": "text/plain" }}, body: "{{}}" }})
            .then(() => "answered", () => "no answer").then((answer) => done([found, opened?.closed ?? null, answer]));
        }}, 1500);
    """)
    assert reached[0] in ("SecurityError", "no window", "no access"), reached
    assert reached[2] == "no answer", reached
    server.shutdown()
    for handle in browser.driver.window_handles[1:]:
        browser.driver.switch_to.window(handle)
        assert browser.script("return window.opener") is None
        browser.driver.close()
    browser.driver.switch_to.window(browser.driver.window_handles[0])


ALL = (markup, hidden_characters, refused_links, replayed_fragment, same_policy, hostile_website)
