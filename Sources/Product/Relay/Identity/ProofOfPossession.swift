import Bytes
import Crypto
import Domain
import JSON
import Log
import Metrics
import Synchronization
import World

/// The content of a DPoP proof that was parsed and matches its request: it proves that the caller
/// holds a key.
public struct ProofOfPossession: Sendable, Equatable {
    /// SHA-256 of the key's SubjectPublicKeyInfo.
    public let key: [UInt8]
    /// The id of the proof (`jti`), which no other proof of this key may have.
    public let id: String
    /// The window in which its nonce was issued.
    public let step: Nonces.Window

    public init(key: [UInt8], id: String, step: Nonces.Window) {
        self.key = key
        self.id = id
        self.step = step
    }

    /// The bytes that identify this proof at every relay.
    var digested: [UInt8] {
        key + (0..<8).map { UInt8(truncatingIfNeeded: step >> (56 - $0 * 8)) } + Array(id.utf8)
    }
}

/// A DPoP proof whose signature has not been verified yet.
public struct PresentedProof: Sendable, Equatable {
    public let possession: ProofOfPossession
    private let object: JWSObject
    private let jwk: JSONValue

    /// - Parameter jwk: the key that the proof contains; `possession` has its thumbprint.
    public init(_ possession: ProofOfPossession, signed object: JWSObject, by jwk: JSONValue) {
        self.possession = possession
        self.object = object
        self.jwk = jwk
    }

    /// Verifies the signature, and checks that the key is a point of the curve. This is the
    /// expensive step.
    func isSigned() -> Bool { (try? P256PublicKey(jwk: jwk)).map { object.verify($0) } ?? false }
}

/// The nonces that DPoP proofs must contain, so that a proof cannot be made long before its use.
///
/// A nonce contains the second at which it was issued, and a MAC which shows that a relay of this
/// installation issued it. No relay stores nonces. A nonce is valid for 300 seconds, at every
/// relay. It also contains the number of the key of the MAC (`NonceKeys`).
///
/// Failure modes: a relay forgets at a restart which proofs it has accepted. A clock that was set
/// back makes old nonces valid again. So each nonce also has a random mark of the relay's era.
/// After a restart or a clock change, the relay accepts only its own new nonces and those that were
/// issued after the change.
public final class Nonces: Sendable {
    /// The number of the 150-second window in which a nonce was issued. Accepted proofs are
    /// remembered by window.
    public typealias Window = Int64
    static let stepSeconds: Int64 = 150
    /// The seconds for which a nonce is valid.
    static let life: Int64 = 300
    /// The seconds by which the clocks of two relays may differ.
    static let tolerance: Int64 = 5

    /// The time since this relay was started or its clock was set back. The relay does not know
    /// which proofs it accepted before.
    private struct Era {
        /// The first second from which the nonces of other relays, or of an earlier era, are
        /// accepted.
        var first: Int64
        /// The mark in all nonces that this relay issues in this era. The relay remembers every
        /// proof that it accepted with this mark.
        let mark: [UInt8]
        /// The latest time that the clock has shown.
        var latest: Int64
    }

    private let keys: Mutex<NonceKeys>
    /// Whether a fresh nonce was not made with a key that this relay has.
    private let missed = Atomic<Bool>(false)
    private let missPause = Mutex(MissPause())
    private let randomness: any Randomness
    private let era: Mutex<Era>
    /// The installation's epoch. It is in every MAC, because rolling keys outlive a restore of the
    /// store: the copy has them.
    private let epoch: [UInt8]

    public convenience init(masterKey: Secret, since start: Timestamp, randomness: any Randomness) {
        self.init(key: Self.key(from: masterKey), since: start, randomness: randomness)
    }

    /// Derives the key of nonces. The master key cannot be computed from it.
    static func key(from masterKey: Secret) -> Secret {
        Secret(HMAC.sha256(key: masterKey, Array("twoefay proofs".utf8)))
    }

    /// - Parameter key: a key from `key(from:)`.
    init(key: Secret, epoch: [UInt8] = [], since start: Timestamp, randomness: any Randomness) {
        self.epoch = epoch
        keys = Mutex(NonceKeys(derived: key.locked()))
        self.randomness = randomness
        era = Mutex(
            Era(
                first: start.seconds + Self.tolerance + 1, mark: randomness.bytes(Self.markBytes),
                latest: start.seconds))
    }

    /// Uses these keys from now on. If there is none, the nonces use the key that is derived from
    /// the master key.
    func use(_ rolling: [RollingKey]) {
        let isNew = keys.withLock { keys in
            defer { keys.rolling = rolling }
            return keys.rolling.map(\.era) != rolling.map(\.era)
        }
        if isNew { missPause.withLock { $0.reset() } }
    }

    /// Returns whether the keys must be read, because a fresh nonce was not made with one of them.
    /// Anybody can make such a nonce. So while no new keys are found, the pause between two reads
    /// doubles, up to a minute.
    func takeMiss(at now: Timestamp) -> Bool {
        guard missed.load(ordering: .relaxed), missPause.withLock({ $0.begin(at: now) }) else { return false }
        missed.store(false, ordering: .relaxed)
        return true
    }

    private func era(at now: Timestamp) -> Era {
        era.withLock { era in
            if now.seconds < era.latest - Self.tolerance {
                era = Era(
                    first: max(era.first, era.latest + Self.tolerance + 1), mark: randomness.bytes(Self.markBytes),
                    latest: now.seconds)
            }
            era.latest = max(era.latest, now.seconds)
            return era
        }
    }

    /// Returns the nonce that the relay issues now.
    public func current(at now: Timestamp) -> String {
        let (number, key) = keys.withLock { $0.current(at: now) }
        return nonce(of: now.seconds, era(at: now).mark, number, key)
    }

    /// Returns the window of a valid nonce; nil for every other text.
    public func step(of nonce: String, at now: Timestamp) -> Window? {
        guard let bytes = Base64URL.decode(nonce), bytes.count == Self.macBytes + 16 + Self.markBytes else {
            return nil
        }
        let number = Self.integer(bytes.dropFirst(Self.macBytes))
        let second = Self.integer(bytes.dropFirst(Self.macBytes + 8))
        let mark = Array(bytes.suffix(Self.markBytes))
        let era = era(at: now)
        guard second >= era.first || mark == era.mark, second > now.seconds - Self.life,
            second <= now.seconds + Self.tolerance
        else { return nil }
        // After all keys were replaced, another key may have a number that this relay knows.
        guard let key = keys.withLock({ $0.key(number, at: now) }),
            Secret.matches(Array(self.nonce(of: second, mark, number, key).utf8), Array(nonce.utf8))
        else {
            missed.store(true, ordering: .relaxed)
            return nil
        }
        return second / Self.stepSeconds
    }

    /// Returns the oldest window that may have a valid nonce.
    static func oldest(at now: Timestamp) -> Window { (now.seconds - life) / stepSeconds }

    private static let macBytes = 16
    private static let markBytes = 8

    private func nonce(of second: Int64, _ mark: [UInt8], _ number: Int64, _ key: Secret) -> String {
        let bytes = Self.bytes(number) + Self.bytes(second) + mark
        return Base64URL.encode(HMAC.sha256(key: key, bytes + epoch).prefix(Self.macBytes) + bytes)
    }

    private static func bytes(_ value: Int64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - $0 * 8)) }
    }

    private static func integer(_ bytes: ArraySlice<UInt8>) -> Int64 {
        Int64(bitPattern: bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
    }
}

/// The keys of the nonces, each with its number.
///
/// The key that is derived from the master key has the number 0. It is used, and accepted, only
/// while this relay has no rolling key.
private struct NonceKeys {
    let derived: Secret
    var rolling: [RollingKey] = []

    init(derived: Secret) { self.derived = derived }

    /// Returns the key for new nonces.
    func current(at now: Timestamp) -> (number: Int64, key: Secret) {
        let era = RollingKeySchedule.current(rolling.map(\.era), at: now)
        guard let key = rolling.first(where: { $0.era == era }) else { return (0, derived) }
        return (key.era.number, key.secret)
    }

    /// Returns the key with a number; nil if there is none, or if it has ended.
    func key(_ number: Int64, at now: Timestamp) -> Secret? {
        let living = rolling.filter { now < $0.era.endsAt }
        if number == 0 { return living.isEmpty ? derived : nil }
        return living.first { $0.era.number == number }?.secret
    }
}

/// The pause between two reads of the keys that unknown nonces have caused.
private struct MissPause {
    private static let longest = Duration.seconds(60)
    private var pause = Duration.zero
    private var notBefore: Timestamp?

    /// Begins a read, and a longer pause after it. Returns false during a pause.
    mutating func begin(at now: Timestamp) -> Bool {
        // After the clock went back, no pause is longer than the longest.
        if let notBefore, now < notBefore, notBefore <= now + Self.longest { return false }
        pause = min(max(pause * 2, .seconds(1)), Self.longest)
        notBefore = now + pause
        return true
    }

    /// Makes the next pause the shortest.
    mutating func reset() { pause = .zero }
}

/// The proofs that this relay has accepted, remembered until their nonces are no longer valid. Only
/// proofs under keys of bound phones come here, and each phone has a fixed share of the memory.
final class ProofReplayCache: Sendable {
    enum Verdict: Equatable {
        case new, used, tooMany
    }

    /// The most proofs of one phone in one window.
    static let share = 4096

    private let taken = Mutex<[Nonces.Window: [DeviceID: Set<Identifier<ProofOfPossession>>]]>([:])

    /// Records a proof as used, and returns whether it may be accepted.
    func take(_ proof: ProofOfPossession, of device: DeviceID, at now: Timestamp) -> Verdict {
        guard let id = Identifier<ProofOfPossession>(SHA256.hash(Array(proof.id.utf8)).prefix(16)) else { return .used }
        return taken.withLock { taken in
            let oldest = Nonces.oldest(at: now)
            // Windows are kept one window longer than their nonces are valid, because the clock may
            // have gone back a little.
            if taken.keys.contains(where: { $0 < oldest - 1 }) { taken = taken.filter { $0.key >= oldest - 1 } }
            // The nonce expired while the phone was looked up.
            guard proof.step >= oldest else { return .used }
            guard !taken.values.contains(where: { $0[device]?.contains(id) == true }) else { return .used }
            guard taken[proof.step]?[device]?.count ?? 0 < Self.share else { return .tooMany }
            taken[proof.step, default: [:]][device, default: []].insert(id)
            return .new
        }
    }
}

extension Operations {
    /// Returns the operation of a phone's change. With a DPoP proof, the operation follows from the
    /// proof. A relay remembers only the proofs that it accepted itself. If a proof is used again
    /// at another relay, that relay finds the operation done, and changes nothing.
    func by(_ phone: PhoneCredential) -> Operation {
        phone.proof.map { fixed("proof", $0.digested) } ?? new()
    }
}

extension Relay {
    /// Returns the active phone with the proof's key, if the signature is valid and the proof was
    /// not used before.
    ///
    /// A proof under an unknown key costs no signature check. If the same key comes again soon, it
    /// costs no query either, and each sender may use only a limited number of new keys. An unknown
    /// key, a wrong signature and an inactive phone get the same answer.
    public func device(
        provedBy presented: PresentedProof, from sender: String
    ) async throws(Refusal) -> PhoneCredential {
        let key = presented.possession.key
        switch phoneKeys.answer(to: key, at: time.instant()) {
        case .unknown:
            metrics.proofs.add(.unknown)
            throw .unauthenticated
        case .known:
            try requireSigned(presented)
            guard let row = try await activePhone(key) else {
                phoneKeys.remember(key, isKnown: false, at: time.instant())
                throw .unauthenticated
            }
            return try device(row, presented.possession)
        case .unsure:
            guard unknownKeys.take(sender, at: time.instant()) else {
                metrics.proofs.add(.limited)
                throw .limited(retryAfter: .seconds(1))
            }
            guard let row = try await activePhone(key) else {
                phoneKeys.remember(key, isKnown: false, at: time.instant())
                throw .unauthenticated
            }
            try requireSigned(presented)
            phoneKeys.remember(key, isKnown: true, at: time.instant())
            unknownKeys.giveBack(sender)
            return try device(row, presented.possession)
        }
    }

    private func requireSigned(_ presented: PresentedProof) throws(Refusal) {
        metrics.proofs.add(.signature)
        guard presented.isSigned() else { throw .unauthenticated }
    }

    private func activePhone(_ key: [UInt8]) async throws(Refusal) -> DeviceRow? {
        metrics.proofs.add(.lookup)
        let row = try await withStore("proof") { () async throws(StoreFailure) in try await store.device(key: key) }
        guard let row, row.state == .active else { return nil }
        return row
    }

    private func device(_ row: DeviceRow, _ proof: ProofOfPossession) throws(Refusal) -> PhoneCredential {
        switch proofs.take(proof, of: row.id, at: time.now()) {
        case .new: return PhoneCredential(row, key: proof.key, isCertified: false, proof: proof)
        case .used:
            log.notice("proof.refused", [.device: row.id.text, .reason: "used before"])
            throw .unauthenticated
        case .tooMany:
            log.notice("proof.refused", [.device: row.id.text, .reason: "too many"])
            throw .limited(retryAfter: .seconds(Nonces.stepSeconds))
        }
    }
}
