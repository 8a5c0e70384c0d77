import World

/// The notices about certificates and revocation lists that end soon: one each when 30, 14, 7 and 1
/// days are left, and one at the end. For a list, notices in the first half of its life are left
/// out. A list whose life is shorter than two days has one when a quarter of its life is left. A
/// renewed one starts again.
///
/// Tested in `CertificateExpiryTests.swift`.
struct ExpiryNotices {
    /// The remaining time at which a notice is due.
    static let thresholds = [30, 14, 7, 1].map { Duration.seconds($0 * 86_400) }

    struct Notice: Equatable {
        let certificate: CertificateExpiry
        let threshold: Duration

        /// Whether at most a week is left.
        var isUrgent: Bool { threshold <= .seconds(7 * 86_400) }
    }

    private struct LastNotice {
        let notAfter: Timestamp
        let threshold: Duration
    }

    private var notices: [String: LastNotice] = [:]

    /// Returns the lowest threshold that has been reached; nil while more time is left than the
    /// highest.
    static func threshold(of certificate: CertificateExpiry, at now: Timestamp) -> Duration? {
        let left = certificate.notAfter - now
        return thresholds(of: certificate).last { left <= $0 }
    }

    /// The thresholds of a certificate or list, the highest first.
    private static func thresholds(of certificate: CertificateExpiry) -> [Duration] {
        guard let life = certificate.life else { return thresholds + [.zero] }
        let late = thresholds.filter { $0 * 2 <= life }
        return (late.isEmpty ? [life / 4] : late) + [.zero]
    }

    /// Returns the notices that are due now, and records them so that each is returned once.
    mutating func due(_ certificates: [CertificateExpiry], at now: Timestamp) -> [Notice] {
        certificates.compactMap { certificate in
            guard let threshold = Self.threshold(of: certificate, at: now) else { return nil }
            if let before = notices[certificate.setting], before.notAfter == certificate.notAfter,
                before.threshold <= threshold
            {
                return nil
            }
            notices[certificate.setting] = LastNotice(notAfter: certificate.notAfter, threshold: threshold)
            return Notice(certificate: certificate, threshold: threshold)
        }
    }
}
