import Bytes
import Crypto
import Domain
import Log
import World

/// The stored row of a user's code factor.
public struct CodeFactor: Sendable, Equatable {
    public let id: FactorID
    public let kind: Factor
    public let state: FactorState
    /// The sealed secret; nil for recovery codes, which are stored as digests.
    public let secret: [UInt8]?
    public let algorithm: OTPAlgorithm
    public let digits: Int
    /// The seconds for which a TOTP code is shown; nil for other kinds.
    public let period: Int?
    /// The counter. For TOTP, it is the last accepted time step; for HOTP, the next expected
    /// counter. For SMS and mail, it is the counter of the next code to be sent.
    public let counter: Int64
    /// The address to which codes are sent, for SMS and mail; otherwise nil.
    public let address: String?
    /// The number of wrong codes since the last right one.
    public let failures: Int
    public let failedAt: Timestamp?
    public let createdAt: Timestamp
    public let confirmedAt: Timestamp?
    /// Whether the user was asked to approve this factor, and did.
    public let isApproved: Bool
    /// The time at which a code of the factor was last right.
    public let lastCodeAt: Timestamp?
    /// The phone that got the secret of a TOTP factor, sealed; nil if the website got it.
    public let device: DeviceID?
    /// Whether only a resynchronisation is accepted: the store was restored, and the counter of the
    /// hardware token may be older than what the token has shown.
    public let needsResync: Bool

    public init(
        id: FactorID, kind: Factor, state: FactorState, secret: [UInt8]?, algorithm: OTPAlgorithm, digits: Int,
        period: Int?, counter: Int64, address: String?, failures: Int, failedAt: Timestamp?, createdAt: Timestamp,
        confirmedAt: Timestamp?, isApproved: Bool = false,
        lastCodeAt: Timestamp? = nil, device: DeviceID? = nil, needsResync: Bool = false
    ) {
        self.needsResync = needsResync
        self.device = device
        self.lastCodeAt = lastCodeAt
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
    /// Returns the secret from which a factor's codes are computed; nil if the factor has no sealed
    /// secret. If the secret cannot be opened, either the relay has a bug or the store was changed
    /// from outside. The refusal is then `broken`.
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
