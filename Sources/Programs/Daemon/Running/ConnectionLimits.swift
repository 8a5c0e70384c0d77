import Glibc
import HTTP2
import Log
import Metrics
import World

/// The limits for connections of this process, from its settings and its limit of open files.
enum ConnectionLimits {
    /// The number of connections, unless the settings or the descriptors allow fewer.
    static let most = 20_000

    /// Raises the soft limit of open files to the hard one, and creates the admission control for
    /// what that limit allows.
    static func admission(
        _ settings: Settings.ConnectionSettings, time: any TimeSource, log: Log, _ registry: Registry
    ) -> AdmissionControl {
        let admission = AdmissionControl(limits(settings, log: log), time: time, log: log)
        registry.counters(
            "twoefay_connections_limited_total",
            "Connections refused, delayed, ended or kept unidentified because of a limit, by reason.", by: "reason",
            AdmissionControl.reasons
        ) { admission.count(reason: $0) }
        registry.gauges(
            "twoefay_connections", "Open connections, by kind of caller.", by: "kind",
            AdmissionControl.Kind.allCases.map(\.rawValue)
        ) { kind in AdmissionControl.Kind(rawValue: kind).map { Int64(admission.open($0)) } }
        return admission
    }

    /// Creates the record of handshakes.
    static func handshakes(time: any TimeSource, log: Log, _ registry: Registry) -> HandshakeRecord {
        let record = HandshakeRecord(time: time, log: log)
        registry.counters(
            "twoefay_handshakes_total", "Completed TLS handshakes, full and resumed, by kind of caller.", by: "kind"
        ) { (caller: HandshakeRecord.Caller) in record.completed(by: caller) }
        registry.counters(
            "twoefay_handshakes_resumed_total",
            "Completed TLS handshakes that resumed a session with a ticket, by kind of caller.", by: "kind"
        ) { (caller: HandshakeRecord.Caller) in record.resumed(by: caller) }
        registry.counters(
            "twoefay_handshakes_refused_total",
            "TLS handshakes that ended because of the client's certificate, by reason.", by: "reason",
            HandshakeRecord.reasons
        ) { record.count(reason: $0) }
        return record
    }

    /// Returns the limits for this process, and logs how many connections they allow.
    static func limits(_ settings: Settings.ConnectionSettings, log: Log) -> AdmissionLimits {
        let descriptors = raiseDescriptorLimit()
        let total = total(settings.limit, descriptors: descriptors)
        if settings.limit > total {
            log.warning(
                "connection.limit", [.setting: "connections.limit", .limit: total, .reason: "the limit of open files"])
        }
        log.notice("connection.capacity", [.limit: total, .count: descriptors])
        return limits(settings, total: total)
    }

    static func limits(_ settings: Settings.ConnectionSettings, total: Int) -> AdmissionLimits {
        var limits = AdmissionLimits(total: total, perSource: settings.perSource > 0 ? settings.perSource : nil)
        limits.perPhone = settings.perPhone
        limits.handshakesPerSecond = settings.handshakesPerSecond
        limits.firstRequest = .seconds(settings.firstRequestSeconds)
        limits.unidentifiedLife = .seconds(settings.unidentifiedSeconds)
        return limits
    }

    /// The number of connections that the descriptors allow. An eighth of the descriptors, at most
    /// 512, stays free for the store, pushes, mails and files.
    static func total(_ wanted: Int, descriptors: Int) -> Int {
        min(wanted > 0 ? wanted : most, descriptors - min(descriptors / 8, 512))
    }

    /// Raises the soft limit as far as possible. Returns the limit of open files that applies from
    /// now on.
    private static func raiseDescriptorLimit() -> Int {
        let files = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard getrlimit(files, &limit) == 0 else { return 1024 }
        var raised = limit
        raised.rlim_cur = limit.rlim_max
        if raised.rlim_cur > limit.rlim_cur, setrlimit(files, &raised) == 0 { limit = raised }
        return Int(clamping: limit.rlim_cur)
    }
}
