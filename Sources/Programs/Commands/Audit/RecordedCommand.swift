import Daemon
import Domain
import Relay
import Storage
import World

extension Tool {
    /// The commands that leave rows in the audit, and so take `--reason`.
    public static let recordedCommands: Set<String> = [
        "init",
        "website add", "website edit", "website renew", "website revoke-key", "website disable", "website enable",
        "website remove", "website crl", "website webhook", "user delete", "user export", "user lock", "user unlock",
        "user enable",
        "user expire", "user activate", "user confirm-identity", "user recover", "user approve-recovery",
        "user cancel-recovery", "user temporary-code", "user remove-factor", "device suspend", "device resume",
        "device rename", "device verify",
        "device revoke", "device unlock-code", "notice leave", "notice withdraw", "import", "directory sync",
        "outbox replay", "outbox drop", "migrate", "backup", "restore",
        "rekey", "keys roll", "rows adopt", "audit export", "reload",
        "server renew", "server pins", "server switch", "server finish", "authority replace", "authority finish",
    ]
}

extension Settings {
    /// Records a change of keys or certificates that is done. It needs no store, because the keys may be
    /// on a machine without one.
    ///
    /// - Returns: what to add to the report if the audit has no row of the change.
    public func recordDone(_ event: String, note: String) -> String {
        do throws(Failure) {
            guard Files.isReadable(path(of: masterKey)) else {
                return "\nThe audit has no row of it: the master key cannot be read."
            }
            let store = try openStore()
            defer { store.close() }
            try recordIfAble(event, note: note, in: store)
            return ""
        } catch {
            return "\nThe audit has no row of it: \(error.message)."
        }
    }

    /// Records a command in the audit, if its account may read the master key. Without the key, no
    /// program can write to the audit.
    public func recordIfAble(
        _ event: String, outcome: String? = nil, note: String, in store: Store
    ) throws(Failure) {
        guard Files.isReadable(path(of: masterKey)) else { return }
        let operation = Operations(masterKey: try loadMasterKey().secret, randomness: SystemRandomness()).new()
        do throws(StoreFailure) {
            try store.runBlocking(
                ProgramEvents.record(event, outcome: outcome, note: note, at: SystemTime().now(), as: operation))
        } catch {
            throw Failure(store: error)
        }
    }
}
