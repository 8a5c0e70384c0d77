import Synchronization
import TestSupport

@testable import Storage

extension Store {
    /// Waits until a connection of this MariaDB runs a matching statement, or waits to run it.
    func untilRunning(_ statement: String, or isEnough: () -> Bool = { false }) async throws {
        let script = Script("running", reads: [running(pattern: .text(statement))])
        while !isEnough() {
            if try await run(script).row(0).integer("count") > 0 { return }
        }
    }
}

private let running = Statement(
    "SELECT count(*) AS count FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE :pattern")

/// A flag that any thread can set once, and every thread can read.
final class Flag: Sendable {
    private let said = Atomic<Bool>(false)

    var isSet: Bool { said.load(ordering: .sequentiallyConsistent) }
    func set() { said.store(true, ordering: .sequentiallyConsistent) }
}
