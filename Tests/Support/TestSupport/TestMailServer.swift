import Bytes
import Crypto
import Glibc
import JSON

/// A mail server that behaves as a test requires: it accepts or refuses mails, hangs, or closes the
/// connection. It is a separate program, which ends with the test.
public final class TestMailServer: Sendable {
    /// The fault in place of a normal answer to a verb.
    public enum Fault: Sendable {
        case answer(String)
        /// Sends nothing more, and keeps the connection open.
        case hang
        /// Closes the connection without an answer.
        case drop
        /// Behaves normally this time.
        case none

        fileprivate var text: String {
            switch self {
            case .answer(let text): text
            case .hang: "hang"
            case .drop: "drop"
            case .none: ""
            }
        }
    }

    /// The steps of an SMTP session, in order. `dot` is the end of the content.
    public enum Verb: String, Sendable, CaseIterable {
        case greeting = "GREETING", hello = "EHLO", startTLS = "STARTTLS", login = "AUTH", sender = "MAIL"
        case recipient = "RCPT", data = "DATA", dot = "DOT", quit = "QUIT"
    }

    public enum TLS: String, Sendable {
        case none, starttls, implicit
    }

    public struct Options: Sendable {
        /// The faults for each occurrence of a verb, in order. Later occurrences are answered
        /// normally.
        public var faults: [Verb: [Fault]] = [:]
        public var tls = TLS.none
        /// The login as `user:password`, which is required for mails; nil if none is required.
        public var login: String?
        /// The login mechanisms that the server announces. It refuses all but PLAIN and LOGIN.
        public var mechanisms = "PLAIN LOGIN"
        /// Makes the server close a connection after each mail.
        public var hangsUpAfterMails = false

        public init() {}
    }

    public struct Mail: Sendable {
        public let from: String
        public let to: [String]
        /// The content as it arrived, with SMTP's escaped dots restored.
        public let data: String
        public let overTLS: Bool
        public let user: String?
    }

    public let port: UInt16
    /// The authority that signed the server's certificate, as PEM.
    public let authority: [UInt8]
    private let child: Child
    private let directory: TemporaryDirectory

    public static func start(_ change: (inout Options) -> Void = { _ in }) async throws -> TestMailServer {
        var options = Options()
        change(&options)
        let directory = try TemporaryDirectory()
        let certificates = try TestCertificates()
        try TextFile.write(certificates.server.certificatePEM(), to: directory("server.pem"))
        try TextFile.write(certificates.server.keyPEM().reveal(), to: directory("server.key"))
        var faults = JSONObject()
        for (verb, all) in options.faults { faults[verb.rawValue] = .array(all.map { .string($0.text) }) }
        let settings: JSONObject = [
            "faults": .object(faults), "tls": .string(options.tls.rawValue),
            "login": options.login.map { .string($0) } ?? .null, "mechanisms": .string(options.mechanisms),
            "hangsUp": .bool(options.hangsUpAfterMails),
            "certificate": .string(directory("server.pem")), "key": .string(directory("server.key")),
        ]
        let text = String(decoding: JSONWriter.write(settings), as: UTF8.self)
        let child = try Child("/usr/bin/python3", ["-c", script, text])
        let line = try await child.line(.output, with: "port ")
        guard let port = UInt16(line.dropFirst(5)) else { throw Child.Problem(description: "no port: \(line)") }
        return TestMailServer(port, child, directory, try certificates.websites.certificatePEM())
    }

    private init(_ port: UInt16, _ child: Child, _ directory: TemporaryDirectory, _ authority: [UInt8]) {
        self.port = port
        self.child = child
        self.directory = directory
        self.authority = authority
    }

    deinit { child.signal(SIGKILL) }

    /// Stops the server as a hanging machine does, or lets it continue.
    public func freeze() { child.signal(SIGSTOP) }
    public func thaw() { child.signal(SIGCONT) }

    /// Returns the mail with this number, from 1, when it has arrived.
    public func mail(_ number: Int = 1) async throws -> Mail {
        let line = try await child.line(.output, with: "mail ", number: number)
        guard let object = try JSONReader.read(Array(line.utf8.dropFirst(5))).object else {
            throw Child.Problem(description: "no mail: \(line)")
        }
        return Mail(
            from: object["from"]?.string ?? "", to: object["to"]?.array?.compactMap(\.string) ?? [],
            data: object["data"]?.string ?? "", overTLS: object["tls"]?.bool ?? false, user: object["user"]?.string)
    }

    /// Waits until clients have sent this verb `number` times.
    public func hears(_ verb: Verb, _ number: Int = 1) async throws {
        _ = try await child.line(.output, with: "said \(verb.rawValue)", number: number)
    }

    /// The known verbs that clients have sent so far, in order.
    public var said: [String] {
        child.written.output.split(separator: "\n").filter { $0.hasPrefix("said ") }.map { String($0.dropFirst(5)) }
    }

    public var connections: Int {
        child.written.output.split(separator: "\n").count { $0 == "connection" }
    }

    private static let script = #"""
        import base64, json, socket, ssl, sys, threading

        o = json.loads(sys.argv[1])
        lock = threading.Lock()

        def tell(text):
            with lock:
                print(text, flush=True)

        def fault(verb):
            with lock:
                left = o["faults"].get(verb, [])
                return left.pop(0) if left else ""

        def context():
            c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            c.load_cert_chain(o["certificate"], o["key"])
            return c

        class Gone(Exception):
            pass

        class Talk:
            def __init__(self, s):
                self.s, self.secure, self.user = s, False, None
                if o["tls"] == "implicit":
                    self.wrap()
                self.f = self.s.makefile("rb")

            def wrap(self):
                self.s = context().wrap_socket(self.s, server_side=True)
                self.secure, self.f = True, self.s.makefile("rb")

            def say(self, text):
                self.s.sendall(text.encode() + b"\r\n")

            def answer(self, verb, text):
                "Sends the answer or the fault; true if the verb succeeds."
                f = fault(verb)
                if f == "hang":
                    while self.f.readline():
                        pass
                    raise Gone()
                if f == "drop":
                    raise Gone()
                self.say(f or text)
                return not f or f[0] in "23"

            def line(self):
                line = self.f.readline()
                if not line.endswith(b"\n"):
                    raise Gone()
                return line.rstrip(b"\r\n").decode("utf-8", "replace")

            def login(self, line):
                parts = line.split()
                if parts[1].upper() not in ("PLAIN", "LOGIN"):
                    return self.say("535 5.7.8 no such secret here")
                if parts[1].upper() == "PLAIN":
                    if len(parts) < 3:
                        self.say("334 ")
                        parts.append(self.line())
                    given = base64.b64decode(parts[2]).decode().split("\0")[1:]
                else:
                    self.say("334 VXNlcm5hbWU6")
                    user = parts[2] if len(parts) > 2 else self.line()
                    self.say("334 UGFzc3dvcmQ6")
                    given = [base64.b64decode(x).decode() for x in (user, self.line())]
                if ":".join(given) == o["login"]:
                    if self.answer("AUTH", "235 2.7.0 welcome"):
                        self.user = given[0]
                else:
                    self.say("535 5.7.8 wrong user or password")

            def run(self):
                sender, to = None, []
                self.answer("GREETING", "220 test ESMTP")
                while True:
                    line = self.line()
                    verb = line.split(" ")[0].split(":")[0].upper()
                    tell("said " + verb)
                    if verb == "EHLO":
                        more = ["SIZE 1000000", "8BITMIME"]
                        if o["tls"] == "starttls" and not self.secure:
                            more.append("STARTTLS")
                        if o["login"]:
                            more.append("AUTH " + o["mechanisms"])
                        f = fault("EHLO")
                        if f:
                            o["faults"].setdefault("EHLO", []).insert(0, f)
                            self.answer("EHLO", "")
                        else:
                            names = ["test"] + more
                            for i, name in enumerate(names):
                                self.say("250" + (" " if i == len(names) - 1 else "-") + name)
                    elif verb == "HELO":
                        self.say("250 test")
                    elif verb == "STARTTLS":
                        if self.answer("STARTTLS", "220 go"):
                            self.wrap()
                    elif verb == "AUTH":
                        self.login(line)
                    elif verb == "MAIL":
                        if o["login"] and not self.user:
                            self.say("530 5.7.0 who are you?")
                        elif self.answer("MAIL", "250 fine"):
                            sender, to = line[10:].split(" ")[0], []
                    elif verb == "RCPT":
                        if self.answer("RCPT", "250 fine"):
                            to.append(line[8:].split(" ")[0])
                    elif verb == "DATA":
                        if not self.answer("DATA", "354 go on"):
                            continue
                        data = []
                        while True:
                            line = self.f.readline()
                            if not line:
                                raise Gone()
                            if line == b".\r\n":
                                break
                            data.append(line[1:] if line.startswith(b".") else line)
                        tell("said DOT")
                        text = b"".join(data).decode("utf-8", "replace")
                        kept = {"from": sender, "to": to, "data": text, "tls": self.secure, "user": self.user}
                        tell("mail " + json.dumps(kept))
                        self.answer("DOT", "250 2.0.0 queued as 1")
                        if o["hangsUp"]:
                            raise Gone()
                    elif verb == "RSET":
                        self.say("250 fine")
                    elif verb == "QUIT":
                        self.answer("QUIT", "221 bye")
                        raise Gone()
                    else:
                        self.say("502 what?")

        def serve(s):
            talk = None
            try:
                talk = Talk(s)
                talk.run()
            except (Gone, OSError):
                pass
            try:
                (talk.s if talk else s).shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            (talk.s if talk else s).close()

        l = socket.create_server(("127.0.0.1", 0))
        tell("port %d" % l.getsockname()[1])
        while True:
            s, _ = l.accept()
            tell("connection")
            threading.Thread(target=serve, args=(s,), daemon=True).start()
        """#
}
