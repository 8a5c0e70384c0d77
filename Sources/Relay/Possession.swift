import Bytes
import Crypto
import Domain
import Log
import Synchronization
import World

/// A proof that the caller holds a key, made for one request: read, held to the request and verified.
public struct Possession: Sendable, Equatable {
    /// SHA-256 of the key's SubjectPublicKeyInfo.
    public let key: [UInt8]
    /// What no other proof of this key may have.
    public let id: String
    /// When its nonce was handed out.
    public let step: Nonces.Step

    public init(key: [UInt8], id: String, step: Nonces.Step) {
        self.key = key
        self.id = id
        self.step = step
    }
}

/// What proofs have to hold, so that none can be made long before it is used. Every relay of an installation makes the
/// same nonces at the same time and remembers none.
public struct Nonces: Sendable {
    public typealias Step = Int64
    /// Nobody is given a nonce for longer than two of these.
    static let stepSeconds: Int64 = 150

    private let key: Secret

    public init(masterKey: Secret) {
        key = Secret(HMAC.sha256(key: masterKey, Array("twoefay proofs".utf8)))
    }

    public func current(at now: Timestamp) -> String { nonce(of: Self.step(at: now)) }

    /// The step of a nonce that is this one's or was the last one's; nil for every other text.
    public func step(of nonce: String, at now: Timestamp) -> Step? {
        Self.living(at: now).first { Secret.matches(Array(self.nonce(of: $0).utf8), Array(nonce.utf8)) }
    }

    static func living(at now: Timestamp) -> ClosedRange<Step> { (step(at: now) - 1)...step(at: now) }
    private static func step(at now: Timestamp) -> Step { now.seconds / stepSeconds }

    private func nonce(of step: Step) -> String {
        Base64URL.encode(HMAC.sha256(key: key, Array("\(step)".utf8)).prefix(16))
    }
}

/// The proofs that this relay has taken, remembered until their nonces are dead. Only keys of bound phones come here, and
/// each has its share of the memory.
final class Proofs: Sendable {
    enum Verdict: Equatable {
        case new, used, tooMany
    }

    /// Of one phone under one nonce.
    static let share = 4096

    private let taken = Mutex<[Nonces.Step: [DeviceID: Set<Identifier<Possession>>]]>([:])

    func take(_ proof: Possession, of device: DeviceID, at now: Timestamp) -> Verdict {
        guard let id = Identifier<Possession>(SHA256.hash(Array(proof.id.utf8)).prefix(16)) else { return .used }
        return taken.withLock { taken in
            let living = Nonces.living(at: now)
            if taken.keys.contains(where: { !living.contains($0) }) {
                taken = taken.filter { living.contains($0.key) }
            }
            // Its nonce died while the phone was looked up.
            guard living.contains(proof.step) else { return .used }
            guard !living.contains(where: { taken[$0]?[device]?.contains(id) == true }) else { return .used }
            guard taken[proof.step]?[device]?.count ?? 0 < Self.share else { return .tooMany }
            taken[proof.step, default: [:]][device, default: []].insert(id)
            return .new
        }
    }
}

extension Relay {
    /// The active phone with that key, if the proof was not used before.
    public func device(provedBy proof: Possession) async throws(Refusal) -> PhoneCredential {
        let row = try await ask("identify") { () async throws(StoreFailure) in
            try await store.device(key: proof.key)
        }
        guard let row, row.state == .active else { throw .unauthenticated }
        switch proofs.take(proof, of: row.id, at: time.now()) {
        case .new: return PhoneCredential(row, key: proof.key)
        case .used:
            log.notice("proof.refused", [.device: row.id.text, .reason: "used before"])
            throw .unauthenticated
        case .tooMany:
            log.notice("proof.refused", [.device: row.id.text, .reason: "too many"])
            throw .limited(retryAfter: .seconds(Nonces.stepSeconds))
        }
    }
}
