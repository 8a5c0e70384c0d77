import Domain
import World

/// A code to be sent, named by its factor and counter. It never holds the digits: they are computed
/// when the message is sent.
public struct CodeToSend: Sendable, Equatable {
    public let id: OutboxEntryID
    public let factor: FactorID
    /// The factor's counter as it was read. The script writes nothing if the counter has moved
    /// since.
    public let counter: Int64
    /// The challenge; nil for a code that confirms an address.
    public let challenge: ChallengeID?
    /// The language of the message: a BCP 47 tag or a whole `Accept-Language`.
    public let language: String?
    public let at: Timestamp
    /// The end of the code's validity. The code is not sent after this time.
    public let expiresAt: Timestamp
    /// The relay that sends the code now, and the end of its lease.
    public let holder: RelayID
    public let leasedUntil: Timestamp

    public init(
        id: OutboxEntryID, factor: FactorID, counter: Int64, challenge: ChallengeID?, language: String?, at: Timestamp,
        expiresAt: Timestamp, holder: RelayID, leasedUntil: Timestamp
    ) {
        self.id = id
        self.factor = factor
        self.counter = counter
        self.challenge = challenge
        self.language = language
        self.at = at
        self.expiresAt = expiresAt
        self.holder = holder
        self.leasedUntil = leasedUntil
    }
}

extension Relay {
    /// The duration of a message's lease. A courier answers within 30 seconds.
    static let messageLease = Duration.seconds(40)

    /// The next code of a factor, for the script that puts it into the outbox. After the script,
    /// `startDelivery` sends it.
    func nextCode(
        of factor: CodeFactor, for challenge: ChallengeID?, language: String?, until expiresAt: Timestamp,
        at now: Timestamp, as operation: Operation
    ) -> CodeToSend {
        CodeToSend(
            id: operation.identifier("message \(factor.kind.rawValue)"), factor: factor.id, counter: factor.counter,
            challenge: challenge, language: language, at: now, expiresAt: expiresAt, holder: id,
            leasedUntil: now + Self.messageLease)
    }
}
