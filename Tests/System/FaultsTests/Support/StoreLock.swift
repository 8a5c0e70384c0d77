import CLinux
import Glibc
import Storage
import TestSupport

/// A lock on the store of a relay, held by another process: the relay's writes to one table wait, in SQLite all of
/// them, and its reads continue.
final class StoreLock: Sendable {
    private let child: Child
    private let feed: Int32

    static func take(_ relay: RunningRelay, table: String = "outbox") async throws -> StoreLock {
        var ends: [Int32] = [0, 0]
        guard pipe2(&ends, O_CLOEXEC) == 0 else { throw Child.Problem(description: "pipe2: errno \(errno)") }
        defer { close(ends[0]) }
        let child: Child
        switch relay.storage {
        case .mariadb(let server):
            child = try Child(
                "mariadb",
                [
                    "--no-defaults", "--batch", "--skip-column-names", "--unbuffered", "--protocol=tcp",
                    "--user=\(server.user)",
                    "--host=\(server.hosts[0].name)", "--port=\(server.hosts[0].port)", server.database,
                ], input: ends[0])
            let words = Array("LOCK TABLES \(table) READ; SELECT 'locked';\n".utf8)
            _ = write(ends[1], words, words.count)
        case .sqlite(let path): child = try Child("/usr/bin/python3", ["-c", script, path], input: ends[0])
        case .memory: throw Child.Problem(description: "nobody else can have a store in memory")
        }
        _ = try await child.line(.output, with: "locked")
        return StoreLock(child, feed: ends[1])
    }

    private init(_ child: Child, feed: Int32) {
        self.child = child
        self.feed = feed
    }

    deinit {
        child.signal(SIGKILL)
        close(feed)
    }

    /// Releases the lock, and returns when it is released.
    func release() async {
        child.signal(SIGKILL)
        _ = await child.ended()
    }

    private static let script = """
        import sqlite3, sys
        store = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
        store.execute("BEGIN IMMEDIATE")
        print("locked", flush=True)
        sys.stdin.read()
        """
}
