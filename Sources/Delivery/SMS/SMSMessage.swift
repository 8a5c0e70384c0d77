import GSM

/// A text message for one number. It may hold a code, so it does not print its text.
public struct SMSMessage: Sendable, CustomStringConvertible, CustomReflectable {
    /// The id, the same for every attempt, so that a gateway that supports ids can recognize a
    /// repetition.
    public let id: String
    /// The number in E.164 form.
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
