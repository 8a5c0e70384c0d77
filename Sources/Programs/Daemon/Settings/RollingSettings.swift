import Relay

extension Settings {
    /// The schedules of the keys that the relays make by themselves.
    public var rolling: RollingKeySettings {
        RollingKeySettings(
            nonces: nonceKeyHours == 0 ? nil : RollingKeySchedule(period: .seconds(3600 * nonceKeyHours)),
            webhooks: webhookSecretDays == 0 ? nil : .seconds(86_400 * webhookSecretDays))
    }
}
