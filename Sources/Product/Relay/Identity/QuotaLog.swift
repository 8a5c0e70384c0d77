import Log
import Synchronization
import World

/// The log lines about exceeded quotas, one in a while for each quota.
final class QuotaLog: Sendable {
    private let bursts = Mutex<[Limit: LogThrottle]>([:])

    /// The number of requests refused since the last line about this quota; nil while that is too short ago.
    func log(_ limit: Limit, at now: Instant) -> Int? {
        bursts.withLock { $0[limit, default: LogThrottle()].record(at: now) }
    }
}

/// The quotas whose excess only the transport's side can see.
public enum CallerQuota: Sendable {
    case requests
    case held
}

extension Relay {
    /// Counts a request that was refused because of a quota, and logs that now and then.
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
