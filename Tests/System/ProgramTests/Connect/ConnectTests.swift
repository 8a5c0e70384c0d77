import Glibc
import JSON
import TestSupport
import Testing

/// `twoefay connect` between a website's programs and a real relay.
@Suite("twoefay connect", .timeLimit(.minutes(15)), .mayBlock) struct ConnectTests {
    /// Everything that a website does for a login, with a restart of the relay in between.
    @Test func wholeConversationNeedsNoCertificate() async throws {
        let relay = try await RunningRelay.start { text throws in try text.set("log.level", to: "debug") }
        _ = try await relay.website("shop")
        let sidecar = try await RunningSidecar(relay)
        let registered = try await sidecar.curl("POST", "/register", #"{"username":"ada"}"#)
        #expect(registered.status == 201, "\(registered)")
        let uri = try #require(registered["activation"]?.object?["uri"]?.string)
        let keys = sidecar.directory("phone")
        let enrolled = try await BuiltProgram.twoefay("phone", "enrol", uri, "--name", "ada's", "--keys", keys)
        #expect(enrolled.status == 0, "\(enrolled)")

        await relay.stop()
        try await relay.restart()
        let asked = try await sidecar.curl("POST", "/login", #"{"username":"ada"}"#)
        #expect(asked.status == 201, "\(asked)")
        let challenge = try #require(asked["challenge"]?.string)
        let held = try sidecar.begin(
            "POST", "/auth", #"{"challenge":"\#(challenge)"}"#, ["--header", "prefer: wait=60"])
        try await relay.logged("event=request.held")
        let number = try #require(asked["number"]?.string)
        let approved = try await BuiltProgram.twoefay(
            "phone", "approve", "--challenge", challenge, "--number", number, "--keys", keys)
        #expect(approved.status == 0, "\(approved)")
        let result = try await CurlCaller.read(held)
        #expect(result["login"] == "success" && result["proof"] == "signed", "\(result)")
        #expect(result["receipt"]?.string != nil && result.field("preference-applied") == "wait=60")
    }

    /// Answers differ from those of the relay in nothing but what belongs to the connection.
    @Test func answersAreThoseOfTheRelay() async throws {
        let fixture = try await Fixture(.file)
        let sidecar = try await RunningSidecar(fixture.relay)
        _ = try await fixture.registered("zoe.1")
        let requests: [(method: String, path: String, json: String?, fields: [String: String])] = [
            ("GET", "/health", nil, [:]), ("GET", "/openapi.json", nil, [:]), ("GET", "/user/zoe%2E1", nil, [:]),
            ("GET", "/user/..%2fhealth", nil, ["accept-language": "de"]), ("GET", "/user/ada?x=1", nil, [:]),
            ("PATCH", "/user/zoe.1", #"{"display_name":"Zoë"}"#, [:]), ("POST", "/login", "{", [:]),
            ("POST", "/login", #"{"username":1}"#, ["content-type": "text/plain"]),
            ("POST", "/register", #"{"username":"zoe.1"}"#, ["idempotency-key": "k"]),
            ("DELETE", "/user/nobody", nil, [:]),
        ]
        for request in requests {
            let direct = try await fixture.shop.curl(
                request.method, request.path, json: request.json, fields: request.fields)
            let fields = request.fields.sorted { $0.key < $1.key }.flatMap { ["--header", "\($0.key): \($0.value)"] }
            let through = try await sidecar.curl(request.method, request.path, request.json, fields)
            #expect(through.status == direct.status, "\(request): \(direct), \(through)")
            if direct["detail"]?.string?.contains("request_id") != true { #expect(through.text == direct.text) }
            let ignored: Set = ["date", "request-id", "connection", "content-length", "idempotency-replayed"]
            let names = { (answer: CurlCaller.Answer) in
                answer.lines.filter { !ignored.contains($0.name) }.map { "\($0.name): \($0.value)" }.sorted()
            }
            #expect(names(through) == names(direct), "\(request)")
            #expect(request.path == "/health" || through.field("request-id") != nil)
        }
        // A body of the greatest length arrives, in one piece or chunked.
        let large = sidecar.directory("large")
        try TextFile.write(
            #"{"username":"\#(String(repeating: "x", count: 65_536 - 15))"}"#, to: large)
        for coding in ["expect: 100-continue", "transfer-encoding: chunked"] {
            let answer = try await sidecar.curl(
                "POST", "/register", nil,
                ["--http1.1", "--data-binary", "@\(large)", "-H", coding, "-H", "content-type: application/json"])
            #expect(answer.text.contains(#""code":"invalid""#), "\(coding): \(answer)")
        }
    }

    /// The relay allows 100 streams on a connection. More held requests than that must not keep others
    /// waiting.
    @Test func heldRequestsDelayNoOthers() async throws {
        let fixture = try await Fixture(.file) { text throws in try text.set("log.level", to: "debug") }
        let sidecar = try await RunningSidecar(fixture.relay)
        _ = try await fixture.bind(try await fixture.registered("ada"))
        let challenge = try await fixture.login("ada")
        let script = """
            import socket, sys
            body = b'{"challenge":"' + sys.argv[2].encode() + b'"}'
            head = b"POST /auth HTTP/1.1\\r\\nHost: localhost\\r\\nPrefer: wait=60\\r\\n"
            head += b"Content-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body)
            lines = []
            for count in range(110):
                line = socket.socket(socket.AF_UNIX)
                line.connect(sys.argv[1])
                line.sendall(head + body)
                lines.append(line)
            print(sum(line.recv(12) == b"HTTP/1.1 200" for line in lines))
            """
        let callers = try Child("python3", ["-c", script, sidecar.socket, challenge])
        try await fixture.relay.logged("event=request.held", number: 110)
        // The request is answered while all 110 are held, because the cancellation ends these.
        let cancelled = try await sidecar.curl("DELETE", "/challenge/\(challenge)")
        #expect(cancelled.status == 204, "\(cancelled)")
        #expect(await callers.ended().output == "110\n")
    }

    @Test func requestEndsWithItsCaller() async throws {
        let fixture = try await Fixture(.file) { text throws in try text.set("log.level", to: "debug") }
        let sidecar = try await RunningSidecar(fixture.relay)
        _ = try await fixture.bind(try await fixture.registered("ada"))
        let challenge = try await fixture.login("ada")
        let held = try sidecar.begin(
            "POST", "/auth", #"{"challenge":"\#(challenge)"}"#, ["--header", "prefer: wait=60"])
        try await fixture.relay.logged("event=request.held route=/auth")
        held.signal(SIGKILL)
        // If nobody cancelled it, it would end after a minute, with the status 200.
        let end = try await fixture.relay.logged("route=/auth", number: 2)
        #expect(end.contains("outcome=gone"), "\(end)")
    }

    @Test func replacedCertificateIsUsed() async throws {
        let fixture = try await Fixture(.file)
        let sidecar = try await RunningSidecar(fixture.relay)
        #expect(try await sidecar.curl("GET", "/user/ada").status == 404)
        let renewed = try await fixture.json(
            "website", "renew", "shop", "--out", fixture.relay.directory.path, "--end", "0", "--yes")
        #expect(try await sidecar.curl("GET", "/user/ada").status == 401)

        // A key without its certificate is refused, and the former files stay in use.
        try RunningSidecar.copy(try #require(renewed["key"]?.string), to: sidecar.directory("shop.key"))
        sidecar.child.signal(SIGHUP)
        try await sidecar.event("trouble")
        #expect(try await sidecar.curl("GET", "/user/ada").status == 401)
        // No signal: the change of the file is noticed.
        try RunningSidecar.copy(try #require(renewed["certificate"]?.string), to: sidecar.directory("shop.pem"))
        try await sidecar.event("reloaded")
        #expect(try await sidecar.curl("GET", "/user/ada").status == 404)

        // Another token is valid from then on, and the former one is not.
        let next = String(RunningSidecar.token.reversed())
        try TextFile.write(next, to: sidecar.directory("token"))
        try await sidecar.event("reloaded", number: 2)
        for (token, status) in [(next, 404), (RunningSidecar.token, 401)] {
            let answer = try await sidecar.tcp("GET", "/user/ada", ["-H", "authorization: Bearer \(token)"])
            #expect(answer.status == status, "\(answer)")
        }
    }
}
