import Daemon
import Domain
import EventLoop
import Relay
import Storage
import World

extension Sandbox {
    /// Unlocks those of the users that are locked or frozen, as `twoefay user unlock` does.
    ///
    /// - Returns: the names of the users that were unlocked.
    func unlock(_ usernames: [String]) async throws(Failure) -> [String] {
        guard let settings else { return [] }
        let (now, randomness) = (loop.time.now(), randomness)
        return try await onThread { () throws(Failure) in
            let masterKey = try settings.loadMasterKey().secret
            let store = try settings.openStore()
            defer { store.close() }
            do throws(StoreFailure) {
                var unlocked: [String] = []
                for name in usernames {
                    guard let user = try store.runBlocking(Accounts.user(name, of: Sandbox.website)) else { continue }
                    let operation = Operations(masterKey: masterKey, randomness: randomness).new()
                    let change = Locks.unlock(
                        user.id, from: [.locked, .frozen], by: .operator, at: now, as: operation)
                    if try store.runBlocking(change) { unlocked.append(name) }
                }
                return unlocked
            } catch {
                throw Failure(store: error)
            }
        }
    }
}
