import Domain
import Synchronization

/// The limits and periods of a relay that a reload replaces while requests are served.
///
/// Each use reads them once, so a request sees either the old or the new values. Nothing that exists
/// is ended by a lower limit: held requests and requests in work keep their slots.
///
/// Tested in `AdjustableSettingsTests.swift`, and with a running relay in `ReloadedLimitTests.swift`.
public struct AdjustableSettings: Sendable, Equatable {
    public var quotas: Quotas
    public var retention: Retention
    public var rolling: RollingKeySettings

    public init(quotas: Quotas, retention: Retention, rolling: RollingKeySettings) {
        self.quotas = quotas
        self.retention = retention
        self.rolling = rolling
    }

    init(_ settings: Relay.Settings) {
        self.init(quotas: settings.quotas, retention: settings.retention, rolling: settings.rolling)
    }
}

extension Relay {
    /// The limits and periods that hold now. `settings` has those of the start.
    var adjustable: AdjustableSettings { adjustables.withLock { $0 } }

    /// Uses these limits for later requests, and these periods from the next run of the periodic
    /// work.
    public func replace(_ adjustable: AdjustableSettings) {
        adjustables.withLock { $0 = adjustable }
        quotaUse.replace(adjustable.quotas)
        userQuota.replace(adjustable.quotas)
    }
}
