import CLinux
import EventLoop
import Glibc
import TestSupport
import Testing

@testable import Storage

/// The checkpoint of a SQLite file's write-ahead log, beside the connection that writes.
@Suite(.mayBlock) struct WALCheckpointerTests {
    private static let page = 4096

    private struct Fixture {
        let directory: TemporaryDirectory
        let worker: EventLoop
        let session: SQLiteSession

        init(_ limits: CheckpointPolicy.Limits = CheckpointPolicy.Limits()) throws {
            directory = try TemporaryDirectory()
            let path = directory("test.db")
            try SQLiteSession(path: path, mode: .creating, timeout: .zero).close()
            worker = EventLoop.simulated(name: "store-log", time: TestTime()) { _ in 0 }
            let log = WALCheckpointer(
                try SQLiteSession(path: path, mode: .writing, timeout: .zero), worker: worker, limits: limits)
            session = try SQLiteSession(path: path, mode: .writing, timeout: .zero, log: log)
            try session.execute("CREATE TABLE kept (id INTEGER PRIMARY KEY, body BLOB)")
        }

        func commit(pages: Int) throws {
            try session.execute("INSERT INTO kept (body) VALUES (zeroblob(\(pages * WALCheckpointerTests.page)))")
        }

        /// The number of pages in the file, and the length of the log in bytes.
        var sizes: (file: Int, log: Int) {
            (size("test.db") / WALCheckpointerTests.page, size("test.db-wal"))
        }

        private func size(_ name: String) -> Int {
            var status = stat()
            return stat(directory(name), &status) == 0 ? Int(status.st_size) : 0
        }
    }

    /// SQLite itself would have checkpointed the first thousand pages within a commit.
    @Test func commitDoesNotWaitForACheckpoint() throws {
        let fixture = try Fixture()
        for _ in 0..<15 { try fixture.commit(pages: 100) }
        #expect(fixture.sizes.file < 10)
        #expect(fixture.worker.turn())
        #expect(fixture.sizes.file >= 1500)
        // The file has all of the log, so SQLite writes the log from its start again.
        let before = fixture.sizes.log
        for _ in 0..<10 { try fixture.commit(pages: 90) }
        #expect(fixture.sizes.log == before)
    }

    @Test func walIsBoundedWithAStalledCheckpointThread() throws {
        let fixture = try Fixture(CheckpointPolicy.Limits(step: 10, long: 50, most: 200))
        for _ in 0..<100 { try fixture.commit(pages: 20) }
        #expect(fixture.sizes.file > 1500)
        #expect(fixture.sizes.log < 300 * (Self.page + 24))
    }

    /// Commits that no checkpoint has copied survive the end of the connections, in either order.
    @Test func closingTheCheckpointerFirstLosesNothing() throws {
        let fixture = try Fixture()
        for _ in 0..<15 { try fixture.commit(pages: 100) }
        while fixture.worker.turn() {}
        try fixture.commit(pages: 100)
        fixture.session.close()
        let again = try SQLiteSession(path: fixture.directory("test.db"), mode: .readingOnly, timeout: .zero)
        let rows = try again.run([Statement("SELECT count(*) AS count, sum(length(body)) AS size FROM kept")()])
        #expect(try rows[0].first?.integer("count") == 16)
        #expect(try rows[0].first?.integer("size") == Int64(16 * 100 * Self.page))
    }
}
