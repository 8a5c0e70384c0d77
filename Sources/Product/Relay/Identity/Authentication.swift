import Domain
import Log
import Synchronization
import World

/// The store port that identifies callers. It is queried for every request, so that a revocation
/// takes effect at once.
public protocol AuthenticationStore: Sendable {
    /// Returns the active website with that name if the key is registered for it, and has not
    /// ended.
    func website(named name: String, key: [UInt8], at: Timestamp) async throws(StoreFailure) -> WebsiteRow?
    /// Returns the phone with that id, in its present state, if the key is its own.
    func device(_ id: DeviceID, key: [UInt8]) async throws(StoreFailure) -> DeviceRow?
    /// Returns the phone with that key.
    func device(key: [UInt8]) async throws(StoreFailure) -> DeviceRow?
}

/// The stored row of a website; `policy` is the JSON of the values that the website sets itself.
public struct WebsiteRow: Sendable, Equatable {
    public let id: WebsiteID
    public let name: String
    public let displayName: String
    public let policy: String

    public init(id: WebsiteID, name: String, displayName: String, policy: String) {
        self.id = id
        self.name = name
        self.displayName = displayName
        self.policy = policy
    }
}

/// An authenticated website, with the policy that applies to it. A policy has many values, so the
/// steps of a request share it by reference.
public final class Website: Sendable {
    public let id: WebsiteID
    public let name: String
    public let displayName: String
    public let policy: Policy

    public init(id: WebsiteID, name: String, displayName: String, policy: Policy) {
        self.id = id
        self.name = name
        self.displayName = displayName
        self.policy = policy
    }
}

/// The stored row of a phone, with the website of its user.
public struct DeviceRow: Sendable, Equatable {
    public let id: DeviceID
    public let user: UserID
    public let state: DeviceState
    public let publicKey: [UInt8]
    public let website: WebsiteRow
    /// The number of wrong numbers since the last right one; `failedAt` is the time of the last
    /// wrong one.
    public let failures: Int
    public let failedAt: Timestamp?
    public let platform: Platform
    /// The number of notices that no phone of the user has fetched.
    public let unread: Int
    public let pin: PhonePIN
    /// The last statement about the relay's authority whose pin the phone holds.
    public let pinSequence: Int64

    public init(
        id: DeviceID, user: UserID, state: DeviceState, publicKey: [UInt8], website: WebsiteRow, failures: Int,
        failedAt: Timestamp?, platform: Platform, unread: Int = 0, pin: PhonePIN = PhonePIN(), pinSequence: Int64 = 0
    ) {
        self.pinSequence = pinSequence
        self.pin = pin
        self.unread = unread
        self.platform = platform
        self.id = id
        self.user = user
        self.state = state
        self.publicKey = publicKey
        self.website = website
        self.failures = failures
        self.failedAt = failedAt
    }
}

extension Relay {
    /// Returns the website with that name if the key of the connection is registered for it.
    ///
    /// - Parameter certificate: the certificate of the connection; nil if it is unknown.
    public func website(
        named name: String, key: [UInt8], _ certificate: WebsiteCertificate? = nil
    ) async throws(Refusal) -> Website {
        let row = try await withStore("authentication") { () async throws(StoreFailure) in
            try await store.website(named: name, key: key, at: time.now())
        }
        guard let row else { throw .unauthenticated }
        usedWebsiteKeys.record(WebsiteKeyUse(thumbprint: key, certificate: certificate, at: time.now()))
        let website = try website(row)
        usage.update(website.id, website.name, at: time.now()) { $0.limits = website.policy.limits }
        return website
    }

    /// Returns the website with its policy: the values of its row, and otherwise those of the
    /// installation.
    func website(_ row: WebsiteRow) throws(Refusal) -> Website {
        do {
            let policy = try policies.policy(changedBy: row.policy) { noteOutdated($0, of: row) }
            return Website(id: row.id, name: row.name, displayName: row.displayName, policy: policy)
        } catch {
            log.error("website.policy", [.website: row.name, .reason: error.message])
            throw .broken
        }
    }

    /// Logs a stored policy that is read as none, once for each website.
    private func noteOutdated(_ fault: Policy.Fault, of row: WebsiteRow) {
        guard outdatedPolicies.withLock({ $0.insert(row.id).inserted }) else { return }
        log.warning("website.policy", [.website: row.name, .reason: fault.message])
    }

    /// Returns the phone with that id if it is active and the key is its own.
    ///
    /// - Parameters:
    ///   - key: the key of the connection's certificate, or of the proof.
    ///   - isCertified: whether the key is that of the certificate.
    public func device(
        _ id: DeviceID, key: [UInt8], isCertified: Bool
    ) async throws(Refusal) -> PhoneCredential {
        let row = try await withStore("authentication") { () async throws(StoreFailure) in
            try await store.device(id, key: key)
        }
        guard let row, row.state == .active else { throw .unauthenticated }
        return PhoneCredential(row, key: key, isCertified: isCertified)
    }
}

/// An authenticated phone.
public struct PhoneCredential: Sendable, Equatable {
    public let id: DeviceID
    public let user: UserID
    /// SHA-256 of its SubjectPublicKeyInfo.
    public let key: [UInt8]
    public let publicKey: [UInt8]
    /// The website of the phone's user.
    public let website: WebsiteRow
    public let failures: Int
    public let failedAt: Timestamp?
    public let platform: Platform
    /// The number of notices that no phone of the user has fetched.
    public let unread: Int
    /// The phone's PIN, as it was read with this request.
    public internal(set) var pin: PhonePIN
    /// Whether the phone authenticated with its certificate, and not with a DPoP proof for one
    /// request.
    public let isCertified: Bool
    /// The DPoP proof of this request; nil with a certificate.
    let proof: ProofOfPossession?
    /// The last statement about the relay's authority whose pin the phone holds.
    public internal(set) var pinSequence: Int64 = 0

    public init(
        id: DeviceID, user: UserID, key: [UInt8], publicKey: [UInt8], website: WebsiteRow, failures: Int,
        failedAt: Timestamp?, platform: Platform = .other, unread: Int = 0, pin: PhonePIN = PhonePIN(),
        isCertified: Bool, proof: ProofOfPossession? = nil
    ) {
        self.pin = pin
        self.unread = unread
        self.proof = proof
        self.platform = platform
        self.isCertified = isCertified
        self.id = id
        self.user = user
        self.key = key
        self.publicKey = publicKey
        self.website = website
        self.failures = failures
        self.failedAt = failedAt
    }
}

extension PhoneCredential {
    init(_ row: DeviceRow, key: [UInt8], isCertified: Bool, proof: ProofOfPossession? = nil) {
        self.init(
            id: row.id, user: row.user, key: key, publicKey: row.publicKey, website: row.website,
            failures: row.failures, failedAt: row.failedAt, platform: row.platform, unread: row.unread, pin: row.pin,
            isCertified: isCertified, proof: proof)
        pinSequence = row.pinSequence
    }
}
