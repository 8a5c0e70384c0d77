import Synchronization
import TestSupport

@testable import Storage

extension Store {
    /// Until a connection of this MariaDB runs, or waits to run, such a statement.
    func untilRunning(_ statement: String, or isEnough: () -> Bool = { false }) async throws {
        let script = Script("running", reads: [BoundStatement(running, .text(statement))])
        while !isEnough() {
            if try await run(script).row(0).integer(0) > 0 { return }
        }
    }
}

private let running = Statement(
    "SELECT count(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE ?")

/// Said once, and seen from everywhere.
final class Flag: Sendable {
    private let said = Atomic<Bool>(false)

    var isSet: Bool { said.load(ordering: .sequentiallyConsistent) }
    func set() { said.store(true, ordering: .sequentiallyConsistent) }
}
