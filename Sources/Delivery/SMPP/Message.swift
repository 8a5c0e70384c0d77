/// A text message to one number.
public struct SMPPMessage: Sendable {
    /// The sender's id of the message. The reference number that links the parts of a long text is
    /// derived from it. If a message is sent again under the same id, phones can combine parts of
    /// both attempts.
    public var id: String
    /// The sender's address; nil uses `SMPPOptions.source`.
    public var from: SMPPAddress?
    public var to: String
    public var text: String
    /// The time after which the gateway stops trying to deliver the message.
    public var validity: Duration?
    /// The time from submission to the outcome. At most half of it is spent in the queue, the rest
    /// on the answer. Nil uses the times of the options.
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

/// The outcome of a submitted message.
public enum SMPPOutcome: Sendable, Equatable {
    /// The gateway accepted all parts; the value holds its id of each.
    case accepted([String])
    /// The number will never accept it.
    case refused(String)
    /// Not all parts were accepted; a later attempt may succeed.
    case retry(String)
    /// The message could not be sent for a reason other than the number: no connection, a refused
    /// bind, a setting.
    case undeliverable(String)
    /// All parts were sent, and the answer to at least one part was lost.
    case ambiguous(String)

    /// The severity. The outcome of a message is the most severe outcome of its parts.
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
