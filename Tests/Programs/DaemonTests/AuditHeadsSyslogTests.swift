import Glibc
import Log
import Metrics
import Relay
import Storage
import TestSupport
import Testing
import World

@testable import Daemon

/// The heads of the audit at a syslog service: a datagram socket of the test.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AuditHeadsSyslogTests {
    private static func target(_ path: String, facility: String = "authpriv") throws -> AuditHeadsTarget {
        try AuditHeadsTarget(settingsText: "syslog:\(facility)@\(path)")
    }

    private static func shows(_ age: Int, _ registry: Registry) -> Bool {
        String(decoding: registry.exposition(), as: UTF8.self).contains("\ntwoefay_audit_heads_age_seconds \(age)\n")
    }

    @Test(arguments: StoreKind.all) func eachHeadIsAMessageOfItsOwn(kind: StoreKind) async throws {
        let place = try await AuditHeadsPlace(kind)
        let service = try NotifySocket(path: place.directory("log"))
        let export = try place.open(Self.target(service.address, facility: "local3"))
        defer { export.close() }
        try await place.append(to: export)
        let first = try await place.newest()
        // The form of syslog(3): facility 19, severity 5.
        let sent = try service.next()
        let beginning = "<157>twoefay-audit[\(getpid())]: "
        #expect(sent.count == 1 && first.count == 1)
        #expect(sent.first == beginning + first[0].line)
        try await place.append(to: export)
        try service.mark("nothing new")
        #expect(try service.next() == ["nothing new"])
        try await place.register("ada")
        try await place.append(to: export)
        #expect(try service.next() == [beginning + (try await place.newest())[0].line])
    }

    /// The service need not run at the start, and may restart.
    @Test func serviceThatIsAwayIsTriedAgain() async throws {
        let place = try await AuditHeadsPlace(.memory)
        let path = place.directory("log")
        let registry = Registry()
        let export = try place.open(Self.target(path))
        defer { export.close() }
        export.show(in: registry)
        for _ in 0..<2 {
            place.time.advance(by: .seconds(5))
            try await place.append(to: export)
        }
        #expect(place.sink.lines.count { $0.contains("event=audit.heads_failing") && $0.contains(path) } == 1)
        #expect(Self.shows(10, registry))
        let service = try NotifySocket(path: path)
        place.time.advance(by: .seconds(5))
        try await place.append(to: export)
        #expect(place.sink.lines.count { $0.contains("event=audit.heads_recovered") } == 1)
        #expect(try service.next().first?.hasSuffix(try await place.newest()[0].line) == true)
        #expect(Self.shows(0, registry))
        // Rounds without a new head count, too: nothing is missing then.
        place.time.advance(by: .seconds(5))
        #expect(Self.shows(5, registry))
        try await place.append(to: export)
        #expect(Self.shows(0, registry))
    }

    /// Nobody knows when a file of the service begins.
    @Test func allHeadsAreSentOnceADay() async throws {
        let place = try await AuditHeadsPlace(.memory)
        let service = try NotifySocket(path: place.directory("log"))
        let export = try place.open(Self.target(service.address))
        defer { export.close() }
        try await place.append(to: export)
        let first = try service.next()
        place.time.advance(by: .seconds(86_399))
        try await place.append(to: export)
        try service.mark("a day")
        #expect(try service.next() == ["a day"])
        place.time.advance(by: .seconds(1))
        try await place.append(to: export)
        #expect(try service.next() == first)
    }

    @Test func settingNamesAFileOrAService() throws {
        let texts = [
            ("heads.jsonl", "heads.jsonl"), ("./syslog", "./syslog"), ("syslog", "syslog:authpriv"),
            ("syslog:", "syslog:authpriv"), ("syslog:daemon", "syslog:daemon"), ("syslog:local7", "syslog:local7"),
            ("syslog:auth@/run/log", "syslog:auth@/run/log"), ("syslog:auth@/dev/log", "syslog:auth"),
        ]
        for (text, written) in texts {
            #expect(try AuditHeadsTarget(settingsText: text).settingsText == written)
        }
        for text in ["syslog:kern", "syslog:local8", "syslog:@/dev/log", "syslog:auth@log", "syslog:auth@"] {
            #expect(throws: SettingsFault.self, "\(text)") { try AuditHeadsTarget(settingsText: text) }
        }
    }

    /// A command writes its own head, so that it does not wait for the next relay.
    @Test func headOfACommandIsWritten() async throws {
        let place = try await AuditHeadsPlace(.memory)
        let head = try await place.newest()[0]
        var settings = try place.settings(AuditHeadsTarget.file(FileName(place.path)))
        // A new file begins with all heads, which only a relay writes.
        settings.writeHead(head)
        #expect(!Files.exists(place.path))
        try TextFile.write("", to: place.path)
        settings.writeHead(head)
        #expect(try place.heads() == [head])
        let service = try NotifySocket(path: place.directory("log"))
        settings.auditHeads = try Self.target(service.address)
        settings.writeHead(head)
        #expect(try service.next().first?.hasSuffix(head.line) == true)
        settings.auditHeads = nil
        settings.writeHead(head)
        try service.mark("no other")
        #expect(try service.next() == ["no other"])
    }
}
