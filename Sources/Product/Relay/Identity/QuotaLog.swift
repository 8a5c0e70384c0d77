import Log
import Synchronization
import World

/// The log throttle for exceeded quotas: one line in a while for each quota.
final class QuotaLog: Sendable {
    private let bursts = Mutex<[Limit: LogThrottle]>([:])

    /// Returns the number of requests refused since the last line about this quota; nil if the last
    /// line is too recent.
    func log(_ limit: Limit, at now: Instant) -> Int? {
        bursts.withLock { $0[limit, default: LogThrottle()].record(at: now) }
    }
}

/// The quotas that are checked outside this module, where requests arrive.
public enum CallerQuota: Sendable {
    case requests
    case held
}

extension Relay {
    /// Counts a request that was refused because of a quota, and logs it from time to time.
    public func exceeded(_ quota: CallerQuota, by name: String?) {
        switch quota {
        case .requests: exceeded(Limit.requests, by: name)
        case .held: exceeded(Limit.held, by: name)
        }
    }

    func exceeded(_ limit: Limit, by name: String?) {
        metrics.reached(limit)
        guard let count = quotaNotices.log(limit, at: time.instant()) else { return }
        log.warning("quota.exceeded", [.limit: limit.rawValue, .website: name, .count: count])
    }
}
