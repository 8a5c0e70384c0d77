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
            let time = rig.time
            return try await rig.on { _ in
                var newest: [AuditHead] = []
                _ = try await AuditHeadFeed(store, time: time).round { heads in
                    newest += heads
                    return true
                }
                return newest
            }
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

    /// After a rename, the next file begins with all heads.
    @Test func newFileGetsAllHeads() async throws {
        let place = try await Place(.memory)
        let file = try place.open()
        defer { file.close() }
        try await place.append(to: file)
        let first = try await place.newest()
        #expect(rename(place.path, place.directory("heads/former.jsonl")) == 0)
        try await place.register("ada")
        for _ in 0..<2 { try await place.append(to: file) }
        let second = try await place.newest()
        #expect(second != first)
        #expect(Set(try place.heads().map(\.line)) == Set(second.map(\.line)))
    }

    /// Somebody deletes the end of the chain while the relay runs. The head is not lost, and the log
    /// says so.
    @Test(arguments: StoreKind.all) func headSurvivesTheDeletionOfItsLink(kind: StoreKind) async throws {
        let place = try await Place(kind)
        try await place.register("ada")
        let newest = try await place.newest()
        let file = try place.open()
        defer { file.close() }
        try place.rig.forge("DELETE FROM audit_link WHERE sequence = \(newest[0].sequence)")
        try await place.append(to: file)
        #expect(try place.heads() == newest)
        #expect(place.sink.lines.count { $0.contains("event=audit.tampered") } == 1)
        try await place.append(to: file)
        #expect(place.sink.lines.count { $0.contains("event=audit.tampered") } == 1)
    }

    /// A file that blocks: nobody reads the pipe, and the open call waits.
    @Test func fileThatHangsStopsNobody() async throws {
        let place = try await Place(.memory)
        let file = try place.open()
        #expect(unlink(place.path) == 0)
        #expect(mkfifo(place.path, 0o600) == 0)
        for _ in 0..<2 { try await place.append(to: file) }
        #expect(place.sink.lines.count { $0.contains("event=audit.heads_failing") } == 1)
        // The pipe has a reader now, so the thread of the file goes on, and ends.
        let pipe = Glibc.open(place.path, O_RDWR | O_NONBLOCK)
        #expect(pipe >= 0)
        file.close()
        close(pipe)
    }
}
