/// One text to one number.
public struct SMPPMessage: Sendable {
    /// The sender's own name for it. What tells the parts of a long text apart from those of another follows from it, so a message
    /// that is sent again under the same id is put together with what has come of it before.
    public var id: String
    /// Nil: as the options have it.
    public var from: SMPPAddress?
    public var to: String
    public var text: String
    /// The gateway gives up after that.
    public var validity: Duration?
    /// From here to the outcome: half of it to wait for its turn, and for the answer what is left. Nil: as the options have it.
    public var limit: Duration?

    public init(
        id: String, from: SMPPAddress? = nil, to: String, text: String, validity: Duration? = nil,
        limit: Duration? = nil
    ) {
        self.id = id
        self.from = from
        self.to = to
        self.text = text
        self.validity = validity
        self.limit = limit
    }
}

/// What became of a message.
public enum SMPPOutcome: Sendable, Equatable {
    /// The gateway's ids, one for each part.
    case accepted([String])
    /// This number will never take it.
    case refused(String)
    /// It was not taken whole, and may be later.
    case retry(String)
    /// It could not be sent, and the reason is not the number: no connection, a bind that was refused, a setting.
    case undeliverable(String)
    /// All of it was sent, and of some part nobody knows whether it was taken.
    case ambiguous(String)

    /// Of the parts of one message the worst says what became of it.
    var rank: Int {
        switch self {
        case .accepted: 0
        case .ambiguous: 1
        case .retry: 2
        case .undeliverable: 3
        case .refused: 4
        }
    }
}
