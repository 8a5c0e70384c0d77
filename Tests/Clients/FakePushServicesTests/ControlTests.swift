import HTTP
import HTTP2
import Testing
import World

@testable import FakePushServices

/// Valid control files, and the messages for invalid ones.
@Suite struct ControlTests {
    private func read(_ text: String) throws -> Control { try ControlReader.read(Array(text.utf8), file: "control") }

    private func faults(_ text: String) -> [String] {
        do {
            _ = try read(text)
            return []
        } catch let problems as ControlReader.Problems {
            return problems.all
        } catch {
            return ["\(error)"]
        }
    }

    @Test func emptyControlFileIsValid() throws {
        for text in ["", "# nothing\n", "tokens:\nevery:\n"] {
            let control = try read(text)
            #expect(control.scripts.isEmpty && control.receptions.isEmpty && control.faults.rules.isEmpty)
            #expect(control.faults.latency == .zero)
            // Apple itself allows one stream before authentication.
            #expect(control.faults.streams?.unproved == 1)
        }
    }

    @Test func everyAppleReasonIsAccepted() throws {
        for reason in RefusalReason.apple {
            let control = try read("tokens: {aa: \(reason.rawValue)}")
            guard case .refuse(reason, nil, nil) = control.scripts.first?.answers.first else {
                Issue.record("\(reason)")
                continue
            }
        }
    }

    @Test(arguments: [
        ("accept", "accept"), ("silence", "silence"), ("lost", "lost"), ("{answer: cut, accepted: true}", "cut(true)"),
        ("reset", "reset REFUSED_STREAM false"),
        ("{answer: reset, code: CANCEL, accepted: true}", "reset CANCEL true"), ("goaway", "goAway 0"),
        ("{answer: goaway, replays: 7}", "goAway 7"), ("{answer: freeze, accepted: true}", "freeze(true)"),
        ("{answer: accept, after: 1500ms}", "after 1500 accept"),
        ("{answer: Unregistered, timestamp: 1600000000123}", "Unregistered 1600000000123 -"),
        ("{answer: Unregistered, timestamp: 2026-01-31T12:00:00Z}", "Unregistered 1769860800000 -"),
        ("{answer: TooManyRequests, retry-after: 2m}", "TooManyRequests - 120000"),
        ("{answer: respond, status: 502, body: bad}", "502 bad"),
    ]) func everyAnswerFormIsParsed(text: String, meaning: String) throws {
        let control = try read("tokens: {aa: \(text)}")
        #expect(Self.spell(try #require(control.scripts.first?.answers.first)) == meaning)
    }

    private static func spell(_ answer: ScriptedAnswer) -> String {
        switch answer {
        case .accept: "accept"
        case .refuse(let reason, let time, let pause):
            "\(reason.rawValue) \(time.map { "\($0.milliseconds)" } ?? "-") "
                + (pause.map { "\($0.components.seconds * 1000)" } ?? "-")
        case .respond(let response): "\(response.status) " + String(decoding: response.body, as: UTF8.self)
        case .silence: "silence"
        case .lost: "lost"
        case .reset(let code, let accepts): "reset \(code.words) \(accepts)"
        case .goAway(let replays): "goAway \(replays)"
        case .cut(let accepts): "cut(\(accepts))"
        case .freeze(let accepts): "freeze(\(accepts))"
        case .after(let time, let then):
            "after \(time.components.seconds * 1000 + time.components.attoseconds / 1_000_000_000_000_000) "
                + spell(then)
        }
    }

    @Test func listsRulesStreamsAndConnectionsAreParsed() throws {
        let control = try read(
            """
            latency: 3s
            tokens:
              all: accept
              0f: [Shutdown, accept]
            every:
              - {requests: 500, answer: ServiceUnavailable, after: 1s}
            streams:
              unproved: 1
              steps: [{limit: 1, requests: 5}, {limit: 0, for: 200ms}, none]
            connections: [wrong-name, hang, serve]
            frozen: [2, 3]
            """)
        #expect(control.faults.latency == .seconds(3))
        #expect(control.scripts.map(\.prefix) == ["", "0f"])
        #expect(control.scripts.last?.answers.count == 2)
        #expect(control.faults.rules.map(\.requests) == [500])
        #expect(control.faults.streams?.unproved == 1)
        #expect(control.faults.streams?.steps.map(\.limit) == [1, 0, nil])
        #expect(control.faults.streams?.steps.map(\.requests) == [5, nil, nil])
        #expect(control.faults.streams?.steps.map(\.duration) == [nil, .milliseconds(200), nil])
        #expect(control.receptions == [.tls(.wrongName), .hang, .serve])
        #expect(control.faults.frozen == [2, 3])
        #expect(try read("streams: none").faults.streams?.steps.map(\.limit) == [nil])
        #expect(try read("connections: expired").receptions == [.tls(.expired)])
    }

    @Test(arguments: [
        ("latncy: 3s", "control:1:1: latncy is not a key of the control file; did you mean latency?"),
        (
            "latency: 3",
            "control:1:10: latency must be a time with a unit, such as 250ms, 3s, 2m or 1h, and at most a day"
        ),
        (
            "latency: 25h",
            "control:1:10: latency must be a time with a unit, such as 250ms, 3s, 2m or 1h, and at most a day"
        ),
        ("tokens: {aa: Unregisterd}", "control:1:14: Unregisterd is unknown; did you mean Unregistered?"),
        (
            "tokens: {xyz: accept}",
            "control:1:10: xyz is not a token prefix: it must be lower-case hexadecimal digits, or all"
        ),
        ("tokens: {aa: []}", "control:1:14: must be an answer, or a list of answers"),
        ("tokens: [accept]", "control:1:9: tokens must contain keys with values"),
        (
            "tokens: {aa: {after: 2s}}",
            "control:1:14: answer is missing, as in {answer: Unregistered, after: 2s}"
        ),
        (
            "tokens: {aa: {answer: accept, timestamp: 5}}",
            "control:1:31: timestamp is not a key of the answer accept; the keys are answer, after"
        ),
        (
            "tokens: {aa: {answer: Unregistered, timestamp: soon}}",
            "control:1:48: timestamp must be a time such as 2026-01-31T12:00:00Z, or milliseconds since 1970"
        ),
        (
            "tokens: {aa: {answer: reset, accepted: true}}",
            "control:1:40: REFUSED_STREAM says that the request was not processed: use another code"
        ),
        ("every: [accept]", "control:1:9: must have the form {requests: 500, answer: ServiceUnavailable}"),
        ("every: [{answer: accept}]", "control:1:9: requests is missing: one request in this number gets the answer"),
        (
            "every: [{requests: 0, answer: accept}]",
            "control:1:20: requests must be a number from 1 to 1000000000"
        ),
        ("streams: -1", "control:1:10: the limit of streams (or none) must be a number from 0 to 4294967295"),
        (
            "streams: {steps: [{limit: 0, requests: 5}]}",
            "control:1:19: with a limit of 0 there are no requests to count: use for"
        ),
        (
            "streams: {steps: [1, 5]}",
            "control:1:18: step 1 never ends, so the next one never begins: add requests or for"
        ),
        ("streams: {steps: [{limit: 1, for: 0s}]}", "control:1:35: for must be greater than 0"),
        (
            "connections: exspired",
            "control:1:14: exspired is unknown; did you mean expired?"
        ),
        ("frozen: 2", "control:1:9: frozen must be a list"),
        ("latency: 3s\nlatency: 4s", "control:2:1: \"latency\" is already set in line 1"),
    ]) func problemIsReportedWithItsPosition(text: String, fault: String) {
        #expect(faults(text) == [fault])
    }

    @Test func allControlFileProblemsAreReported() {
        #expect(faults("latency: soon\ntokens: {aa: nonsense}\nfrozen: [x]\nevry: []").count == 4)
    }

    /// The example is valid as printed, and also with all its commented lines enabled.
    @Test func exampleControlFileIsValid() throws {
        let control = try read(Control.example)
        #expect(control.scripts.count == 14)
        #expect(control.faults.rules.isEmpty && control.faults.frozen.isEmpty && control.receptions.isEmpty)
        let lines = Control.example.split(separator: "\n", omittingEmptySubsequences: false)
        let keys = ["latency", "every", "streams", "connections", "frozen"]
        var isCode = false
        let whole = lines.map { line -> String in
            guard line.hasPrefix("# ") else { return String(line) }
            if keys.contains(where: { line.hasPrefix("# \($0):") }) {
                isCode = true
            } else if !line.hasPrefix("#   ") {
                isCode = false
            }
            return isCode ? String(line.dropFirst(2)) : String(line)
        }.joined(separator: "\n")
        let all = try read(whole)
        #expect(all.faults.latency == .milliseconds(250))
        #expect(all.faults.rules.map(\.requests) == [500, 1000, 5000])
        #expect(all.faults.streams?.steps.map(\.limit) == [1000, 1, 0])
        #expect(all.receptions == [.hang, .tls(.expired), .goAway, .serve])
        #expect(all.faults.frozen == [2])
        // The example contains every keyword.
        for word in Control.BehaviorName.words.map(\.0) + ErrorCode.names.map(\.0) {
            #expect(Control.example.contains(word), "\(word)")
        }
    }

    /// Random input is refused or accepted, and never crashes the program.
    @Test func malformedControlFileIsRefused() {
        var state: UInt64 = 0x9e37_79b9_7f4a_7c15
        func next(_ bound: Int) -> Int {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return Int(state % UInt64(bound))
        }
        let pieces = [
            "tokens", "every", "streams", "steps", "limit", "requests", "answer", "accept", "reset", ":", ": ", "- ",
            "\n", "\n  ", "{", "}", "[", "]", ", ", "0", "-1", "99999999999999999999", "3s", "ms", "~", "\"", "'", "#",
            "&a", "*a", "!!int", "\t", "\u{0}", "ä", "---", "aa", "timestamp", "connections", "frozen", "latency", "|",
        ]
        let example = Array(Control.example.utf8)
        var refused = 0
        for round in 0..<3000 {
            var bytes: [UInt8]
            if round.isMultiple(of: 2) {
                bytes = (0..<next(30)).flatMap { _ in Array(pieces[next(pieces.count)].utf8) }
            } else {
                bytes = example
                for _ in 0...next(4) {
                    switch next(3) {
                    case 0: bytes[next(bytes.count)] = UInt8(next(256))
                    case 1: bytes.remove(at: next(bytes.count))
                    default: bytes.insert(contentsOf: Array(pieces[next(pieces.count)].utf8), at: next(bytes.count))
                    }
                }
            }
            if (try? ControlReader.read(bytes, file: "control")) == nil { refused += 1 }
        }
        #expect(refused > 1000)
    }
}
