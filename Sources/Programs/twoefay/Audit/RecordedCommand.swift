import Daemon
import Domain
import Relay
import Storage
import World

extension Settings {
    /// Records a command in the audit, if its account may read the master key. Without the key, no
    /// program can write to the audit.
    func recordIfAble(_ event: String, note: String, in store: Store) throws(Failure) {
        guard Files.isReadable(path(of: masterKey)) else { return }
        let operation = Operations(masterKey: try loadMasterKey().secret, randomness: SystemRandomness()).new()
        do throws(StoreFailure) {
            try store.runBlocking(
                ProgramEvents.record(event, note: note, at: SystemTime().now(), as: operation))
        } catch {
            throw Failure(store: error)
        }
    }
}
