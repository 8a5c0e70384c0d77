import Bytes
import Crypto
import Domain
import Log
import Metrics
import Relay
import Storage
import TestSupport
import World

@testable import Daemon

/// A website whose users come from a CSV file, over a real store.
struct SyncedShop {
    static let header = "id,username,email,phone,display_name,language,groups"

    let rig: RelayRig
    let website: Website
    let settings: Settings
    let keys: DirectorySync.Keys
    private let files: TemporaryDirectory

    /// - Parameters:
    ///   - policies: the policies of the website.
    ///   - lines: further keys of the directory in the settings.
    init(_ kind: StoreKind, policies: [String: String] = [:], _ lines: String = "") async throws {
        try await self.init(over: try await RelayRig(kind), policies, lines)
    }

    private init(over rig: RelayRig, _ policies: [String: String], _ lines: String) async throws {
        self.rig = rig
        files = try TemporaryDirectory()
        website = try await rig.website("shop", policies: policies.merging(["answers": "signed"]) { own, _ in own })
        let text = """
            origin: https://login.example.com:8080
            listen: 127.0.0.1:8080
            storage: sqlite:twoefay.db
            directories:
              - name: staff
                website: shop
                kind: csv
                file: users.csv
            """
        let indented = lines.split(separator: "\n").map { "\n    \($0)" }.joined()
        settings = try SettingsReader.read(Array((text + indented + "\n").utf8), file: files("twoefay.yaml"))
        keys = DirectorySync.Keys(
            operations: Operations(masterKey: RelayRig.masterKey, randomness: SystemRandomness()),
            sealer: try RelayRig.sealer(), randomness: SystemRandomness())
    }

    var directory: Settings.DirectorySettings { settings.directories.all[0] }
    var sync: DirectorySync { DirectorySync(directory, settings, store: rig.store, time: rig.time) }

    /// Replaces the file.
    func write(_ rows: String...) throws {
        try TextFile.write(([Self.header] + rows).map { "\($0)\n" }.joined(), to: files("users.csv"))
    }

    /// Replaces the file, and syncs.
    @discardableResult func sync(_ rows: String..., allowsMany: Bool = false) throws -> DirectorySync.Outcome {
        try TextFile.write(([Self.header] + rows).map { "\($0)\n" }.joined(), to: files("users.csv"))
        return try sync.run(keys, allowsMany: allowsMany)
    }

    /// Syncs as the relay does when the interval is over.
    func syncDue() async throws {
        let work = try DirectoryWork(
            settings, store: rig.store, relay: rig.relay.id, operationsKey: RelayRig.masterKey,
            sealer: try RelayRig.sealer(), randomness: SystemRandomness(), time: rig.time,
            log: Log(minimum: .info, time: rig.time, sink: rig.sink), Registry())
        defer { work.close() }
        try await rig.on { relay in
            await relay.runHeartbeat()
            await work.syncDue()
        }
    }

    /// Syncs, and changes the store by SQL between the plan and its first change.
    func sync(afterThePlan sql: String) throws -> DirectorySync.Outcome {
        let run: OperationID = keys.operations.draw()
        try rig.store.runBlocking(DirectoryRuns.begin(directory.name, run, at: rig.time.now()))
        var failure: (any Error)?
        let outcome = try sync.carryOut(run, keys, allowsMany: false) {
            do { try rig.execute(sql) } catch { failure = error }
            return false
        }
        if let failure { throw failure }
        return outcome
    }

    /// Returns a user as the store has it.
    func user(_ name: String) throws -> Accounts.User? {
        try rig.store.runBlocking(Accounts.user(name, of: "shop"))
    }

    /// Returns the id of a user, which stays the same through renames.
    func id(_ name: String) throws -> UserID? { try user(name)?.id }

    /// Opens a login.
    func login(_ name: String) async throws -> OpenedChallenge {
        let website = website
        return try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .username(name)), by: website, as: relay.operations.new())
        }
    }

    /// Returns the reason with which a login failed; empty while it has none.
    func reason(_ challenge: ChallengeID) throws -> String {
        try rig.text("SELECT coalesce(reason, '') FROM challenge WHERE id = x'\(challenge)'")
    }

    /// Binds a phone to a user who was added by a sync.
    func bindPhone(_ name: String) async throws -> RelayRig.BoundPhone {
        let website = website
        let (token, activation) = try await rig.on { relay in
            let user = try await relay.user(named: name, of: website)
            return (user.token, try await relay.activate(username: name, by: website, as: relay.operations.new()))
        }
        let phone = try TestPhone(pushToken: "push-\(name)")
        let binding = try await rig.bind(phone, user: token, code: activation.code, website: website.name)
        guard case .bound(let bound) = binding else { throw RigFailure("the phone has to wait") }
        let key = phone.key.publicKey.spkiThumbprint
        return (phone, try await rig.on { relay in try await relay.device(bound.device, key: key, isCertified: true) })
    }

    func token(_ name: String) async throws -> UserToken {
        let website = website
        return try await rig.on { relay in try await relay.user(named: name, of: website).token }
    }

    /// Has an activation code mailed to a user, and returns the code (policy `enrolment: letter`).
    func mailedCode(_ name: String) async throws -> String {
        let website = website
        _ = try await rig.on { relay in
            try await relay.activate(username: name, by: website, as: relay.operations.new())
        }
        guard case .activation(let activation) = await rig.mails.next().content else {
            throw RigFailure("the mail has no activation")
        }
        return String(decoding: activation.code.reveal(), as: UTF8.self)
    }

    /// Returns the rows of users, activations, factors and logins that no relay has signed as they
    /// are.
    func forged() throws -> [RowReport] {
        let authenticator = try RelayRig.rowAuthenticator()
        return try ["user", "activation", "factor", "challenge"].flatMap { name in
            let table = SignedTable.all.first { $0.name == name }
            guard let table else { throw RigFailure("there is no table \(name)") }
            return try rig.store.runBlocking(RowQueries.page(of: table, after: nil, with: authenticator))
                .filter { $0.verdict != .genuine }
        }
    }
}
