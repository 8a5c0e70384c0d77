import Glibc
import JSON
import Synchronization
import Testing

/// A webhook receiver as other developers write one: a Python server with the library
/// `standardwebhooks` by the authors of the standard, which `dev/need` installs. It prints the
/// library's verdict on each request.
public final class TestWebhookServer: Sendable {
    private static let packages =
        #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined() + "/.build/python"

    public static var isInstalled: Bool { access("\(packages)/standardwebhooks/webhooks.py", R_OK) == 0 }

    public struct Event: Sendable {
        /// The library's verdict with each secret, in the order of `learn`: `accepted`, or the
        /// error.
        public let verdicts: [String]
        public let id: String
        public let type: String?
        public let timestamp: String?
        public let data: JSONObject
        /// The number of earlier requests.
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

    /// Sets the status of the answers from now on. The server prints each request before it
    /// answers.
    public func answer(_ status: Int) throws {
        try put(String(status), at: "status")
    }

    /// Adds a secret that the server knows from now on.
    public func learn(_ secret: String) throws {
        let number = known.withLock { known in
            defer { known += 1 }
            return known
        }
        try put(secret, at: "secret-\(number)")
    }

    /// Replaces a file atomically, so the server never reads a partial one.
    private func put(_ text: String, at name: String) throws {
        try TextFile.write(text, to: directory("next"))
        guard rename(directory("next"), directory(name)) == 0 else {
            throw Child.Problem(description: "rename: errno \(errno)")
        }
    }

    /// Returns a received event whose line contains `part`.
    ///
    /// - Parameter number: which of these events, from 1, in order of arrival.
    public func event(_ part: String, number: Int = 1) async throws -> Event {
        try event(of: try await child.line(.output, with: part, number: number))
    }

    /// The events received so far.
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
