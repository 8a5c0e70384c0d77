import GSM

/// What is to be read by one telephone. It may hold a code and does not print itself.
public struct SMSMessage: Sendable, CustomStringConvertible, CustomReflectable {
    /// The same at every attempt: a gateway that knows ids can tell a repetition.
    public let id: String
    /// E.164.
    public let to: String
    public let text: String
    public let size: TextSize

    public init(id: String, to: String, text: String) {
        self.id = id
        self.to = to
        self.text = text
        size = TextSize(text)
    }

    public var description: String { "[text message \(id)]" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
