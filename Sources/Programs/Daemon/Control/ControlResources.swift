import KeyService
import Log
import Relay
import Storage
import Synchronization
import World

/// The store, the settings and the keys with which the relay performs commands for callers of its
/// control socket.
///
/// Its store has connections of its own. So a command that reads all users for a minute delays no
/// login, and a store that is busy with logins delays only the command.
final class ControlResources: Sendable {
    private struct InUse {
        var settings: Settings
        var keys: DataKeys
        var groups: ControlGroups
    }

    let store: Store
    private let isOwn: Bool
    private let inUse: Mutex<InUse>
    private let listener = Mutex<ControlListener?>(nil)

    /// Opens a store beside that of the relay. Returns nil if the settings have no control socket.
    static func open(
        _ settings: Settings, _ keys: DataKeys, beside store: Store, _ options: StoreOptions, log: Log
    ) throws(Failure) -> ControlResources? {
        guard settings.control.socket != nil else { return nil }
        let groups = try ControlGroups(settings.control)
        let url = try settings.store()
        let inUse = InUse(settings: settings, keys: keys, groups: groups)
        // Two stores in memory would be two databases.
        if case .memory = url { return ControlResources(store, isOwn: false, inUse) }
        var options = options
        options.watches = false
        do throws(StoreFailure) {
            let own = try Store.open(url, time: SystemTime(), log: log, options: options)
            return ControlResources(own, isOwn: true, inUse)
        } catch {
            throw Failure(store: error)
        }
    }

    private init(_ store: Store, isOwn: Bool, _ inUse: InUse) {
        self.store = store
        self.isOwn = isOwn
        self.inUse = Mutex(inUse)
    }

    var settings: Settings { inUse.withLock { $0.settings } }
    var keys: DataKeys { inUse.withLock { $0.keys } }
    var groups: ControlGroups { inUse.withLock { $0.groups } }

    /// Sets the socket whose mode the groups decide.
    func use(_ listener: ControlListener) { self.listener.withLock { $0 = listener } }

    /// Lets accounts connect if groups have roles. It comes before the roles themselves: until then, the
    /// relay refuses these accounts.
    func open(for groups: ControlGroups) throws(Failure) {
        guard !groups.isEmpty, let listener = listener.withLock({ $0 }) else { return }
        try listener.use(groups.socketMode)
    }

    /// Uses other settings and keys from now on. The caller has looked the groups up, which may
    /// fail.
    func replace(_ settings: Settings, _ keys: DataKeys, _ groups: ControlGroups) throws(Failure) {
        let (rows, sealer) = (try keys.usableRowAuthenticator(), try keys.usableSealer())
        store.use(rows)
        store.use(settings.personalSealer(sealer))
        inUse.withLock { $0 = InUse(settings: settings, keys: keys, groups: groups) }
        // A socket that stays open lets nobody in: the relay refuses accounts without a role.
        if groups.isEmpty, let listener = listener.withLock({ $0 }) { try? listener.use(groups.socketMode) }
    }

    func close() { if isOwn { store.close() } }
}
