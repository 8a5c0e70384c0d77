import Crypto
import Domain
import World

/// The store port for the certificates of phones (verb Enrol). It has the serial numbers of the
/// authority's certificates until they expire, so that the revocation list can name them.
///
/// Invariant: a certificate is recorded before its phone gets it, and only while the phone is
/// active. The change that suspends, resumes or unbinds a phone, and the deletion of its user,
/// change its certificates in the same script. So no certificate of a phone that lost its rights is
/// missing in the list, unless somebody changed the phone's row by SQL.
public protocol CertificateStore: Sendable {
    /// Records a certificate. Returns false if the phone is not active.
    func record(_ certificate: NewCertificate, as operation: Operation) async throws(StoreFailure) -> Bool
    /// Returns the certificates that were revoked and have not expired, in the order of their
    /// revocation.
    func revokedCertificates(at now: Timestamp, limit: Int) async throws(StoreFailure) -> [RevokedCertificate]
}

/// A certificate that was issued for a phone.
public struct NewCertificate: Sendable {
    public let device: DeviceID
    public let user: UserID
    /// The serial number in hexadecimal.
    public let serial: String
    public let expiresAt: Timestamp
    public let at: Timestamp

    public init(device: DeviceID, user: UserID, serial: String, expiresAt: Timestamp, at now: Timestamp) {
        self.device = device
        self.user = user
        self.serial = serial
        self.expiresAt = expiresAt
        at = now
    }
}
