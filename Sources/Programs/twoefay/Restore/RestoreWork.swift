import Bytes
import Daemon
import Domain
import Glibc
import Log
import Relay
import Storage
import World

/// The work in a store that has the copy: it takes a new epoch, voids what may have been used, and
/// replays what an export of the audit tells.
///
/// Invariant: each step can run again, and the operations follow from the epoch. So an interrupted
/// run is continued by the next one, and ends with the same rows, the same audit and the same
/// report.
struct RestoreWork {
    let settings: Settings
    let file: RestoredFile
    let export: AuditExportFile?
    let progress: ProgressLines
    /// The number of rows that are void now.
    private(set) var voided: [RestoreEffect: Int64] = [:]
    /// The number of replayed losses, by kind.
    private(set) var replayed: [String: Int] = [:]
    /// The losses that are about users, phones or websites that the copy does not have.
    private(set) var absent = 0
    private(set) var plan = ReplayPlan()
    private(set) var epoch: InstallationEpoch?

    init(settings: Settings, file: RestoredFile, export: AuditExportFile?, progress: ProgressLines) {
        self.settings = settings
        self.file = file
        self.export = export
        self.progress = progress
    }

    /// Begins a new epoch in a store, and closes the store.
    static func begin(_ file: RestoredFile, in store: Store) throws(Failure) {
        defer { store.close() }
        _ = try newEpoch(for: file, in: store)
    }

    private static func newEpoch(
        for file: RestoredFile, in store: Store
    ) throws(Failure) -> InstallationEpoch {
        let epoch = InstallationEpoch(
            id: SystemRandomness().bytes(16), isReady: false, source: file.hash, beganAt: SystemTime().now())
        try read(epoch.begun, store)
        return epoch
    }

    mutating func run(at url: StorageURL) throws(Failure) {
        let store = try settings.openStore(at: url)
        defer { store.close() }
        // An epoch that somebody has written with SQL is none.
        let present = try? Self.read(InstallationEpoch.current, store)
        let isContinued = present.map { !$0.isReady && $0.source == file.hash } ?? false
        let epoch = if isContinued, let present { present } else { try Self.newEpoch(for: file, in: store) }
        self.epoch = epoch
        try requireNoRelay(store, url)
        while try Self.read(RestoredStore.answersDropped, store) {}
        try export?.each { row throws(Failure) in try note(row, store) }
        try noteRest(store)
        try requireFittingExport()
        try voidAll(in: epoch, store)
        let operations = Operations(
            masterKey: try settings.loadMasterKey().secret, randomness: SystemRandomness())
        try replay(in: epoch, operations, store)
        try record(epoch, operations, store)
        try Self.read(epoch.finished, store)
    }

    // MARK: Relays

    /// The pause between two looks for heartbeats, and their number. A relay that is alive sends one
    /// each second, and two seconds later at most.
    private static let (pause, looks): (Int32, Int) = (250, 14)

    /// Deletes the heartbeats of the copy, and refuses if a relay sends another one: it still has
    /// the store open. A relay on SQLite holds the lock of the store.
    private func requireNoRelay(_ store: Store, _ url: StorageURL) throws(Failure) {
        try Self.read(RestoredStore.relaysDropped, store)
        guard !url.isEmbedded else { return }
        for _ in 0..<Self.looks {
            poll(nil, 0, Self.pause)
            guard let relay = try Self.read(RestoredStore.relays, store).first else { continue }
            throw Failure(
                .conflict, "the relay \(relay.text) is running on \(url)",
                next: "Stop all relays, and run the command again. Until then no relay starts with this store.")
        }
    }

    // MARK: The export

    private var pending: [ExportedEvent] = []

    /// Adds a row to the plan, with others in one query.
    private mutating func note(_ row: ExportedEvent, _ store: Store) throws(Failure) {
        pending.append(row)
        if pending.count == RestoredStore.mostOperations { try noteRest(store) }
    }

    private mutating func noteRest(_ store: Store) throws(Failure) {
        guard !pending.isEmpty else { return }
        let known = try Self.read(RestoredStore.known(pending.map(\.operation)), store)
        for row in pending { plan.add(row, isKnown: known.contains(row.operation)) }
        progress.show("\(plan.rows + plan.knownRows) rows of the export compared")
        pending = []
    }

    /// Refuses an export of another installation, and one that is not newer than the copy: neither
    /// tells what was revoked since.
    private func requireFittingExport() throws(Failure) {
        guard let export, plan.rows == 0 || plan.knownRows == 0 else { return }
        throw Failure(
            .failed,
            plan.rows == 0
                ? "--since: \(export.path) has no row that the copy does not have"
                : "--since: \(export.path) and the copy have no row in common",
            next: "Nothing was voided or replayed. Give a newer export of this installation, with rows from before the "
                + "copy was made, or leave --since out.")
    }

    // MARK: The effects

    private mutating func voidAll(in epoch: InstallationEpoch, _ store: Store) throws(Failure) {
        let effects = export == nil ? RestoreEffect.allCases : RestoreEffect.always
        for effect in effects { voided[effect] = 0 }
        try Self.read(TemporaryCodes.voidAll(at: epoch.beganAt), store)
        var (user, users): (UserID?, Int) = (nil, 0)
        repeat {
            let last = try Self.read(VoidedRows.last(after: user), store)
            try add(VoidedRows.page(after: user, upTo: last, effects, in: epoch), store)
            user = last
            users += VoidedRows.pageSize
            progress.show("\(users) users checked")
        } while user != nil
        for (user, effects) in plan.voided {
            try add(VoidedRows.of(user, Array(effects), in: epoch), store)
        }
    }

    private mutating func add(_ page: Query<VoidedRows.Page>, _ store: Store) throws(Failure) {
        for (effect, count) in try Self.read(page, store).counts { voided[effect, default: 0] += count }
    }

    private mutating func replay(
        in epoch: InstallationEpoch, _ operations: Operations, _ store: Store
    ) throws(Failure) {
        let replay = Replay(store: store, now: epoch.beganAt)
        let steps = plan.steps
        for (index, (step, cause)) in steps.enumerated() {
            progress.show(index, of: steps.count, "losses of rights replayed")
            let operation = operations.fixed("restore", epoch.id + cause)
            if try replay.run(step, as: operation) {
                replayed[step.name, default: 0] += 1
            } else {
                absent += 1
            }
        }
    }

    /// Leaves a row in the audit for each kind of effect, and one for the restore.
    private func record(
        _ epoch: InstallationEpoch, _ operations: Operations, _ store: Store
    ) throws(Failure) {
        let operation = operations.fixed("restore", epoch.id)
        for (effect, count) in voided.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            try Self.read(
                ProgramEvents.record(
                    "restore.\(effect.rawValue)", outcome: "\(count)", at: epoch.beganAt,
                    as: operation.part(effect.rawValue)), store)
        }
        for (name, count) in replayed.sorted(by: { $0.key < $1.key }) {
            try Self.read(
                ProgramEvents.record(
                    "restore.\(name)", outcome: "\(count)", at: epoch.beganAt, as: operation.part(name)), store)
        }
        try Self.read(
            ProgramEvents.record(
                "store.restored", outcome: export == nil ? "voided" : "replayed",
                note: "\(file.path), epoch \(Hex.encode(epoch.id))" + (export.map { ", since \($0.path)" } ?? ""),
                at: epoch.beganAt, as: operation), store)
    }

    @discardableResult
    static func read<Answer>(_ query: Query<Answer>, _ store: Store) throws(Failure) -> Answer {
        do throws(StoreFailure) {
            return try store.runBlocking(query)
        } catch {
            throw Failure(
                store: error,
                next: "The store is not completely restored, and no relay starts with it. Correct this, and "
                    + "run the command again: it continues.")
        }
    }
}

/// The replay of losses of rights in a store.
struct Replay {
    let store: Store
    let now: Timestamp

    /// Replays one loss. Returns false if the copy does not have what it is about.
    func run(_ step: ReplayPlan.Step, as operation: Operation) throws(Failure) -> Bool {
        switch step {
        case .lockUser(let user):
            guard try isThere(user) else { return false }
            _ = try read(Locks.lock(user, at: now, as: operation))
        case .disableUser(let user):
            guard try isThere(user) else { return false }
            try read(ReplayedLosses.lock(.directory(user), at: now))
        case .lockCodes(let user):
            guard try isThere(user) else { return false }
            try read(ReplayedLosses.lock(.codes(user), at: now))
        case .dropFactor(let kind, let user):
            guard try isThere(user) else { return false }
            _ = try read(Factors.drop(kind, of: user, by: .operator, at: now, as: operation))
        case .deleteUser(let user):
            guard let website = try read(ReplayedLosses.website(of: user)) else { return false }
            _ = try read(UserDeletion.delete(user, of: website, by: .operator, at: now, as: operation))
        case .suspendPhone(let device, let author): return try change(device, .suspended, author, operation)
        case .revokePhone(let device, let author): return try change(device, .revoked, author, operation)
        case .lockPIN(let device): return try lock(.pin(device), of: device)
        case .lockPUK(let device): return try lock(.puk(device), of: device)
        case .disableWebsite(let name):
            guard let website = try website(name), !website.isRemoved else { return false }
            _ = try read(Websites.set(website.id, isDisabled: true, at: now, as: operation))
        case .revokeKey(let name, let key):
            guard let website = try website(name), !website.isRemoved else { return false }
            _ = try read(Websites.revokeKeys(of: website.id, key, at: now, as: operation))
        case .endKeys(let name, let end):
            guard let website = try website(name), !website.isRemoved else { return false }
            _ = try read(Websites.endKeys(of: website.id, at: end, now: now, as: operation))
        }
        return true
    }

    /// Finds a website by its name in the export. A removed one whose name was given away has its id
    /// there.
    private func website(_ name: String) throws(Failure) -> Websites.Listed? {
        guard name.hasPrefix("~") else { return try read(Websites.named(name)) }
        guard let id = WebsiteID(String(name.dropFirst())) else { return nil }
        return try read(Websites.identified(id))
    }

    private func isThere(_ user: UserID) throws(Failure) -> Bool {
        try read(ReplayedLosses.website(of: user)) != nil
    }

    private func lock(_ lock: ReplayedLosses.Lock, of device: DeviceID) throws(Failure) -> Bool {
        guard try read(Phones.any(device)) != nil else { return false }
        try read(ReplayedLosses.lock(lock, at: now))
        return true
    }

    /// Suspends or revokes a phone. Its author can undo a suspension as before.
    private func change(
        _ device: DeviceID, _ state: DeviceState, _ author: ChangeAuthor, _ operation: Operation
    ) throws(Failure) -> Bool {
        guard let owned = try read(Phones.any(device)) else { return false }
        var change = DeviceChange(device, of: owned.user, by: author == .phone ? .operator : author, at: now)
        change.state = state
        let changing = change
        _ = try read(Phones.change(changing, as: operation))
        return true
    }

    @discardableResult
    private func read<Answer>(_ query: Query<Answer>) throws(Failure) -> Answer {
        try RestoreWork.read(query, store)
    }
}
