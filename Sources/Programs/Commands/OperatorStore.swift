import Crypto
import Daemon
import Domain
import Relay
import Storage
import World

/// The store as the operator's commands use it. A command of the tool changes the store directly, as
/// a relay would; a running relay sees the change at its next request. For a caller of its control
/// socket, the relay runs the command with a store and keys of its own.
public struct OperatorStore {
    public let now: Timestamp
    public let settings: Settings
    private let store: Store
    /// The running relay that performs the command; nil if the tool does.
    private let host: CommandHost?

    public init(_ settings: Settings, time: any TimeSource = SystemTime()) throws(Failure) {
        self.settings = settings
        store = try settings.openStore()
        host = nil
        now = time.now()
    }

    /// Opens the store of a command, or takes that of the relay that performs it.
    public init(_ invocation: Invocation) throws(Failure) {
        guard let host = invocation.host else {
            self = try OperatorStore(try Settings.load(invocation))
            return
        }
        self.init(served: host)
    }

    private init(served host: CommandHost) {
        settings = host.settings
        store = host.store
        self.host = host
        now = SystemTime().now()
    }

    public func close() { if host == nil { store.close() } }

    /// Whether a relay performs the command for somebody else.
    public var isServed: Bool { host != nil }

    /// The most rows of a list that a relay keeps in memory for a caller of its control socket.
    static let mostServed = 10_000

    /// Refuses a list that is too long for the relay.
    ///
    /// - Parameter next: how to get the further rows.
    func requireServed(limit: Int, next: String) throws(Failure) {
        guard isServed, limit > Self.mostServed else { return }
        throw Failure(.usage, "--limit must be at most \(Self.mostServed) over the control socket", next: next)
    }

    public func read<Answer>(_ query: Query<Answer>) throws(Failure) -> Answer {
        try host?.requireCaller(toChange: query.isChange)
        do throws(StoreFailure) {
            return try store.runBlocking(query)
        } catch {
            throw Failure(store: error)
        }
    }

    /// Runs many queries, which the store combines into few transactions. All of them run; the
    /// first failure is thrown.
    public func readAll<Answer>(_ queries: [Query<Answer>]) throws(Failure) -> [Answer] {
        try host?.requireCaller(toChange: queries.contains(where: \.isChange))
        do throws(StoreFailure) {
            return try store.runBlocking(queries)
        } catch {
            throw Failure(store: error)
        }
    }

    /// Checks the audit. `progress` is called with the number of rows that were read so far.
    public func verifyAudit(heads: AuditHeadReader?, progress: (Int) -> Void) throws(Failure) -> AuditVerification {
        guard Files.isReadable(settings.path(of: settings.masterKey)) else {
            throw Failure(
                .failed, "the master key cannot be read", next: "The check needs it. Run the command as the operator.")
        }
        do throws(StoreFailure) {
            return try AuditVerification.run(store, heads: heads, at: now, progress: progress)
        } catch {
            throw Failure(store: error)
        }
    }

    /// Signs rows that old keys have signed again, under the current key.
    ///
    /// - Parameter progress: is called with the number of rows that were read so far.
    public func signAgain(progress: @escaping @Sendable (Int) -> Void) throws(Failure) {
        do throws(StoreFailure) {
            _ = try store.signAgainBlocking(progress: progress)
        } catch {
            throw Failure(store: error)
        }
    }

    /// Runs a change under a new operation.
    public func run<Answer>(_ change: (Operation) -> Query<Answer>) throws(Failure) -> Answer {
        try read(change(try newOperation()))
    }

    /// Runs several changes, each under a new operation. The answer is nil if a row that the change
    /// relies on is not genuine.
    func runIfGenuine<Answer>(_ changes: [(Operation) -> Query<Answer>]) throws(Failure) -> [Answer?] {
        try host?.requireCaller(toChange: true)
        var queries: [Query<Answer>] = []
        for change in changes { queries.append(change(try newOperation())) }
        do throws(StoreFailure) {
            return try store.runBlockingIfGenuine(queries)
        } catch {
            throw Failure(store: error)
        }
    }

    /// Reads a query that relies on one row. Returns nil if that row is not genuine.
    private func readIfGenuine<Answer>(_ query: Query<Answer>) throws(Failure) -> Answer? {
        do throws(StoreFailure) {
            return try store.runBlocking(query)
        } catch {
            guard case .forged = error else { throw Failure(store: error) }
            return nil
        }
    }

    /// Adds the last report of the phone. One that is not genuine is left out, and marked.
    public func addReport(to device: inout Accounts.Device) throws(Failure) {
        guard let report = try readIfGenuine(DeviceReports.last(of: device.view.id)) else {
            device.view.isReportForged = true
            return
        }
        device.view.report = report
    }

    /// Adds the reports of the user's phones, and checks the user's row.
    public func complete(_ user: inout Accounts.User) throws(Failure) {
        user.isForged = try readIfGenuine(Accounts.check(user.id)) == nil
        for index in user.devices.indices { try addReport(to: &user.devices[index]) }
    }

    public func newOperation() throws(Failure) -> Operation {
        if let host { return host.newOperation() }
        return Operations(masterKey: try settings.loadMasterKey().secret, randomness: SystemRandomness()).new()
    }

    /// Returns the sealer for secrets.
    public func usableSealer() throws(Failure) -> Sealer {
        if let host { return try host.usableSealer() }
        return try settings.loadMasterKey().usableSealer()
    }

    public func website(named name: String) throws(Failure) -> Websites.Listed {
        guard let website = try read(Websites.named(name)) else {
            throw Failure(
                .notFound, "there is no website \(name)", next: "'twoefay website list' shows the websites.")
        }
        guard !website.isRemoved else {
            throw Failure(
                .notFound, "the website \(name) is removed",
                next: "'twoefay website add \(name) --reuse-name' gives the name to a new website.")
        }
        return website
    }

    public func renew(
        _ website: RenewedWebsite, of id: WebsiteID, directory: String
    ) throws(Failure) -> RenewedWebsite.Credentials {
        try website.write(
            of: id, to: store, settings: settings, directory: directory, at: now, as: try newOperation())
    }

    public static let usersWebsite = Command.Option("website", .one("NAME"), "The website of the user (required).")

    /// Returns the user that the first operand and `--website` name.
    public func user(_ invocation: Invocation) throws(Failure) -> Accounts.User {
        guard let website = invocation.value("website") else {
            throw Failure(
                .usage, "--website is missing",
                next: "User names belong to a website. 'twoefay website list' shows the websites.")
        }
        let username = invocation.operand(0)
        if let user = try read(Accounts.user(username, of: website)) { return user }
        _ = try self.website(named: website)
        throw Failure(
            .notFound, "\(website) has no user \(username)",
            next: "User names are case-sensitive, as the website gave them to /register.")
    }

    /// Returns the phone whose id is the first operand.
    public func device(_ invocation: Invocation) throws(Failure) -> Accounts.Device {
        let text = invocation.operand(0)
        let next = "'twoefay device list USER --website NAME' shows the phones of a user."
        guard let id = DeviceID(text) else {
            throw Failure(.usage, "DEVICE must be the 32 digits of a phone's id", next: next)
        }
        guard let device = try read(Accounts.device(id)) else {
            throw Failure(.notFound, "there is no phone \(text)", next: next)
        }
        return device
    }
}
