import Domain
import World

/// A code that is to leave: which one, never what it reads.
public struct CodeToSend: Sendable, Equatable {
    public let id: OutboxEntryID
    public let factor: FactorID
    /// As it was read from the factor.
    public let counter: Int64
    /// Nil for a code that confirms an address.
    public let challenge: ChallengeID?
    /// A tag of BCP 47, or a whole Accept-Language; for a user who has none.
    public let language: String?
    public let at: Timestamp
    /// The code counts no more then, and is not sent after it.
    public let expiresAt: Timestamp
    /// The relay that sends it now, and how long nobody takes it for left behind.
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
    /// How long a message may be under way: its courier answers within thirty seconds.
    static let messageLease = Duration.seconds(40)

    /// The next code of a factor, for the script that makes it leave. Once that is written, `carry` takes it along.
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
