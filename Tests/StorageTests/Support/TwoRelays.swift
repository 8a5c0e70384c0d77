import Bytes
import Domain
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
        first = try database.open()
        second = try database.open()
        holder = try database.url.session(.writing)
        try await Sample.fill(first, at: database.url)
    }

    deinit {
        holder.close()
        first.close()
        second.close()
    }

    /// The holder's transaction begins and takes the rows of the step.
    func hold(_ step: Step) throws {
        try holder.begin(.writing)
        _ = try holder.run([step])
    }
}
