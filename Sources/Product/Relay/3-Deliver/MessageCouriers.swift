import Domain

/// The couriers of mails and text messages in the current configuration.
public struct MessageCouriers: Sendable {
    /// The courier of mails; nil if no mail is configured.
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
