import Domain

/// How mails and text messages leave now.
public struct MessageWays: Sendable {
    /// Nil where none is set up.
    public var mail: (any MessageCourier)?
    public var texts: (any MessageCourier)?
    public var textLimits: TextLimits

    public init(
        mail: (any MessageCourier)? = nil, texts: (any MessageCourier)? = nil, textLimits: TextLimits = TextLimits()
    ) {
        self.mail = mail
        self.texts = texts
        self.textLimits = textLimits
    }
}
