import World

/// The notices about certificates and revocation lists that end soon: one each when 30, 14, 7 and 1
/// days are left, and one at the end. For a list, notices in the first half of its life are left
/// out. A renewed one starts again.
///
/// Tested in `CertificateExpiryTests.swift`.
struct ExpiryNotices {
    /// The remaining days at which a notice is due.
    static let thresholds: [Int64] = [30, 14, 7, 1, 0]

    struct Notice: Equatable {
        let certificate: CertificateExpiry
        let threshold: Int64

        /// Whether at most a week is left.
        var isUrgent: Bool { threshold <= 7 }
    }

    private struct LastNotice {
        let notAfter: Timestamp
        let threshold: Int64
    }

    private var notices: [String: LastNotice] = [:]

    /// Returns the lowest threshold that has been reached; nil while more time is left than the
    /// highest.
    static func threshold(of certificate: CertificateExpiry, at now: Timestamp) -> Int64? {
        let left = certificate.notAfter - now
        return thresholds.last { days in
            let limit = Duration.seconds(days * 86_400)
            return left <= limit && certificate.life.map { limit * 2 <= $0 } != false
        }
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
