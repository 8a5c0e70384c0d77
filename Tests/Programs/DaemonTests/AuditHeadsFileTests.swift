import Domain
import Glibc
import Log
import Relay
import Storage
import TestSupport
import Testing
import World

@testable import Daemon

/// The file of heads of the audit. What they show is in `AuditVerificationTests`.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AuditHeadsFileTests {
    /// A relay whose store has some audit rows, and a place for the file.
    private struct Place {
        let rig: RelayRig
        let website: Website
        let directory: TemporaryDirectory
        let sink = MemorySink()
        var path: String { directory("heads/file.jsonl") }

        init(_ kind: StoreKind) async throws {
            rig = try await RelayRig(kind)
            website = try await rig.website("shop")
            directory = try TemporaryDirectory()
            _ = try Files.makeDirectory(directory("heads"), mode: 0o700)
        }

        func open() throws -> AuditHeadsFile {
            let text = "origin: https://login.example.com:8080\nlisten: 127.0.0.1:8080\nstorage: sqlite:twoefay.db\n"
            var settings = try SettingsReader.read(Array(text.utf8), file: directory("twoefay.yaml"))
            settings.auditHeads = FileName(path)
            return try #require(
                try AuditHeadsFile.open(settings, rig.store, log: Log(minimum: .info, time: rig.time, sink: sink)))
        }

        func append(to file: AuditHeadsFile) async throws { try await rig.on { _ in await file.append() } }

        func lines() throws -> [String] { try TextFile.read(path).split(separator: "\n").map(String.init) }

        /// The heads of the file; a line that is not one fails the test.
        func heads() throws -> [AuditHead] { try lines().map { try #require(AuditHead(line: $0), "\($0)") } }

        func newest() async throws -> [AuditHead] {
            let store = rig.store
            return try await rig.on { _ in try await store.run(AuditHead.page(after: nil)) }
        }

        func register(_ name: String) async throws {
            let website = website
            _ = try await rig.on { relay in
                try await relay.register(
                    Registration(username: name, email: nil, phone: nil, displayName: nil, language: nil), by: website,
                    as: relay.operations.new())
            }
        }
    }

    @Test(arguments: StoreKind.all) func headIsWrittenOnceUntilItChanges(kind: StoreKind) async throws {
        let place = try await Place(kind)
        let file = try place.open()
        defer { file.close() }
        try await place.append(to: file)
        let first = try await place.newest()
        #expect(first.count == 1)
        #expect(try place.heads() == first)
        try await place.append(to: file)
        #expect(try place.heads() == first)
        try await place.register("ada")
        try await place.append(to: file)
        let second = try await place.newest()
        #expect(second.count == 1 && second[0].sequence > first[0].sequence)
        #expect(try place.heads() == first + second)
    }

    @Test(arguments: StoreKind.all) func everyStartWritesAllHeads(kind: StoreKind) async throws {
        let place = try await Place(kind)
        let file = try place.open()
        try await place.append(to: file)
        file.close()
        let next = try place.open()
        defer { next.close() }
        try await place.append(to: next)
        let newest = try await place.newest()
        #expect(try place.heads() == newest + newest)
    }

    /// The process ended, or its disk was full, in the middle of a line.
    @Test func lineAfterACutOneIsWhole() async throws {
        let place = try await Place(.memory)
        let newest = try await place.newest()
        try TextFile.write(String(newest[0].line.dropLast(9)), to: place.path)
        let file = try place.open()
        defer { file.close() }
        try await place.append(to: file)
        let lines = try place.lines()
        #expect(lines.count == 2)
        #expect(lines.first.map { AuditHead(line: $0) == nil } == true)
        #expect(lines.last == newest[0].line)
    }

    @Test func fileThatCannotBeWrittenIsTriedAgain() async throws {
        let place = try await Place(.memory)
        let file = try place.open()
        defer { file.close() }
        try await place.append(to: file)
        let first = try await place.newest()
        #expect(rename(place.directory("heads"), place.directory("away")) == 0)
        try await place.register("ada")
        for _ in 0..<2 { try await place.append(to: file) }
        #expect(place.sink.lines.count { $0.contains("event=audit.heads_failing") } == 1)
        #expect(rename(place.directory("away"), place.directory("heads")) == 0)
        try await place.append(to: file)
        #expect(place.sink.lines.count { $0.contains("event=audit.heads_recovered") } == 1)
        #expect(try place.heads() == first + (try await place.newest()))
    }

    @Test func startWithoutTheDirectoryIsRefused() async throws {
        let place = try await Place(.memory)
        #expect(rename(place.directory("heads"), place.directory("away")) == 0)
        let failure = #expect(throws: Failure.self) { try place.open() }
        #expect(failure?.message.hasPrefix("audit.heads: ") == true, "\(failure?.message ?? "")")
    }

    /// There are more writers than one statement reads.
    @Test(arguments: StoreKind.all) func headsOfManyWritersAreWritten(kind: StoreKind) async throws {
        let place = try await Place(kind)
        let writers = AuditHead.pageSize + 3
        let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(writers))"
        let id = kind == .mariadb ? "lpad(i, 16, '0')" : "CAST(printf('%016d', i) AS BLOB)"
        try place.rig.forge(
            "INSERT INTO audit_writer (id, program, host, started_at, public_key) \(numbers) "
                + "SELECT \(id), 'tool', 'host', '2026-01-01 00:00:00.000', x'\(String(repeating: "04", count: 65))' FROM n"
        )
        try place.rig.forge(
            "INSERT INTO audit_link (writer, sequence, at, former, entries, hash, signature) SELECT id, 1, started_at, "
                + "x'\(zeros(32))', x'', x'\(zeros(32))', x'\(zeros(64))' FROM audit_writer WHERE host = 'host'")
        let file = try place.open()
        defer { file.close() }
        try await place.append(to: file)
        let heads = try place.heads()
        #expect(heads.count >= writers)
        #expect(Set(heads.map(\.writer)).count == heads.count)
    }

    private func zeros(_ count: Int) -> String { String(repeating: "00", count: count) }
}
