import Domain
import Log
import World

/// Who calls. Looked up for every request, so that what is revoked is revoked at once.
public protocol AuthenticationStore: Sendable {
    /// The active website of that name, if the key is one of its own.
    func website(named name: String, key: [UInt8]) async throws(StoreFailure) -> WebsiteRow?
    /// The phone of that id in its present state, if the key is its own.
    func device(_ id: DeviceID, key: [UInt8]) async throws(StoreFailure) -> DeviceRow?
    /// The phone whose key that is.
    func device(key: [UInt8]) async throws(StoreFailure) -> DeviceRow?
}

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

/// A website that has proved who it is.
public struct Website: Sendable, Equatable {
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

public struct DeviceRow: Sendable, Equatable {
    public let id: DeviceID
    public let user: UserID
    public let state: DeviceState
    public let publicKey: [UInt8]
    public let website: WebsiteRow
    /// Wrong numbers since the last right one, and when the last of them came.
    public let failures: Int
    public let failedAt: Timestamp?
    public let platform: Platform

    public init(
        id: DeviceID, user: UserID, state: DeviceState, publicKey: [UInt8], website: WebsiteRow, failures: Int,
        failedAt: Timestamp?, platform: Platform
    ) {
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
    /// The website of that name, if the key behind the connection is registered for it.
    public func website(named name: String, key: [UInt8]) async throws(Refusal) -> Website {
        let row = try await withStore("identify") { () async throws(StoreFailure) in
            try await store.website(named: name, key: key)
        }
        guard let row else { throw .unauthenticated }
        return try website(row)
    }

    /// The website with its policies, as the installation and its row have them.
    func website(_ row: WebsiteRow) throws(Refusal) -> Website {
        do {
            let policy = try settings.policy.changed(by: row.policy)
            return Website(id: row.id, name: row.name, displayName: row.displayName, policy: policy)
        } catch {
            log.error("website.policy", [.website: row.name, .reason: error.message])
            throw .broken
        }
    }

    /// The phone of that id, if it is active and the key is its own: that behind the connection, or the one that it proved.
    public func device(
        _ id: DeviceID, key: [UInt8], isCertified: Bool
    ) async throws(Refusal) -> PhoneCredential {
        let row = try await withStore("identify") { () async throws(StoreFailure) in
            try await store.device(id, key: key)
        }
        guard let row, row.state == .active else { throw .unauthenticated }
        return PhoneCredential(row, key: key, isCertified: isCertified)
    }
}

/// A phone that has proved who it is.
public struct PhoneCredential: Sendable, Equatable {
    public let id: DeviceID
    public let user: UserID
    /// SHA-256 of its SubjectPublicKeyInfo.
    public let key: [UInt8]
    public let publicKey: [UInt8]
    /// Whose user it answers for.
    public let website: WebsiteRow
    public let failures: Int
    public let failedAt: Timestamp?
    public let platform: Platform
    /// By its certificate, and not by a proof for one request.
    public let isCertified: Bool
    /// The proof that was made for this request.
    let proof: ProofOfPossession?

    public init(
        id: DeviceID, user: UserID, key: [UInt8], publicKey: [UInt8], website: WebsiteRow, failures: Int,
        failedAt: Timestamp?, platform: Platform = .other, isCertified: Bool, proof: ProofOfPossession? = nil
    ) {
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
            failures: row.failures, failedAt: row.failedAt, platform: row.platform, isCertified: isCertified,
            proof: proof)
    }
}
