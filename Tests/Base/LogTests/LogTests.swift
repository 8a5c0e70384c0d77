import JSON
import Log
import Testing
import World

private struct FixedTime: TimeSource {
    func now() -> Timestamp { Timestamp(milliseconds: 1_795_249_354_123) }
    func instant() -> Instant { Instant(nanoseconds: 0) }
}

private func lines(
    _ format: LogFormat = .logfmt, minimum: LogLevel = .debug, _ record: (Log) -> Void
) -> [String] {
    let sink = MemorySink()
    record(Log(format: format, minimum: minimum, time: FixedTime(), sink: sink))
    return sink.lines
}

@Suite struct LogTests {
    @Test func logfmtLineIsFormatted() {
        let seen = lines {
            $0.info("login.asked", [.website: "shop", .status: 201, .outcome: true, .reason: "two words", .error: ""])
        }
        #expect(
            seen == [
                "time=2026-11-21T08:22:34.123Z level=info event=login.asked website=shop status=201 outcome=true "
                    + "reason=\"two words\" error=\"\""
            ])
    }

    @Test func jsonLineIsFormatted() throws {
        let seen = lines(.json) { $0.error("store.lost", [.error: "a \"b\"\n", .count: -3]) }
        #expect(
            seen == [
                #"{"time":"2026-11-21T08:22:34.123Z","level":"error","event":"store.lost","#
                    + #""error":"a \"b\"\n","count":-3}"#
            ])
    }

    @Test func levelsBelowTheMinimumAreDropped() {
        let all: (Log) -> Void = {
            $0.debug("a")
            $0.info("b")
            $0.notice("c")
            $0.warning("d")
            $0.error("e")
        }
        #expect(lines(minimum: .debug, all).count == 5)
        #expect(
            lines(minimum: .warning, all).map { $0.suffix(21) } == ["level=warning event=d", "Z level=error event=e"])
    }

    @Test func fieldsBelowTheMinimumAreNotEvaluated() {
        var made = 0
        func fields() -> LogFields {
            made += 1
            return [:]
        }
        let log = Log(minimum: .notice, time: FixedTime(), sink: MemorySink())
        log.info("a", fields())
        #expect(made == 0)
        log.notice("a", fields())
        #expect(made == 1)
    }

    @Test func childLogCarriesItsFields() {
        let seen = lines {
            let child = $0.with([.request: "r1", .website: "shop"])
            child.info("a", [.status: 200])
            child.with([.website: "bank"]).info("b", [.request: "r2"])
            $0.info("c")
        }
        #expect(
            seen.map { $0.split(separator: " ").dropFirst(2).joined(separator: " ") } == [
                "event=a request=r1 website=shop status=200", "event=b website=bank request=r2", "event=c",
            ])
    }

    @Test func nilValueOmitsItsKey() {
        let device: String? = nil
        let user: String? = "u"
        #expect(lines { $0.info("a", [.device: device, .user: user]) }.first?.hasSuffix("event=a user=u") == true)
    }

    @Test(
        "Text of a peer cannot end a line, add a field or control a terminal",
        arguments: [
            ("a\nlevel=error event=forged", #""a\nlevel=error event=forged""#), ("a\r\nb", #""a\r\nb""#),
            ("x\" level=error", #""x\" level=error""#), ("x\\", #""x\\""#), ("a=b", #""a=b""#),
            ("\u{1b}[31mred", #""\u001b[31mred""#), ("\u{9b}31m", #""\u009b31m""#), ("\u{7f}\u{0}", #""\u007f\u0000""#),
            ("a\u{85}b\u{2028}c\u{2029}", #""a\u0085b\u2028c\u2029""#), ("\u{202e}txt", #""\u202etxt""#),
            ("\u{2066}\u{200f}\u{feff}", #""\u2066\u200f\ufeff""#), ("\u{e0041}", #""\udb40\udc41""#),
            ("Grüße\t🙂", #""Grüße\t🙂""#),
        ])
    func logInjectionIsPrevented(text: String, logged: String) throws {
        let plain = try #require(lines { $0.info("a", [.error: text]) }.first)
        #expect(plain == "time=2026-11-21T08:22:34.123Z level=info event=a error=\(logged)")
        let json = try #require(lines(.json) { $0.info("a", [.error: text]) }.first)
        #expect(json.hasSuffix(#","error":\#(logged)}"#))
        // The JSON string decodes to the same text. U+0000 is an exception, because the reader
        // refuses it.
        if !text.unicodeScalars.contains("\0") {
            #expect(try JSONReader.read(Array(json.utf8)).object?["error"]?.string == text)
        }
    }

    @Test func longValuesAreCut() throws {
        let long = String(repeating: "x", count: 100_000)
        let line = try #require(lines { $0.info("a", [.error: long, .status: 1]) }.first)
        #expect(line.utf8.count < 1200)
        #expect(line.hasSuffix("x…\" status=1"))
    }

    @Test func logKeysAreLowercaseWords() {
        for key in LogKey.allCases {
            #expect(key.rawValue.utf8.allSatisfy { (0x61...0x7a).contains($0) || $0 == 0x5f })
            #expect(!["time", "level", "event"].contains(key.rawValue))
        }
    }

    @Test func linesAreCompleteAndFlushed() {
        let sink = MemorySink()
        sink.write(Array("a b\n".utf8))
        #expect(sink.drain() == ["a b"])
        #expect(sink.drain() == [])
    }
}
