import Bytes
import Domain
import TestSupport
import World

@testable import Relay
@testable import Storage

/// Two relays on one MariaDB with the sample in it, and a session that is neither's: whoever needs a row that it holds
/// has to wait until it commits.
final class TwoRelays {
    let first: Store
    let second: Store
    let holder: any Session
    let operations = Operations(
        masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SystemRandomness())

    init() async throws {
        let database = try Engine.mariadb.database(Migration.all)
        // On a busy machine the holder may hold for longer than a relay waits: whom it halts would begin anew.
        var options = StoreOptions.patient
        options.silence = options.deadline
        first = try database.open(options: options)
        second = try database.open(options: options)
        holder = try database.url.session(.writing)
        try await Sample.fill(first, at: database.url)
        for store in [first, second] { _ = try await store.run(Script("wait", writes: [BoundStatement(Self.timeout)])) }
    }

    private static let timeout = Statement("SET innodb_lock_wait_timeout = 60")

    deinit {
        holder.close()
        first.close()
        second.close()
    }

    /// The holder's transaction begins and takes the rows of the step.
    func hold(_ step: BoundStatement) throws {
        try holder.begin(.writing)
        _ = try holder.run([step])
    }
}
