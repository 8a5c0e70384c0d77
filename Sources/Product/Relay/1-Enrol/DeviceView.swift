import Domain
import World

/// A phone as the website of its user sees it.
public struct DeviceView: Sendable, Equatable {
    public let id: DeviceID
    public let name: String?
    public let platform: Platform
    public let state: DeviceState
    /// The device token; empty if the phone polls by itself, or if the push service no longer knows
    /// the token.
    public let pushToken: String
    public let publicKey: [UInt8]?
    /// The key to which secrets for the phone are sealed; nil if it has none.
    public let agreementKey: [UInt8]?
    public let binding: String?
    public let createdAt: Timestamp
    public let lastSeenAt: Timestamp?
    /// The last report of the phone about itself; nil if it has sent none.
    public var report: DeviceReport?
    /// Whether the stored report is not genuine, so that `report` is nil.
    public var isReportForged = false
    /// The author of the suspension or revocation; nil if the phone is neither.
    public let stoppedBy: ChangeAuthor?
    public let counts: DeviceCounts
    /// The time at which the phone expires, with its user; nil if it does not.
    public let expiresAt: Timestamp?
    /// The phone's PIN. Its keys stay in the relay: with one, a thief of the phone could guess.
    public let pin: PhonePIN
    /// The time at which the store was restored from a copy that may not know that the phone was
    /// unbound; nil if it was verified since, or never in doubt.
    public let verifySince: Timestamp?

    public init(
        id: DeviceID, name: String?, platform: Platform, state: DeviceState, pushToken: String, publicKey: [UInt8]?,
        agreementKey: [UInt8]? = nil, binding: String?, createdAt: Timestamp, lastSeenAt: Timestamp?,
        report: DeviceReport?, stoppedBy: ChangeAuthor?, counts: DeviceCounts, expiresAt: Timestamp?,
        pin: PhonePIN, verifySince: Timestamp? = nil
    ) {
        self.verifySince = verifySince
        self.pin = pin
        self.expiresAt = expiresAt
        self.stoppedBy = stoppedBy
        self.counts = counts
        self.report = report
        self.id = id
        self.name = name
        self.platform = platform
        self.state = state
        self.pushToken = pushToken
        self.publicKey = publicKey
        self.agreementKey = agreementKey
        self.binding = binding
        self.createdAt = createdAt
        self.lastSeenAt = lastSeenAt
    }
}

extension DeviceView {
    /// Whether the phone could answer if its user had not expired.
    public func hasExpired(at now: Timestamp) -> Bool {
        state == .active && UserExpiry.hasPassed(expiresAt, at: now)
    }

    /// The state for websites and operators: that of the row, or `expired`.
    public func stateText(at now: Timestamp) -> String { hasExpired(at: now) ? "expired" : state.rawValue }
}

/// The counts of a phone's answers.
public struct DeviceCounts: Sendable, Equatable {
    /// The challenges that the phone has approved.
    public let successes: Int64
    /// The challenges that its answer ended otherwise: denials, reports of fraud, wrong numbers,
    /// and approvals from a refused place.
    public let failures: Int64
    /// The wrong numbers since the last right one; too many lock the user.
    public let wrongNumbers: Int64

    public init(successes: Int64, failures: Int64, wrongNumbers: Int64) {
        self.successes = successes
        self.failures = failures
        self.wrongNumbers = wrongNumbers
    }
}
