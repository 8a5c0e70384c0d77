import Domain
import Relay
import World

/// The operator's query about the certificates of a phone.
public enum DeviceCertificates {
    public struct Certificate: Sendable, Equatable {
        /// The serial number in hexadecimal.
        public let serial: String
        public let createdAt: Timestamp
        public let expiresAt: Timestamp
        /// The time of the revocation; nil if the certificate is not revoked.
        public let revokedAt: Timestamp?
        /// Whether the certificate is on hold, because its phone is suspended.
        public let isOnHold: Bool
    }

    /// Reads the certificates of a phone that have not been deleted, the newest first.
    public static func all(of device: DeviceID) -> Query<[Certificate]> {
        let script = Script("device show", reads: [certificatesOfDevice(device: .id(device))])
        return Query(script: script) { rows throws(StoreFailure) in
            var certificates: [Certificate] = []
            for row in rows[0] {
                certificates.append(
                    Certificate(
                        serial: try row.text("serial"), createdAt: try row.timestamp("created_at"),
                        expiresAt: try row.timestamp("expires_at"),
                        revokedAt: try row.optionalTimestamp("revoked_at"), isOnHold: try row.bool("is_on_hold")))
            }
            return certificates
        }
    }

    private static let certificatesOfDevice = Statement(
        """
        SELECT serial, created_at, expires_at, revoked_at, is_on_hold FROM certificate
        WHERE device_id = :device ORDER BY created_at DESC, serial
        """)
}
