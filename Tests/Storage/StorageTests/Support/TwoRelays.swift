import Bytes
import Domain
import TestSupport
import World

@testable import Relay
@testable import Storage

/// Two relays on one MariaDB with the sample, and a separate session. A relay that needs a row that this session
/// has locked waits until the session commits.
final class TwoRelays {
    let first: Store
    let second: Store
    let holder: any Session
    let operations = Operations(
        masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SystemRandomness())

    init() async throws {
        let database = try Engine.mariadb.database(Migration.all)
        // On a busy machine the session may hold the lock longer than a relay usually waits. The relay would then
        // start again.
        var options = StoreOptions.patient
        options.silence = options.deadline
        first = try database.open(options: options)
        second = try database.open(options: options)
        holder = try database.url.session(.writing)
        try await Sample.fill(first, at: database.url)
        for store in [first, second] { _ = try await store.run(Script("wait", writes: [Self.timeout()])) }
    }

    private static let timeout = Statement("SET innodb_lock_wait_timeout = 60")

    deinit {
        holder.close()
        first.close()
        second.close()
    }

    /// Begins the session's transaction and locks the rows of the step.
    func hold(_ step: BoundStatement) throws {
        try holder.begin(.writing)
        _ = try holder.run([step])
    }
}
