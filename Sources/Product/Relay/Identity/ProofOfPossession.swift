import Bytes
import Crypto
import Domain
import JSON
import Log
import Metrics
import Synchronization
import World

/// A proof that the caller holds a key, made for one request: read and held to the request.
public struct ProofOfPossession: Sendable, Equatable {
    /// SHA-256 of the key's SubjectPublicKeyInfo.
    public let key: [UInt8]
    /// What no other proof of this key may have.
    public let id: String
    /// When its nonce was handed out, roughly.
    public let step: Nonces.Window

    public init(key: [UInt8], id: String, step: Nonces.Window) {
        self.key = key
        self.id = id
        self.step = step
    }

    /// The same for the same proof, at whichever relay, and for no other.
    var digested: [UInt8] {
        key + (0..<8).map { UInt8(truncatingIfNeeded: step >> (56 - $0 * 8)) } + Array(id.utf8)
    }
}

/// A proof whose signature nobody has looked at yet.
public struct PresentedProof: Sendable, Equatable {
    public let possession: ProofOfPossession
    private let object: JWSObject
    private let jwk: JSONValue

    /// - Parameter jwk: the key that stands in the proof; `possession` has its thumbprint.
    public init(_ possession: ProofOfPossession, signed object: JWSObject, by jwk: JSONValue) {
        self.possession = possession
        self.object = object
        self.jwk = jwk
    }

    /// Costs a verification, and looks whether the key is a point of the curve.
    func isSigned() -> Bool { (try? P256PublicKey(jwk: jwk)).map { object.verify($0) } ?? false }
}

/// What proofs have to hold, so that none can be made long before it is used: the second at which a relay handed it out,
/// and that a relay of this installation did. None of them is remembered.
public final class Nonces: Sendable {
    /// Proofs are remembered by the hundred and fifty seconds.
    public typealias Window = Int64
    static let stepSeconds: Int64 = 150
    /// How long one is good for.
    static let life: Int64 = 300
    /// By so much the clocks of two relays may differ.
    static let tolerance: Int64 = 5

    /// Since this relay was started, or its clock was set back: which proofs were taken before is forgotten.
    private struct Era {
        /// Before this, none is taken that was handed out by others, or before.
        var first: Int64
        /// In all that this relay hands out: nobody has forgotten anything about these.
        let mark: [UInt8]
        /// The latest time that the clock has shown.
        var latest: Int64
    }

    private let key: Secret
    private let randomness: any Randomness
    private let era: Mutex<Era>

    public convenience init(masterKey: Secret, since start: Timestamp, randomness: any Randomness) {
        self.init(key: Self.key(from: masterKey), since: start, randomness: randomness)
    }

    /// Derives the key that nonces need, from which the master key cannot be computed.
    static func key(from masterKey: Secret) -> Secret {
        Secret(HMAC.sha256(key: masterKey, Array("twoefay proofs".utf8)))
    }

    /// - Parameter key: as `key(from:)` derives it.
    init(key: Secret, since start: Timestamp, randomness: any Randomness) {
        self.key = key.locked()
        self.randomness = randomness
        era = Mutex(
            Era(
                first: start.seconds + Self.tolerance + 1, mark: randomness.bytes(Self.markBytes),
                latest: start.seconds))
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

    public func current(at now: Timestamp) -> String { nonce(of: now.seconds, era(at: now).mark) }

    /// The step of a nonce that is still good; nil for every other text.
    public func step(of nonce: String, at now: Timestamp) -> Window? {
        guard let bytes = Base64URL.decode(nonce), bytes.count == Self.macBytes + 8 + Self.markBytes else {
            return nil
        }
        let second = Int64(bitPattern: bytes.dropFirst(Self.macBytes).prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
        let mark = Array(bytes.suffix(Self.markBytes))
        let era = era(at: now)
        guard second >= era.first || mark == era.mark, second > now.seconds - Self.life,
            second <= now.seconds + Self.tolerance,
            Secret.matches(Array(self.nonce(of: second, mark).utf8), Array(nonce.utf8))
        else { return nil }
        return second / Self.stepSeconds
    }

    /// The oldest step with a nonce that is still good.
    static func oldest(at now: Timestamp) -> Window { (now.seconds - life) / stepSeconds }

    private static let macBytes = 16
    private static let markBytes = 8

    private func nonce(of second: Int64, _ mark: [UInt8]) -> String {
        let bytes = (0..<8).map { UInt8(truncatingIfNeeded: second >> (56 - $0 * 8)) } + mark
        return Base64URL.encode(HMAC.sha256(key: key, bytes).prefix(Self.macBytes) + bytes)
    }
}

/// The proofs that this relay has taken, remembered until their nonces are dead. Only keys of bound phones come here, and
/// each has its share of the memory.
final class ProofReplayCache: Sendable {
    enum Verdict: Equatable {
        case new, used, tooMany
    }

    /// Of one phone in one step.
    static let share = 4096

    private let taken = Mutex<[Nonces.Window: [DeviceID: Set<Identifier<ProofOfPossession>>]]>([:])

    func take(_ proof: ProofOfPossession, of device: DeviceID, at now: Timestamp) -> Verdict {
        guard let id = Identifier<ProofOfPossession>(SHA256.hash(Array(proof.id.utf8)).prefix(16)) else { return .used }
        return taken.withLock { taken in
            let oldest = Nonces.oldest(at: now)
            // A step longer than their nonces live: the clock may have gone back a little since.
            if taken.keys.contains(where: { $0 < oldest - 1 }) { taken = taken.filter { $0.key >= oldest - 1 } }
            // Its nonce died while the phone was looked up.
            guard proof.step >= oldest else { return .used }
            guard !taken.values.contains(where: { $0[device]?.contains(id) == true }) else { return .used }
            guard taken[proof.step]?[device]?.count ?? 0 < Self.share else { return .tooMany }
            taken[proof.step, default: [:]][device, default: []].insert(id)
            return .new
        }
    }
}

extension Operations {
    /// What a phone changes by a proof is changed under an operation of the proof's own. A relay remembers the proofs
    /// that it has taken itself; one that is used again at another relay finds its operation done, and changes nothing.
    func by(_ phone: PhoneCredential) -> Operation {
        phone.proof.map { fixed("proof", $0.digested) } ?? new()
    }
}

extension Relay {
    /// The active phone with that key, if the signature is the key's and the proof was not used before.
    ///
    /// A proof under an unknown key costs neither a signature nor, when it comes again, a look into
    /// the store; a sender has only so many that are new. An unknown key, a wrong signature and a
    /// phone that is not active get the same answer.
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
        let row = try await withStore("identify") { () async throws(StoreFailure) in try await store.device(key: key) }
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
