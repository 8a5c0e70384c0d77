import Domain

/// How mails and text messages leave now.
public struct MessageCouriers: Sendable {
    /// Nil where none is set up.
    public var mail: (any MessageCourier)?
    public var texts: (any MessageCourier)?
    public var smsLimits: SMSLimits

    public init(
        mail: (any MessageCourier)? = nil, texts: (any MessageCourier)? = nil, smsLimits: SMSLimits = SMSLimits()
    ) {
        self.mail = mail
        self.texts = texts
        self.smsLimits = smsLimits
    }
}
