/// The person's answer to a challenge, with what the app knows about it.
public struct Answer: Sendable {
    public enum Decision: Sendable, Equatable {
        /// An approval, with the number that the person typed if the challenge has one. It is a
        /// text: `07` is two digits.
        case approve(number: String?)
        case deny
        /// A report that this was not the person. It freezes every factor of the user.
        case fraud

        public var word: String {
            switch self {
            case .approve: "approve"
            case .deny: "deny"
            case .fraud: "fraud"
            }
        }
    }

    /// The method by which the phone verified its owner for this signature.
    public enum Verification: String, Sendable {
        case none, passcode, biometric
    }

    public var decision: Decision
    public var verification = Verification.none
    /// The seconds since the phone verified its owner, by a clock that cannot be set.
    public var verificationAge: Int64?
    /// The place of the phone, if the person agrees to report it.
    public var place: CoarsePlace?
    public var posture: Posture?
    /// The PIN that the person typed.
    public var pin: String?

    public init(_ decision: Decision, verification: Verification = .none) {
        self.decision = decision
        self.verification = verification
    }
}

/// The place of the phone to one decimal of a degree, about 11 km. A finer place is never sent.
public struct CoarsePlace: Sendable, Equatable {
    public let text: String

    /// - Parameter metres: the accuracy of the place.
    /// - Returns: nil if the phone does not know its place to within 50 km.
    public init?(latitude: Double, longitude: Double, accurateTo metres: Double) {
        guard (-90...90).contains(latitude), (-180...180).contains(longitude), (0...50_000).contains(metres) else {
            return nil
        }
        func rounded(_ degrees: Double) -> String {
            let tenths = Int((degrees * 10).rounded())
            return "\(tenths < 0 ? "-" : "")\(abs(tenths) / 10).\(abs(tenths) % 10)"
        }
        text = "\(rounded(latitude)),\(rounded(longitude))"
    }
}

/// The state of the phone, which an answer reports if the website has demands.
public struct Posture: Sendable, Equatable {
    public var osVersion: String?
    /// The bundle version.
    public var appVersion: String?
    public var hasScreenLock: Bool?
    public var isRooted: Bool?

    public init() {}

    var claim: JSONObject {
        var claim = JSONObject()
        claim["os_version"] = osVersion.map { .string($0) }
        claim["app_version"] = appVersion.map { .string($0) }
        claim["screen_lock"] = hasScreenLock.map { .bool($0) }
        claim["rooted"] = isRooted.map { .bool($0) }
        return claim
    }
}
