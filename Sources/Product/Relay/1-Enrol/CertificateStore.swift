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
    /// Returns how many certificates of a phone, without the tagged ones, and of its user have not
    /// expired.
    func livingCertificates(
        of device: DeviceID, user: UserID, at: Timestamp
    ) async throws(StoreFailure) -> LivingCertificates
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
    /// its certificate in time has two. Tagged certificates have places of their own.
    public static let most = 8
    /// The same number after an enrolment. The repetitions of an enrolment whose answer was lost find
    /// room, because a further one is refused at `most`.
    public static let mostEnrolled = 16
    /// The time between two certificates of a phone that has as many. So a phone that has used them
    /// up, for example because answers were lost, is not without a certificate until one expires.
    public static let pause = Duration.seconds(7 * 86_400)
    /// The most certificates of all phones of a user that have not expired, tagged or not.
    public static let mostOfUser = 256

    public let device: DeviceID
    public let user: UserID
    /// The serial number in hexadecimal.
    public let serial: String
    public let expiresAt: Timestamp
    /// The number of the phone's certificates from which on it must wait for the next one.
    public let most: Int
    public let at: Timestamp

    public init(
        device: DeviceID, user: UserID, serial: String, expiresAt: Timestamp, most: Int = NewCertificate.most,
        at now: Timestamp
    ) {
        self.device = device
        self.user = user
        self.serial = serial
        self.expiresAt = expiresAt
        self.most = most
        at = now
    }
}

/// The certificates of a phone and its user that have not expired, revoked ones included.
public struct LivingCertificates: Sendable, Equatable {
    public let count: Int
    /// The time when the newest one was made; nil if there is none.
    public let newest: Timestamp?
    /// Those of all phones of the user, tagged or not.
    public let ofUser: Int
    /// The time when the first one of the user expires; nil if there is none.
    public let firstEnd: Timestamp?

    public init(count: Int, newest: Timestamp?, ofUser: Int, firstEnd: Timestamp?) {
        self.count = count
        self.newest = newest
        self.ofUser = ofUser
        self.firstEnd = firstEnd
    }

    /// The time from which on the phone may have another one; nil if it may now.
    func end(most: Int, at now: Timestamp) -> Timestamp? {
        if ofUser >= NewCertificate.mostOfUser, let firstEnd { return firstEnd }
        guard count >= most, let newest, newest + NewCertificate.pause > now else { return nil }
        return newest + NewCertificate.pause
    }
}
