import World

/// Which certificates are to be told of: each when 30, 14, 7 and 1 days are left and when it has ended, and each time
/// once. One that was renewed begins anew.
struct ExpiryNotices {
    /// In days.
    static let thresholds: [Int64] = [30, 14, 7, 1, 0]

    struct Notice: Equatable {
        let certificate: CertificateExpiry
        let threshold: Int64

        /// There is not a week left.
        var isUrgent: Bool { threshold <= 7 }
    }

    private struct LastNotice {
        let notAfter: Timestamp
        let threshold: Int64
    }

    private var told: [String: LastNotice] = [:]

    /// The lowest that has been reached; nil while there is more than the highest.
    static func threshold(left: Duration) -> Int64? { thresholds.last { left <= .seconds($0 * 86_400) } }

    mutating func due(_ certificates: [CertificateExpiry], at now: Timestamp) -> [Notice] {
        certificates.compactMap { certificate in
            guard let threshold = Self.threshold(left: certificate.notAfter - now) else { return nil }
            if let before = told[certificate.setting], before.notAfter == certificate.notAfter,
                before.threshold <= threshold
            {
                return nil
            }
            told[certificate.setting] = LastNotice(notAfter: certificate.notAfter, threshold: threshold)
            return Notice(certificate: certificate, threshold: threshold)
        }
    }
}
