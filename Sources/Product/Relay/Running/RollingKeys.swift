import Bytes
import Crypto
import Domain
import Log
import World

/// The store port of rolling keys: keys that the relays make, use and delete by themselves.
///
/// Purpose: a key that leaked is worth nothing after a while, and nobody has to remember to change
/// it. All relays of an installation share the keys through the store. There is one schedule for
/// each kind (`RollingKeySchedule`).
///
/// Invariants:
/// - The store never has a key in clear. A key is sealed under the installation's sealing key, with
///   its kind, its number and its times. So somebody who can write to the store cannot add a key,
///   and cannot lengthen the life of one.
/// - The store inserts a key only if it has no key with the same or a higher number. So relays that
///   roll at the same time end up with one new key. After somebody has deleted all keys, the numbers
///   begin again.
/// - A new key is in the store five minutes before it is used (`RollingKeySchedule.lead`). Every
///   relay reads the keys each minute, so it knows a key before it meets it.
///
/// Failure modes:
/// - A relay meets a nonce of a key that it does not know, for example after an operator has
///   replaced a key at once. It then reads the store (`rollKeysIfMissed`). Anybody can send such a
///   nonce, so it reads less and less often while it finds nothing new.
/// - The store cannot be written. The keys stay in use until they end, and then the key that is
///   derived from the master key takes their place until the store can be written again.
/// - A row cannot be opened: `key.forged` or `key.sealed` in the log. Forged rows are deleted. Rows
///   under a key that this relay does not know are left for relays that do.
///
/// `RollingKeyTests.swift`, `RollingKeyScheduleTests.swift` and `RollingDrillTests.swift` test it.
public protocol RollingKeyStore: Sendable {
    func rollingKeys(_ kind: RollingKeyKind) async throws(StoreFailure) -> [SealedRollingKey]
    /// Inserts a key, if no key of its kind has its number or a higher one. Returns the keys that
    /// are there afterwards.
    func roll(_ roll: KeyRoll, as operation: Operation) async throws(StoreFailure) -> KeyRollOutcome
    /// Seals a key again, if it is still sealed as `old`.
    func reseal(_ new: SealedRollingKey, from old: [UInt8]) async throws(StoreFailure)
}

/// A purpose for which relays make keys.
public enum RollingKeyKind: String, Sendable, CaseIterable {
    /// Keys for the MACs of nonces in DPoP proofs.
    case nonces
}

/// The number and the times of a rolling key.
public struct KeyEra: Sendable, Hashable {
    public let kind: RollingKeyKind
    /// Counts the keys of the kind, from 1.
    public let number: Int64
    public let madeAt: Timestamp
    /// The time from which the key is used for new values.
    public let startsAt: Timestamp
    /// The time from which no value of the key is accepted.
    public let endsAt: Timestamp

    public init(kind: RollingKeyKind, number: Int64, madeAt: Timestamp, startsAt: Timestamp, endsAt: Timestamp) {
        self.kind = kind
        self.number = number
        self.madeAt = madeAt
        self.startsAt = startsAt
        self.endsAt = endsAt
    }

    /// The data with which the key is sealed.
    var associated: [UInt8] {
        let times = [madeAt, startsAt, endsAt].map { "\($0.milliseconds)" }.joined(separator: " ")
        return Array("twoefay rolling key \(kind.rawValue) \(number) \(times)".utf8)
    }
}

/// A rolling key as the store has it.
public struct SealedRollingKey: Sendable, Equatable {
    public let era: KeyEra
    public let sealed: [UInt8]
    /// The id of the sealing key.
    public let sealedBy: String

    public init(era: KeyEra, sealed: [UInt8], sealedBy: String) {
        self.era = era
        self.sealed = sealed
        self.sealedBy = sealedBy
    }
}

/// A rolling key.
public struct RollingKey: Sendable {
    public let era: KeyEra
    public let secret: Secret
}

/// A change of the keys of one kind.
public struct KeyRoll: Sendable {
    public enum Author: String, Sendable {
        case relay, `operator`
    }

    public let new: SealedRollingKey
    /// Whether all other keys are deleted, because they may have leaked.
    public let replacesAll: Bool
    /// Rows that are deleted before the new key is inserted, because nobody can open them.
    public let useless: [SealedRollingKey]
    public let author: Author

    public init(_ new: SealedRollingKey, replacesAll: Bool, deleting useless: [SealedRollingKey], by author: Author) {
        self.new = new
        self.replacesAll = replacesAll
        self.useless = useless
        self.author = author
    }
}

/// The keys in the store after a change.
public struct KeyRollOutcome: Sendable {
    /// Whether the new key is the one of the change, and not the one of another relay.
    public let isDone: Bool
    public let keys: [SealedRollingKey]

    public init(isDone: Bool, keys: [SealedRollingKey]) {
        self.isDone = isDone
        self.keys = keys
    }
}

/// The keys of one kind, opened.
public struct RollingKeys: Sendable {
    public private(set) var keys: [RollingKey] = []
    /// Rows that no relay of this installation has written as they stand.
    public private(set) var forged: [SealedRollingKey] = []
    /// Rows under sealing keys that this relay does not have.
    public private(set) var unknown: [SealedRollingKey] = []

    public var eras: [KeyEra] { keys.map(\.era) }

    public init(_ rows: [SealedRollingKey], with sealer: Sealer) {
        for row in rows {
            do throws(SealFailure) {
                let secret = Secret(try sealer.open(row.sealed, associated: row.era.associated)).locked()
                keys.append(RollingKey(era: row.era, secret: secret))
            } catch {
                if case .unknownKey = error { unknown.append(row) } else { forged.append(row) }
            }
        }
    }

    /// Makes a key that follows those in the store.
    ///
    /// - Parameter atOnce: whether the key is used at once, and all others are deleted.
    /// - Returns: nil if no number is left, because somebody has written the highest one.
    public func next(
        _ kind: RollingKeyKind, on schedule: RollingKeySchedule, atOnce: Bool = false, by author: KeyRoll.Author,
        with sealer: Sealer, randomness: any Randomness, at now: Timestamp
    ) throws(CryptoFailure) -> KeyRoll? {
        let eras = eras
        let all = atOnce ? eras : eras + unknown.map(\.era)
        guard let era = schedule.next(kind, after: all, using: eras, atOnce: atOnce, at: now) else { return nil }
        let sealed = try sealer.seal(randomness.bytes(32), associated: era.associated, randomness: randomness)
        return KeyRoll(
            SealedRollingKey(era: era, sealed: sealed, sealedBy: sealer.currentID), replacesAll: atOnce,
            deleting: atOnce ? forged + unknown : forged, by: author)
    }
}

extension Relay {
    /// Reads the rolling keys, and makes a new one if it is due. The daemon calls it before the
    /// first request and then every minute.
    public func rollKeys() async {
        guard let schedule = adjustable.rolling.nonces else { return nonces.use([]) }
        let (now, sealer) = (time.now(), sealer)
        let rows = try? await withStore("rollingKeys") { () async throws(StoreFailure) in
            try await store.rollingKeys(.nonces)
        }
        guard let rows else { return }
        var found = RollingKeys(rows, with: sealer)
        for row in found.forged { log.error("key.forged", [.kind: row.era.kind.rawValue, .era: row.era.number]) }
        for row in found.unknown {
            log.warning("key.sealed", [.kind: row.era.kind.rawValue, .era: row.era.number, .keyID: row.sealedBy])
        }
        if schedule.isDue(found.eras, at: now), let outcome = await roll(found, on: schedule, with: sealer, at: now) {
            found = RollingKeys(outcome.keys, with: sealer)
        }
        nonces.use(found.keys)
        metrics.recordKeys(found.eras)
        await reseal(found, rows, with: sealer)
    }

    /// Reads the rolling keys again if somebody has shown a nonce of a key that this relay does not
    /// have. The daemon's timer calls it every second.
    public func rollKeysIfMissed() async { if nonces.takeMiss(at: time.now()) { await rollKeys() } }

    private func roll(
        _ found: RollingKeys, on schedule: RollingKeySchedule, with sealer: Sealer, at now: Timestamp
    ) async -> KeyRollOutcome? {
        let next = try? found.next(
            .nonces, on: schedule, by: .relay, with: sealer, randomness: randomness, at: now)
        guard let next else {
            log.error("key.stuck", [.kind: RollingKeyKind.nonces.rawValue])
            return nil
        }
        let operation = operations.new()
        let outcome = try? await withStore("rollingKeys") { () async throws(StoreFailure) in
            try await store.roll(next, as: operation)
        }
        if outcome?.isDone == true {
            metrics.rolled(.nonces)
            log.notice(
                "key.rolled",
                [.kind: RollingKeyKind.nonces.rawValue, .era: next.new.era.number, .operation: operation.id.text])
        }
        return outcome
    }

    /// Seals keys again that are sealed under an older master key.
    private func reseal(_ found: RollingKeys, _ rows: [SealedRollingKey], with sealer: Sealer) async {
        for key in found.keys {
            guard let row = rows.first(where: { $0.era == key.era }), (try? sealer.isStale(row.sealed)) == true,
                let sealed = try? sealer.seal(
                    key.secret.reveal(), associated: key.era.associated, randomness: randomness)
            else { continue }
            let new = SealedRollingKey(era: key.era, sealed: sealed, sealedBy: sealer.currentID)
            _ = try? await withStore("rollingKeys") { () async throws(StoreFailure) in
                try await store.reseal(new, from: row.sealed)
            }
        }
    }
}
