import Synchronization
import World

@testable import Storage

/// Tables for the engines' own tests: an audit for the operation of each script, a counter, and a table with every
/// type that the product uses.
enum TestSchema {
    static let first = Migration(
        version: 1,
        file: """
            -- An operation's row; a comment with a semicolon; and a quote's end.
            CREATE TABLE IF NOT EXISTS audit (
                operation binary(16) NOT NULL PRIMARY KEY
            ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

            CREATE TABLE IF NOT EXISTS counter (
                id bigint NOT NULL PRIMARY KEY,
                n bigint NOT NULL,
                CHECK (n < 1000000)
            ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

            CREATE TABLE IF NOT EXISTS kept (
                id bigint NOT NULL PRIMARY KEY,
                name varchar(64),
                body text,
                key_id binary(16),
                data blob,
                large mediumblob /*S! */,
                at datetime(3),
                small int
            ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

            CREATE UNIQUE INDEX IF NOT EXISTS kept_name ON kept (name);
            """)

    static let all = [first]
}

/// Scripts with the structure of the product's scripts: a first write decides and leaves the operation, later
/// writes look for the operation, and a read returns the outcome.
enum TestScript {
    private static let insertCounter = Statement(
        """
        INSERT INTO counter (id, n) SELECT :id, :n /*M! FROM DUAL */
        WHERE NOT EXISTS (SELECT 1 FROM counter c WHERE c.id = :id)
        """)
    private static let admit = Statement(
        "INSERT INTO audit (operation) SELECT :operation FROM counter WHERE id = :id AND n < :limit")
    private static let increment = Statement(
        "UPDATE counter SET n = n + 1 WHERE id = :id AND EXISTS (SELECT 1 FROM audit WHERE operation = :operation)")
    private static let outcome = Statement("SELECT COUNT(*) AS done FROM audit WHERE operation = :operation")
    private static let readValue = Statement("SELECT n FROM counter WHERE id = :id")
    private static let copy = Statement("INSERT INTO counter (id, n) VALUES (:id, 0)")

    /// Creates a counter without an operation. If it runs again after a lost connection, it finds the counter and
    /// does nothing.
    static func counter(_ id: Int64, _ n: Int64 = 0) -> Script {
        Script("test.counter", writes: [insertCounter(id: .integer(id), n: .integer(n))])
    }

    /// Raises the counter if it is below `limit`; reads whether it was raised, and its value.
    static func raise(_ id: Int64, below limit: Int64 = 1_000_000, operation: [UInt8] = fresh()) -> Script {
        Script(
            "test.raise", operation: operation,
            writes: [
                admit(operation: .blob(operation), id: .integer(id), limit: .integer(limit)),
                increment(id: .integer(id), operation: .blob(operation)),
            ],
            reads: [outcome(operation: .blob(operation)), readValue(id: .integer(id))])
    }

    private static let admitOnce = Statement(
        """
        INSERT INTO audit (operation) SELECT :operation FROM counter WHERE id = :id
        /*M! ON DUPLICATE KEY UPDATE operation = audit.operation */ /*S! ON CONFLICT DO NOTHING */
        """)

    /// Raises the counter without a guard, so two runs would raise it twice.
    static func raiseAgainAndAgain(_ id: Int64, operation: [UInt8] = fresh()) -> Script {
        Script(
            "test.again", operation: operation,
            writes: [
                admitOnce(operation: .blob(operation), id: .integer(id)),
                increment(id: .integer(id), operation: .blob(operation)),
            ],
            reads: [outcome(operation: .blob(operation)), readValue(id: .integer(id))])
    }

    static func value(of id: Int64) -> Script { Script("test.value", reads: [readValue(id: .integer(id))]) }

    /// Violates the primary key in its second write if the counter exists.
    static func duplicate(_ id: Int64, operation: [UInt8] = fresh()) -> Script {
        Script(
            "test.duplicate", operation: operation,
            writes: [
                admit(operation: .blob(operation), id: .integer(id), limit: .integer(1_000_000)),
                copy(id: .integer(id)),
            ],
            reads: [outcome(operation: .blob(operation))])
    }

    static func wasDone(_ operation: [UInt8]) -> Script {
        Script("test.done", reads: [outcome(operation: .blob(operation))])
    }

    private static let drawn = Atomic<UInt64>(1)

    /// Returns an operation that no other test uses.
    static func fresh() -> [UInt8] {
        var value = drawn.wrappingAdd(1, ordering: .relaxed).newValue
        return (0..<16).map { place in
            guard place >= 8 else { return 0xAB }
            defer { value <<= 8 }
            return UInt8(truncatingIfNeeded: value >> 56)
        }
    }
}
