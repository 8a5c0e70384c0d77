import Glibc
import JSON
import Synchronization
import Testing

/// A website's receiver of webhooks as others write one: Python's own server, and in it the library `standardwebhooks` by
/// those who wrote the standard, which dev/need brings. It says of everything that it is sent what the library makes of it.
public final class TestWebhookServer: Sendable {
    private static let packages =
        #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined() + "/.build/python"

    public static var isInstalled: Bool { access("\(packages)/standardwebhooks/webhooks.py", R_OK) == 0 }

    public struct Event: Sendable {
        /// What the library says under each of the secrets, in the order in which they were learnt: `accepted`, or why not.
        public let verdicts: [String]
        public let id: String
        public let type: String?
        public let timestamp: String?
        public let data: JSONObject
        /// How many came before it.
        public let place: Int
    }

    public let url: String
    private let directory: TemporaryDirectory
    private let child: Child
    private let known = Mutex(0)

    public init() async throws {
        directory = try TemporaryDirectory()
        try TextFile.write("204", to: directory("status"))
        child = try Child(
            "/usr/bin/python3", ["-c", Self.script, directory.path],
            environment: ["PYTHONPATH": Self.packages, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"])
        let line = try await child.line(.output, with: "port ")
        url = "http://127.0.0.1:\(line.dropFirst(5))/hook?of=shop"
    }

    deinit { child.signal(SIGKILL) }

    /// From now on. It says what it was sent before it answers.
    public func answer(_ status: Int) throws {
        try put(String(status), at: "status")
    }

    /// It knows this secret, too, from now on.
    public func learn(_ secret: String) throws {
        let number = known.withLock { known in
            defer { known += 1 }
            return known
        }
        try put(secret, at: "secret-\(number)")
    }

    /// It reads either the whole or nothing.
    private func put(_ text: String, at name: String) throws {
        try TextFile.write(text, to: directory("next"))
        guard rename(directory("next"), directory(name)) == 0 else {
            throw Child.Problem(description: "rename: errno \(errno)")
        }
    }

    /// What it was sent, in the order in which it came: the first of that type, or about that, or the one of that number.
    public func event(_ part: String, number: Int = 1) async throws -> Event {
        try event(of: try await child.line(.output, with: part, number: number))
    }

    /// What it was sent until now.
    public var events: [Event] {
        get throws {
            try child.written.output.split(separator: "\n").filter { $0.hasPrefix("{") }.map {
                try event(of: String($0))
            }
        }
    }

    private func event(of line: String) throws -> Event {
        let said = try #require(try JSONReader.read(Array(line.utf8)).object)
        let body = try JSONReader.read(Array(try #require(said["body"]?.string).utf8)).object
        return Event(
            verdicts: said["verdicts"]?.array?.compactMap(\.string) ?? [], id: try #require(said["id"]?.string),
            type: body?["type"]?.string, timestamp: body?["timestamp"]?.string, data: body?["data"]?.object ?? [:],
            place: Int(try #require(said["place"]?.integer)))
    }

    private static let script = """
        import json, os, sys, threading
        from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
        from standardwebhooks.webhooks import Webhook, WebhookVerificationError
        directory = sys.argv[1]
        def secrets():
            return [open(f"{directory}/{name}").read().strip() for name in sorted(os.listdir(directory)) if "secret" in name]
        lock, places = threading.Lock(), iter(range(1 << 30))
        def verdict(secret, body, head):
            try:
                Webhook(secret).verify(body, head)
                return "accepted"
            except WebhookVerificationError as error:
                return str(error)
        class Receiver(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                head = {name.lower(): value for name, value in self.headers.items()}
                verdicts = [verdict(secret, body, head) for secret in secrets()]
                if head.get("content-type") != "application/json" or self.path != "/hook?of=shop":
                    verdicts = ["not as it was asked for"]
                with lock:
                    said = {"place": next(places), "id": head.get("webhook-id"), "verdicts": verdicts, "body": body.decode()}
                    print(json.dumps(said), flush=True)
                self.send_response(int(open(f"{directory}/status").read()))
                self.send_header("content-length", "0")
                self.end_headers()
            def log_message(self, *arguments):
                pass
        server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        print("port", server.server_port, flush=True)
        server.serve_forever()
        """
}
