import Domain
import EventLoop
import Log
import Relay
import Storage
import World

extension Daemon {
    /// Records an event of this process in the audit. A store that fails stops neither a start nor a
    /// stop; the log says that the row is missing.
    ///
    /// - Parameters:
    ///   - changes: the values before and after, as JSON.
    ///   - actor: who asked for it; nil for the process itself.
    func record(
        _ event: String, outcome: String? = nil, note: String? = nil, changes: String? = nil, by actor: Actor? = nil
    ) async {
        let query = ProgramEvents.record(
            event, outcome: outcome, note: note?.replacing("\n", with: "; "), changes: changes, at: SystemTime().now(),
            as: relay.operations.new())
        await group.loops[0].perform { [store, log] in
            await Actor.run(actor) {
                do throws(StoreFailure) {
                    try await store.run(query)
                } catch {
                    log.warning("audit.unrecorded", [.name: event, .error: "\(error)"])
                }
            }
        }
    }
}
