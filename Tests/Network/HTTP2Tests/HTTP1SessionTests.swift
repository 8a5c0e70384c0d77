import FuzzTargets
import HTTP
import HTTP1Wire
import TestSupport
import Testing
import World

@testable import HTTP2

/// Sessions of HTTP/1.1 without connections.
struct HTTP1SessionTests {
    /// A session whose requests are answered when the test says so.
    private final class Bench {
        private let scratch = SessionScratch()
        private let session: HTTP1Session
        private let now = Instant(nanoseconds: 1)
        /// The stream that waits for its answer.
        private(set) var open: Int32?
        private(set) var latest: Int32 = 0
        /// Streams in a wrong order, two at once, or a second end of one.
        private(set) var faults = 0
        private(set) var output: [UInt8] = []
        var isFull: Bool { session.isFull }
        var isFinished: Bool { session.isFinished }
        /// Returns what was written since the last call.
        func takeText() -> String {
            defer { output = [] }
            return String(decoding: output, as: UTF8.self)
        }

        init() {
            session = HTTP1Session(
                limits: RequestParser.Limits(headBytes: 32_768, fields: 100),
                origin: WebAddress(secure: true, host: "localhost", port: nil), scratch: scratch)
        }

        func receive(_ bytes: some Collection<UInt8>) {
            Array(bytes).withUnsafeBytes { session.receive($0, now) }
            handleEvents()
        }
        func receive(_ text: String) { receive(Array(text.utf8)) }

        func answer(_ stream: Int32, _ text: String = "") {
            let source = BodySource()
            source.outgoing = Array(text.utf8)
            session.submitResponse(
                stream, Response(status: 200), length: text.utf8.count, date: Array("now".utf8), source: source)
        }

        /// Sends, as the connection does, and begins the request that has waited.
        func send() {
            session.send(into: &output, enough: 1_000_000)
            handleEvents()
            if session.receiveWaiting(now) { handleEvents() }
        }

        func end() { session.end() }

        private func handleEvents() {
            for event in scratch.events {
                switch event {
                case .headers(let id, let block):
                    _ = scratch.take(block)
                    if open != nil || id != latest + 1 { faults += 1 }
                    latest = id
                    open = id
                case .data(let id, _), .ended(let id), .malformed(let id, _), .sentEnd(let id):
                    if id != open { faults += 1 }
                case .closed(let id, _):
                    if id != open { faults += 1 }
                    open = nil
                default: faults += 1
                }
            }
            scratch.clear()
        }
    }

    private let get = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

    /// The client would take any other answer for the one to its next request.
    @Test func onlyAnOpenRequestIsAnswered() {
        let bench = Bench()
        bench.answer(0, "early")
        bench.send()
        #expect(bench.takeText() == "")
        bench.receive(get)
        bench.answer(2, "other")
        bench.send()
        #expect(bench.takeText() == "")
        bench.answer(1, "first")
        bench.send()
        #expect(bench.takeText().hasSuffix("\r\n\r\nfirst"))
        bench.answer(1, "again")
        bench.send()
        #expect(bench.takeText() == "")
        bench.receive(get)
        bench.send()
        #expect(bench.takeText() == "")
        bench.answer(2, "second")
        bench.send()
        #expect(bench.takeText().hasSuffix("\r\n\r\nsecond"))
        #expect(bench.faults == 0)
    }

    @Test func endedSessionTellsNobodyToProceed() {
        let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        let (open, ended) = (Bench(), Bench())
        for bench in [open, ended] { bench.receive(head) }
        ended.end()
        for bench in [open, ended] { bench.send() }
        #expect(open.takeText() == "HTTP/1.1 100 Continue\r\n\r\n")
        #expect(ended.takeText() == "")
    }

    /// The rest of a request that was answered before its end is recorded, so that the owner can
    /// drop it. A second answer is not possible.
    @Test func restOfAnAnsweredRequestIsReadToItsEnd() {
        let bench = Bench()
        bench.receive("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhello")
        bench.answer(1)
        bench.send()
        #expect(bench.takeText().contains("\r\nconnection: close\r\n"))
        #expect(bench.open == 1 && !bench.isFinished)
        bench.answer(1)
        bench.receive("hell")
        bench.send()
        #expect(bench.takeText() == "" && bench.open == 1)
        bench.receive("o\(get)")
        bench.send()
        #expect(bench.isFinished && bench.open == nil && bench.latest == 1)
        #expect(bench.takeText() == "" && bench.faults == 0)
    }

    /// Bytes that nobody wrote as requests, in reads of any length, with answers at any time. Each
    /// stream gets one answer, in order, and at most one is open.
    @Test func mutatedRequestsAreSafe() {
        var random = SeededRandomness(seed: 19)
        for _ in 0..<5000 {
            let bench = Bench()
            var rest = (HTTP1Case.mutated(&random) + HTTP1Case.mutated(&random))[...]
            func answer() {
                guard let stream = bench.open else { return }
                bench.answer(stream)
                bench.send()
            }
            while let first = rest.indices.first {
                // The transport reads no more while bytes wait.
                while bench.isFull { answer() }
                let end = min(first + 1 + Int(random.next() % 80), rest.endIndex)
                bench.receive(rest[first..<end])
                rest = rest[end...]
                if random.next() % 4 == 0 { answer() } else { bench.send() }
            }
            // An answer to a request that is incomplete for ever is the last one.
            for _ in 0..<200 where bench.open != nil || bench.isFull { answer() }
            let text = bench.takeText().replacing("HTTP/1.1 100 Continue\r\n\r\n", with: "")
            let count = text.split(separator: "\r\n").count { $0.hasPrefix("HTTP/1.1 200 ") }
            #expect(bench.faults == 0 && !bench.isFull && count == Int(bench.latest), "\(count) \(bench.latest)")
        }
    }
}
