import Bytes
import Crypto
import Domain
import Log
import World

/// A factor of a user that is answered by a code, as it stands in the store.
public struct CodeFactor: Sendable, Equatable {
    public let id: FactorID
    public let kind: Factor
    public let state: FactorState
    /// Sealed; nil for recovery codes, which are kept as digests.
    public let secret: [UInt8]?
    public let algorithm: OTPAlgorithm
    public let digits: Int
    /// Of totp: seconds that a code is shown.
    public let period: Int?
    /// totp: the last step that was accepted; hotp: the next that is expected; sms, mail: the next to be sent.
    public let counter: Int64
    /// Of sms and mail: where codes go.
    public let address: String?
    /// Wrong codes since the last right one.
    public let failures: Int
    public let failedAt: Timestamp?
    public let createdAt: Timestamp
    public let confirmedAt: Timestamp?
    /// Its user was asked for it, and approved.
    public let isApproved: Bool

    public init(
        id: FactorID, kind: Factor, state: FactorState, secret: [UInt8]?, algorithm: OTPAlgorithm, digits: Int,
        period: Int?, counter: Int64, address: String?, failures: Int, failedAt: Timestamp?, createdAt: Timestamp,
        confirmedAt: Timestamp?, isApproved: Bool = false
    ) {
        self.id = id
        self.kind = kind
        self.state = state
        self.secret = secret
        self.algorithm = algorithm
        self.digits = digits
        self.period = period
        self.counter = counter
        self.address = address
        self.failures = failures
        self.failedAt = failedAt
        self.createdAt = createdAt
        self.confirmedAt = confirmedAt
        self.isApproved = isApproved
    }
}

extension Relay {
    /// What the codes of a factor are made of; nil where there is nothing sealed. What does not open is our fault, or
    /// somebody's who changed the store.
    func secret(of factor: CodeFactor, user: UserID, website: WebsiteID) throws(Refusal) -> Secret? {
        guard let sealed = factor.secret else { return nil }
        do {
            let associated = FactorSeal.associated(website: website, user: user, kind: factor.kind, row: factor.id)
            return Secret(try sealer.open(sealed, associated: associated))
        } catch {
            log.error("factor.sealed", [.user: user.text, .factor: factor.kind.rawValue, .reason: "\(error)"])
            throw .broken
        }
    }
}
