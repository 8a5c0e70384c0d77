import Bytes
import Domain
import Relay
import World

/// The losses of rights that a restore replays from an export of the audit newer than the copy.
///
/// Purpose: the copy does not know what was revoked, locked and used since it was made; the export
/// does. The rows are read in their order, so a lock that was lifted later is not replayed.
///
/// Invariant: a plan only takes rights away. Somebody who adds rows to the export can therefore
/// cause an outage, and gains nothing. Whoever removes rows hides losses.
///
/// Grants (new users, phones, keys, secrets) cannot be replayed, because the
/// audit has no secrets. `notReplayed` counts these rows by their event.
public struct ReplayPlan: Sendable, Equatable {
    /// A loss of rights.
    public enum Step: Sendable, Hashable {
        case deleteUser(UserID)
        case lockUser(UserID)
        case disableUser(UserID)
        case lockCodes(UserID)
        case dropFactor(Factor, UserID)
        case suspendPhone(DeviceID, ChangeAuthor)
        case revokePhone(DeviceID, ChangeAuthor)
        case lockPIN(DeviceID)
        case lockPUK(DeviceID)
        case disableWebsite(String)
        /// Revokes the key with this thumbprint, or all keys of the website.
        case revokeKey(String, [UInt8]?)
        /// Ends all keys of the website at this time. A renewal did so, whose new key the copy lacks.
        case endKeys(String, Timestamp)

        /// The name of the step in a report.
        public var name: String {
            switch self {
            case .deleteUser: "users_deleted"
            case .lockUser: "users_locked"
            case .disableUser: "users_disabled"
            case .lockCodes: "codes_locked"
            case .dropFactor: "factors_removed"
            case .suspendPhone: "phones_suspended"
            case .revokePhone: "phones_revoked"
            case .lockPIN: "pins_locked"
            case .lockPUK: "puks_locked"
            case .disableWebsite: "websites_disabled"
            case .revokeKey: "website_keys_revoked"
            case .endKeys: "website_keys_ended"
            }
        }
    }

    /// The kinds of locks of which the last row decides.
    private enum Subject: Hashable {
        case user(UserID)
        case directory(UserID)
        case codes(UserID)
        case phone(DeviceID)
        case pin(DeviceID)
        case puk(DeviceID)
        case website(String)
    }

    private var locks: [Subject: (step: Step, operation: [UInt8])] = [:]
    private var losses: [Step: [UInt8]] = [:]
    /// The effects for single users, because a row says that something of the kind was used, and
    /// not which.
    public private(set) var voided: [UserID: Set<RestoreEffect>] = [:]
    /// The rows that cannot be replayed, by event.
    public private(set) var notReplayed: [String: Int] = [:]
    /// The number of rows that the copy does not have.
    public private(set) var rows = 0
    /// The number of rows that the copy has, too.
    public private(set) var knownRows = 0
    /// The time of the newest of all rows, also of those that the copy has.
    public private(set) var until: Timestamp?

    public init() {}

    public static func == (a: ReplayPlan, b: ReplayPlan) -> Bool {
        a.steps.map(\.step) == b.steps.map(\.step) && a.voided == b.voided && a.notReplayed == b.notReplayed
    }

    /// The steps in an order that is always the same, each with the operation of the row that caused
    /// it. Users are deleted last: other steps then find what they are about.
    public var steps: [(step: Step, operation: [UInt8])] {
        let all = losses.map { (step: $0.key, operation: $0.value) } + locks.values
        func isBefore(_ a: (step: Step, operation: [UInt8]), _ b: (step: Step, operation: [UInt8])) -> Bool {
            if a.step.isDeletion != b.step.isDeletion { return b.step.isDeletion }
            return a.operation.lexicographicallyPrecedes(b.operation)
        }
        return all.sorted(by: isBefore)
    }

    /// Notes that the export has this row.
    ///
    /// - Parameter isKnown: whether the copy has the row, too.
    public mutating func add(_ row: ExportedEvent, isKnown: Bool) {
        until = max(until ?? row.at, row.at)
        guard !isKnown else {
            knownRows += 1
            return
        }
        rows += 1
        let isUsed = addUse(row)
        if let user = row.user, addUser(row, user) { return }
        if let device = row.device, addPhone(row, device) { return }
        if let website = row.website, addWebsite(row, website) { return }
        if !isUsed, !Self.harmless.contains(row.event), !Self.harmlessKinds.contains(where: row.event.hasPrefix) {
            notReplayed[row.event, default: 0] += 1
        }
    }

    /// Voids what the row may be a use of. Returns whether the row is one.
    private mutating func addUse(_ row: ExportedEvent) -> Bool {
        guard let user = row.user else { return false }
        var used: Set<RestoreEffect> = []
        switch row.event {
        case "code.verified", "factor.used", "factor.resynced":
            if row.outcome == Factor.hotp.rawValue { used = [.hotp] }
        // The row does not say which code it was. Steps of apps are used up in any case.
        case "challenge.answered" where row.proof == Proof.code.rawValue: used = [.hotp, .recoveryCodes]
        case "challenge.answered": break
        case "user.unlocked" where row.outcome == ChangeAuthor.code.rawValue: used = [.recoveryCodes]
        case "device.bound", "device.waiting", "user.activation": used = [.activations]
        default: return false
        }
        if !used.isEmpty { voided[user, default: []].formUnion(used) }
        return !["device.bound", "user.activation"].contains(row.event)
    }

    private mutating func addUser(_ row: ExportedEvent, _ user: UserID) -> Bool {
        switch row.event {
        case "user.forgotten": losses[.deleteUser(user)] = row.operation
        case "user.locked", "user.taken", "user.frozen": lock(.user(user), .lockUser(user), row)
        case "user.unlocked":
            locks[.user(user)] = nil
            if row.outcome == ChangeAuthor.operator.rawValue { locks[.codes(user)] = nil }
        case "user.disabled": lock(.directory(user), .disableUser(user), row)
        case "user.enabled": locks[.directory(user)] = nil
        case "codes.locked": lock(.codes(user), .lockCodes(user), row)
        case "codes.unlocked": locks[.codes(user)] = nil
        case "factor.dropped":
            guard let kind = row.outcome.flatMap({ Factor(rawValue: $0) }) else { return false }
            losses[.dropFactor(kind, user)] = row.operation
        // The new factor took the place of the one that the copy has.
        case "factor.bound", "factor.imported":
            guard let kind = row.outcome.flatMap({ Factor(rawValue: $0) }) else { return false }
            losses[.dropFactor(kind, user)] = row.operation
            notReplayed[row.event, default: 0] += 1
        default: return false
        }
        return true
    }

    private mutating func addPhone(_ row: ExportedEvent, _ device: DeviceID) -> Bool {
        let author = row.outcome.flatMap { ChangeAuthor(rawValue: $0) } ?? .operator
        switch row.event {
        case "device.unbound", "device.withdrawn", "device.taken":
            locks[.phone(device)] = nil
            losses[.revokePhone(device, author)] = row.operation
        case "device.suspended": lock(.phone(device), .suspendPhone(device, author), row)
        case "device.resumed": locks[.phone(device)] = nil
        case "pin.locked": lock(.pin(device), .lockPIN(device), row)
        case "puk.locked": lock(.puk(device), .lockPUK(device), row)
        default: return false
        }
        return true
    }

    private mutating func addWebsite(_ row: ExportedEvent, _ website: String) -> Bool {
        switch row.event {
        case "website.disabled": lock(.website(website), .disableWebsite(website), row)
        case "website.enabled": locks[.website(website)] = nil
        case "website.removed":
            losses[.disableWebsite(website)] = row.operation
            notReplayed[row.event, default: 0] += 1
        case "website.key_revoked":
            let key = row.note.flatMap { Hex.decode($0) }.flatMap { $0.count == 32 ? $0 : nil }
            losses[.revokeKey(website, key)] = row.operation
        // The website has kept its key.
        case "website.renewed" where row.outcome == "website": break
        case "website.renewed":
            if let end = row.othersEnd { losses[.endKeys(website, end)] = row.operation }
            notReplayed[row.event, default: 0] += 1
        case "website.keys_ended":
            if let end = row.othersEnd { losses[.endKeys(website, end)] = row.operation }
        default: return false
        }
        return true
    }

    private mutating func lock(_ subject: Subject, _ step: Step, _ row: ExportedEvent) {
        locks[subject] = (step, row.operation)
    }

    /// The events that change nothing that a restored store lacks, or that are voided in any case.
    private static let harmless: Set<String> = [
        "challenge.asked", "challenge.ended", "challenge.cancelled", "challenge.expired", "decision.refused",
        "attestation.refused", "code.wrong", "factor.begun", "factor.waiting", "address.code", "fraud.reported",
        "user.exported", "key.rolled", "unlock.issued", "unlock.withdrawn", "row.adopted", "audit.exported",
        "schema.migrated", "device.certificate", "row.forged", "audit.tampered",
    ]
    private static let harmlessKinds = [
        "daemon.", "control.", "backup.", "temporary.", "restore.", "store.", "rekey.", "push.", "sms.", "outbox.",
        "notice.",
        "recovery.",
        "message.", "mail.",
    ]
}

extension ReplayPlan.Step {
    fileprivate var isDeletion: Bool { if case .deleteUser = self { true } else { false } }
}
