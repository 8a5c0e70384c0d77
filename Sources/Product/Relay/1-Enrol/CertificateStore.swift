import Crypto
import Domain
import World

/// The store port for the certificates of phones (verb Enrol). It has the serial numbers of the
/// authority's certificates until they expire, so that the revocation list can name them.
///
/// Invariant: a certificate is recorded before its phone gets it, and only while the phone is
/// active. The change that suspends, resumes or unbinds a phone, and the deletion of its user,
/// change its certificates in the same script. So no certificate of a phone that lost its rights is
/// missing in the list, unless somebody changed the phone's row by SQL. Users and websites are
/// stopped in many ways, and come back, so their state is read for each list. A phone gets
/// `NewCertificate.most` at any rate and then few a month, also for each tag, so none makes the
/// list long.
public protocol CertificateStore: Sendable {
    /// Returns how many certificates of a phone, without the tagged ones, have not expired.
    func livingCertificates(of device: DeviceID, at: Timestamp) async throws(StoreFailure) -> LivingCertificates
    /// Records a certificate. Returns false if the phone is not active, or has too many.
    func record(_ certificate: NewCertificate, as operation: Operation) async throws(StoreFailure) -> Bool
    /// Returns the certificates that were revoked and have not expired. Those of users who cannot
    /// log in, and of disabled websites, are on hold. The most important come last: if there are
    /// more than `limit`, the first ones are left out.
    func revokedCertificates(at now: Timestamp, limit: Int) async throws(StoreFailure) -> RevokedCertificates
}

/// The entries for a revocation list.
public struct RevokedCertificates: Sendable, Equatable {
    public var certificates: [RevokedCertificate] = []
    /// The serial numbers of rows that are no entry, because somebody changed them by SQL.
    public var malformed: [String] = []

    public init() {}
}

/// A certificate that was issued for a phone.
public struct NewCertificate: Sendable {
    /// The certificates that have not expired which a phone may have at any rate. A phone that renews
    /// its certificate in time has two.
    public static let most = 8
    /// The time between two certificates of a phone that has as many. So a phone that has used them
    /// up, for example because answers were lost, is not without a certificate until one expires.
    public static let pause = Duration.seconds(6 * 3600)

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

/// The certificates of a phone that have not expired.
public struct LivingCertificates: Sendable, Equatable {
    public let count: Int
    /// The time when the newest one was made; nil if there is none.
    public let newest: Timestamp?

    public init(count: Int, newest: Timestamp?) {
        self.count = count
        self.newest = newest
    }
}
