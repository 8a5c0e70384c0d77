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
    @Test(arguments: StoreKind.all) func headIsWrittenOnceUntilItChanges(kind: StoreKind) async throws {
        let place = try await AuditHeadsPlace(kind)
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
        let place = try await AuditHeadsPlace(kind)
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
        let place = try await AuditHeadsPlace(.memory)
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
        let place = try await AuditHeadsPlace(.memory)
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
        let place = try await AuditHeadsPlace(.memory)
        #expect(rename(place.directory("heads"), place.directory("away")) == 0)
        let failure = #expect(throws: Failure.self) { try place.open() }
        #expect(failure?.message.hasPrefix("audit.heads: ") == true, "\(failure?.message ?? "")")
    }

    /// After a rename, the next file begins with all heads.
    @Test func newFileGetsAllHeads() async throws {
        let place = try await AuditHeadsPlace(.memory)
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
        let place = try await AuditHeadsPlace(kind)
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
        let place = try await AuditHeadsPlace(.memory)
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

    /// The relay starts, and writes all heads when the file answers.
    @Test func fileThatHangsDelaysNoStart() async throws {
        let place = try await AuditHeadsPlace(.memory)
        #expect(mkfifo(place.path, 0o600) == 0)
        let file = try place.open()
        #expect(place.sink.lines.count { $0.contains("event=audit.heads_failing") } == 1)
        // With a reader, the thread that waits for the pipe goes on, and ends.
        let pipe = Glibc.open(place.path, O_RDWR)
        #expect(pipe >= 0 && unlink(place.path) == 0)
        try await place.append(to: file)
        #expect(place.sink.lines.count { $0.contains("event=audit.heads_recovered") } == 1)
        #expect(try place.heads() == (try await place.newest()))
        file.close()
        close(pipe)
    }

    /// A command ends, says why its head is not there, and leaves it to the next relay.
    @Test func fileThatHangsDelaysNoCommand() async throws {
        let place = try await AuditHeadsPlace(.memory)
        let head = try await place.newest()[0]
        let settings = try place.settings(.file(FileName(place.path)))
        #expect(mkfifo(place.path, 0o600) == 0)
        var complaints: [String] = []
        settings.writeHead(head) { complaints.append($0) }
        #expect(complaints.count == 1)
        #expect(complaints.first?.contains("\(place.path) does not answer within 2 s") == true)
        // The thread of the command goes on with a reader. A process that had ended would write nothing.
        let pipe = Glibc.open(place.path, O_RDWR)
        #expect(pipe >= 0)
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = read(pipe, &bytes, bytes.count)
        #expect(String(decoding: bytes.prefix(max(0, count)), as: UTF8.self) == "\n\(head.line)\n")
        close(pipe)
        #expect(unlink(place.path) == 0)
        let file = try place.open()
        defer { file.close() }
        try await place.append(to: file)
        #expect(try place.heads() == [head])
    }
}
