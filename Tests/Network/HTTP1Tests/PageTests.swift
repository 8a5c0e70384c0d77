import EventLoop
import HTTP
import HTTP1
import Log
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct PageTests {
    @Test func requestArrivesUnchanged() async throws {
        let rig = try await Rig(Mirror())
        let got = try await rig.curl("/a%20b/c?d=%41+e&f", "--header", "X-One: 1", "--header", "x-one: 2")
        #expect(got.output.hasPrefix("HTTP/1.1 200 OK\r\n"), "\(got)")
        #expect(got.output.contains("GET [/a%20b/c] [d=%41+e&f] host=127.0.0.1:\(rig.port);"))
        #expect(got.output.contains("x-one=1;x-one=2; 127.0.0.1\n"))
        let lines = got.output.lowercased()
        #expect(lines.contains("\r\ncache-control: no-store\r\n"))
        #expect(lines.contains("\r\nx-content-type-options: nosniff\r\n"))
        #expect(lines.contains("\r\ncontent-type: text/plain\r\n"))
        #expect(try await rig.curl("/?").output.contains("GET [/] [] "))
    }

    @Test func requestBodyIsDelivered() async throws {
        let rig = try await Rig(Mirror())
        let posted = try await rig.curl("/form", "--data", "name=J%C3%BCrgen")
        #expect(posted.output.hasPrefix("HTTP/1.1 200"))
        #expect(posted.output.contains("POST [/form] [-]") && posted.output.hasSuffix("\nname=J%C3%BCrgen"))
        let directory = try TemporaryDirectory()
        // curl first sends Expect: 100-continue.
        let large = String(repeating: "0123456789abcdef", count: Request.bodyLimit / 16)
        try TextFile.write(large, to: directory("large"))
        let sent = try await rig.curl(
            "/", "--data-binary", "@\(directory("large"))", "--header", "expect: 100-continue")
        #expect(sent.output.hasSuffix("\n" + large))
        let chunked = try await rig.curl(
            "/", "--data-binary", "@\(directory("large"))", "--header", "transfer-encoding: chunked")
        #expect(chunked.output.hasSuffix("\n" + large))
    }

    @Test func oversizedBodyIsRefused() async throws {
        let rig = try await Rig(Mirror())
        let directory = try TemporaryDirectory()
        try TextFile.write(String(repeating: "x", count: Request.bodyLimit + 1), to: directory("large"))
        let announced = try await rig.curl("/", "--data-binary", "@\(directory("large"))")
        #expect(announced.output.contains("HTTP/1.1 413"), "\(announced)")
        let chunked = try await rig.curl(
            "/", "--data-binary", "@\(directory("large"))", "--header", "transfer-encoding: chunked")
        #expect(chunked.output.contains("HTTP/1.1 413"), "\(chunked)")
        let oversized = try await rig.raw(
            "POST / HTTP/1.1\r\nHost: localhost:\(rig.port)\r\nContent-Length: 99999999999\r\n\r\n")
        #expect(oversized.output.hasPrefix("HTTP/1.1 413"), "\(oversized)")
    }

    @Test func headHasNoBodyAndUnknownMethodsAreRefused() async throws {
        let rig = try await Rig(Mirror())
        let head = try await rig.curl("/", "--head")
        #expect(head.output.hasPrefix("HTTP/1.1 200") && head.output.hasSuffix("\r\n\r\n"))
        for method in ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "BREW"] {
            let other = try await rig.curl("/", "--request", method)
            #expect(other.output.hasPrefix("HTTP/1.1 405"), "\(other)")
            #expect(other.output.lowercased().contains("\r\nallow: get, head, post\r\n"))
        }
    }

    @Test func severalRequestsShareAConnection() async throws {
        let rig = try await Rig(Mirror())
        let head = "Host: localhost:\(rig.port)\r\n"
        let both = try await rig.raw(
            "GET /one HTTP/1.1\r\n\(head)\r\nPOST /two HTTP/1.1\r\n\(head)Content-Length: 3\r\n\r\nabc"
                + "GET /three HTTP/1.1\r\n\(head)Connection: close\r\n\r\n")
        #expect(both.output.contains("GET [/one]") && both.output.contains("POST [/two]"))
        #expect(both.output.contains("\nabc") && both.output.contains("GET [/three]"))
    }

    @Test func slowAnswerDelaysNoOtherRequest() async throws {
        let gate = Gate()
        let rig = try await Rig(
            FixedPages { request in
                if request.path == "/later" { await gate.wait() }
                return Response(status: 200, body: Array("\(request.path)\n".utf8))
            })
        async let later = rig.curl("/later")
        await gate.reached()
        #expect(try await rig.curl("/now").output.hasSuffix("/now\n"))
        gate.open()
        #expect(try await later.output.hasSuffix("/later\n"))
    }

    @Test func missingAnswerIsReplacedAtTheDeadline() async throws {
        let gate = Gate()
        var limits = PageLimits()
        limits.answer = .milliseconds(50)
        let rig = try await Rig(
            FixedPages { _ in
                await gate.wait()
                return Response(status: 200)
            }, limits: limits)
        #expect(try await rig.curl("/").output.hasPrefix("HTTP/1.1 503"))
        gate.open()
    }

    @Test func waitingRequestIsAnsweredAtShutdown() async throws {
        let gate = Gate()
        let rig = try await Rig(
            FixedPages { _ in
                await gate.wait()
                return Response(status: 200)
            })
        async let waiting = rig.curl("/")
        await gate.reached()
        await rig.stop()
        let result = try await waiting
        #expect(result.output.hasPrefix("HTTP/1.1 503") || result.status != 0, "\(result)")
        gate.open()
        #expect(try await rig.curl("/").status == 7)
    }

    /// An invalid value must not become a second field.
    @Test func invalidResponseFieldIsNotSent() async throws {
        let rig = try await Rig(
            FixedPages { _ in
                Response(status: 200, fields: Fields([Fields.Field("x-name", "a\r\nset-cookie: b")]))
            })
        let got = try await rig.curl("/")
        #expect(!got.output.contains("set-cookie"))
        #expect(rig.sink.lines.contains { $0.contains("event=page.field") })
    }
}

/// A gate that holds a handler until the test opens it.
private final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [CheckedContinuation<Void, Never>] = []
        var watching: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func wait() async {
        await withCheckedContinuation { continuation in
            let (isOpen, watching) = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                defer { state.watching = [] }
                return (state.isOpen, state.watching)
            }
            if isOpen { continuation.resume() }
            for watcher in watching { watcher.resume() }
        }
    }

    /// Returns when a handler waits at the gate.
    func reached() async {
        await withCheckedContinuation { continuation in
            let isReached = state.withLock { state in
                if state.waiting.isEmpty { state.watching.append(continuation) }
                return !state.waiting.isEmpty
            }
            if isReached { continuation.resume() }
        }
    }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}
