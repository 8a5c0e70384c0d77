"""A headless Firefox with the app in it, driven by its own protocol (Marionette), without a driver program.

Marionette is JSON over a TCP connection on this machine. A packet is its length in decimal digits, a colon, and an array: a
command is [0, id, name, parameters], an answer [1, id, error, result]. Selenium makes the commands of WebDriver, and
`Marionette` gives each the name that it has there. The context `chrome` is the browser's own code: it is used for settings
that a person makes in its windows, and to read its console.
"""

import base64
import json
import os
import socket
import subprocess
import time

from selenium import webdriver
from selenium.webdriver.remote.webdriver import WebDriver

from screens import PATIENCE, Screens

COMMANDS = {
    "newSession": "WebDriver:NewSession", "setTimeouts": "WebDriver:SetTimeouts", "get": "WebDriver:Navigate",
    "refresh": "WebDriver:Refresh", "getCurrentUrl": "WebDriver:GetCurrentURL", "findElement": "WebDriver:FindElement",
    "findElements": "WebDriver:FindElements", "clickElement": "WebDriver:ElementClick", "clearElement": "WebDriver:ElementClear",
    "sendKeysToElement": "WebDriver:ElementSendKeys", "getElementText": "WebDriver:GetElementText",
    "isElementEnabled": "WebDriver:IsElementEnabled", "getElementRect": "WebDriver:GetElementRect",
    "w3cExecuteScript": "WebDriver:ExecuteScript", "w3cExecuteScriptAsync": "WebDriver:ExecuteAsyncScript",
    "setWindowRect": "WebDriver:SetWindowRect", "w3cGetWindowHandles": "WebDriver:GetWindowHandles",
    "switchToWindow": "WebDriver:SwitchToWindow", "context": "Marionette:SetContext",
}

# A free port for the protocol, and the recommended settings of automation, which switch off most of what Firefox asks the
# network for. Everything else that is not for this machine goes to a proxy where no program listens, and no name is looked up.
PREFERENCES = {
    "marionette.port": 0, "remote.prefs.recommended": True, "browser.shell.checkDefaultBrowser": False,
    "app.update.disabledForTesting": True, "app.normandy.enabled": False, "browser.aboutwelcome.enabled": False,
    "toolkit.telemetry.enabled": False, "datareporting.policy.dataSubmissionEnabled": False, "network.dns.disablePrefetch": True,
    "network.captive-portal-service.enabled": False, "network.connectivity-service.enabled": False, "network.trr.mode": 5,
    "network.proxy.type": 1, "network.proxy.http": "127.0.0.1", "network.proxy.http_port": 9, "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9, "network.proxy.no_proxies_on": "localhost, 127.0.0.1", "network.proxy.failover_direct": False,
    "network.proxy.allow_bypass": False, "network.dns.native-is-localhost": True, "security.OCSP.enabled": 0,
    # Firefox shows notifications in windows of its own, because a headless one has no desktop that does. No request to the
    # push service fails because this machine is slow.
    "alerts.useSystemBackend": False, "dom.push.requestTimeout": 1000 * PATIENCE, "dom.push.pingInterval": 1000,
    "intl.accept_languages": "en",
}

# What pages write to the console stays in their processes. This script of each process tells it to the browser's own.
LISTEN = """
const script = `
  const storage = Cc["@mozilla.org/consoleAPI-storage;1"].getService(Ci.nsIConsoleAPIStorage);
  storage.addLogEventListener((event) => {
    const { level, filename, arguments: words } = event.wrappedJSObject ?? event;
    if (!["error", "warn", "assert"].includes(level)) return;
    Services.console.logStringMessage(level + " of " + filename + ": " + words.join(" "));
  }, Cc["@mozilla.org/systemprincipal;1"].createInstance(Ci.nsIPrincipal));
`;
Services.ppmm.loadProcessScript(`data:application/javascript;charset=utf-8,${encodeURIComponent(script)}`, true);
"""

# Errors of the page and of its workers, violations of its policy, and what they wrote to the console.
CONSOLE = """
const [origin] = arguments;
const told = (one) => {
  if (!(one instanceof Ci.nsIScriptError)) return one.message;
  // Firefox says this about a page that it leaves while a script runs.
  if (one.flags & (one.infoFlag | one.warningFlag) || one.errorMessage.startsWith("Script terminated by timeout")) return "";
  return `${one.category}: ${one.errorMessage} (${one.sourceName}:${one.lineNumber})`;
};
return Services.console.getMessageArray().map(told).filter((words) => words.includes(origin));
"""

# Presses the notification with this title and text, in the window that shows it.
PRESS = """
const [title, text] = arguments;
const said = (document, name) => document.getElementById(name).textContent || document.getElementById(name).value;
for (const { document } of Services.wm.getEnumerator("alert:alert")) {
  if (document.readyState !== "complete") continue;
  if (said(document, "alertTitleLabel") !== title || said(document, "alertTextLabel") !== text) continue;
  document.getElementById("alertTextLabel").click();
  return true;
}
return false;
"""


class Marionette:
    """The connection to a Firefox, in the place of Selenium's connection to a driver."""

    def __init__(self, port):
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.stream = self.connection.makefile("rb")
        self.count = 0
        greeting = self.receive()
        assert greeting["marionetteProtocol"] == 3, greeting

    def receive(self):
        length = b""
        while not length.endswith(b":"):
            length += self.stream.read(1) or self.ended()
        return json.loads(self.stream.read(int(length[:-1])))

    def ended(self):
        raise AssertionError("Firefox has closed the connection")

    def execute(self, command, parameters):
        self.count += 1
        # A connection has a single session, and its commands do not name it.
        given = {name: value for name, value in (parameters or {}).items() if name != "sessionId"}
        packet = json.dumps([0, self.count, COMMANDS[command], given]).encode()
        self.connection.sendall(b"%d:%s" % (len(packet), packet))
        kind, number, error, result = self.receive()
        assert (kind, number) == (1, self.count), "an answer to another command"
        if error:
            return {"status": error["error"], "value": error}
        # Some commands return an object with a value, others the object or list itself.
        return {"value": result["value"] if isinstance(result, dict) and list(result) == ["value"] else result}

    def close(self):
        self.stream.close()
        self.connection.close()


class Firefox(Screens):
    """A Firefox with a profile of its own in `directory`, that trusts `authority`. `more` are further preferences."""

    def __init__(self, program, directory, authority, origin, more=()):
        self.origin = origin
        os.mkdir(directory)
        with open(os.path.join(directory, "user.js"), "w", encoding="utf-8") as file:
            for name, value in {**PREFERENCES, **dict(more)}.items():
                file.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
        self.log = open(os.path.join(directory, "log"), "w")
        self.process = subprocess.Popen(
            [program, "--headless", "--no-remote", "--marionette", "--remote-allow-system-access", "--profile", directory],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env={**os.environ, "MOZ_CRASHREPORTER_DISABLE": "1"})
        self.driver = None
        try:
            self.driver = WebDriver(Marionette(self.port(directory)), options=webdriver.FirefoxOptions())
            self.driver.set_script_timeout(PATIENCE)
            self.trust(authority)
            # The recommended settings switch it off.
            self.chrome('Services.prefs.setBoolPref("dom.push.connection.enabled", true)')
            self.chrome(LISTEN)
        except BaseException:
            self.quit()
            raise

    def port(self, directory):
        path = os.path.join(directory, "MarionetteActivePort")
        while True:
            try:
                with open(path) as file:
                    return int(file.read())
            except (FileNotFoundError, ValueError):
                assert self.process.poll() is None, "Firefox does not start"
                time.sleep(0.05)

    def quit(self):
        self.process.terminate()
        self.process.wait()
        if self.driver:
            self.driver.command_executor.close()
        self.log.close()

    def chrome(self, text, *arguments):
        """Runs a script in the browser's own code."""
        self.driver.execute("context", {"value": "chrome"})
        try:
            return self.script(text, *arguments)
        finally:
            self.driver.execute("context", {"value": "content"})

    def size(self, width, height):
        """Gives the page a size. A window cannot be as narrow as a phone, the page in it can."""
        self.driver.execute("setWindowRect", {"width": max(width, 500), "height": height + 200})
        self.chrome("""
            const [width, height] = arguments, { style } = gBrowser.selectedBrowser;
            style.width = `${width}px`;
            style.height = `${height}px`;
        """, width, height)
        self.until(lambda: self.script("return [innerWidth, innerHeight]") == [width, height], f"a page of {width} by {height}")

    def permit(self, *permissions):
        """Gives the origin permissions, as the person does who allows what Firefox asks."""
        self.chrome("""
            const principal = Services.scriptSecurityManager.createContentPrincipalFromOrigin(arguments[0]);
            for (const one of arguments[1]) Services.perms.addFromPrincipal(principal, one, Services.perms.ALLOW_ACTION);
        """, self.origin, permissions)

    def press_notification(self, title, text):
        self.until(lambda: self.chrome(PRESS, title, text), f"the notification {title}, {text}")

    def take_tab(self, tabs):
        """Goes on in the tab that the browser has opened beside these."""
        tab = self.until(lambda: next((one for one in self.driver.window_handles if one not in tabs), None), "a new tab")
        self.driver.switch_to.window(tab)
        self.ready()

    def trust(self, authority):
        """Trusts the certificate of an authority (DER) for servers, as the settings of the browser can."""
        self.chrome(
            'Cc["@mozilla.org/security/x509certdb;1"].getService(Ci.nsIX509CertDB).addCertFromBase64(arguments[0], "C,,");',
            base64.b64encode(authority).decode())

    def complaints(self):
        return self.chrome(CONSOLE, self.origin)
