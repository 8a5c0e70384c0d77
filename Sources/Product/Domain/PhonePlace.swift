/// The coarse place of a phone, as the phone reports it in a signed decision: latitude and longitude
/// in degrees, with one decimal at most, such as `52.5,13.4`.
///
/// The form permits no finer place: the relay need not know where a person lives. A place can be
/// forged, so it is a hint and never a proof.
public struct CoarsePlace: Sendable, Equatable {
    public let latitude: Double
    public let longitude: Double

    /// The greatest distance in kilometres between the phone and its reported place: half of the
    /// diagonal of a tenth of a degree, rounded up.
    public static let error = 8.0

    /// Parses a place; nil if it has another form or is not on the earth.
    public init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        guard parts.count == 2, let latitude = Self.degrees(parts[0], upTo: 90),
            let longitude = Self.degrees(parts[1], upTo: 180)
        else { return nil }
        self.latitude = latitude
        self.longitude = longitude
    }

    private static func degrees(_ text: Substring.UTF8View, upTo limit: Int) -> Double? {
        let isNegative = text.first == UInt8(ascii: "-")
        let parts = text.dropFirst(isNegative ? 1 : 0)
            .split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let areDigits = parts.allSatisfy { part in part.allSatisfy { (0x30...0x39).contains($0) } }
        guard areDigits, let whole = parts.first, (1...3).contains(whole.count), let degrees = Int(Substring(whole))
        else { return nil }
        var tenths = 0
        if parts.count == 2, let part = parts.last, part.count == 1, let digit = Int(Substring(part)) {
            tenths = digit
        } else if parts.count != 1 {
            return nil
        }
        let value = degrees * 10 + tenths
        guard value <= limit * 10 else { return nil }
        return Double(isNegative ? -value : value) / 10
    }
}

/// The use of the phone's place.
public enum PhonePlaceUse: String, Sendable, CaseIterable {
    /// The relay does not ask phones for their place.
    case ignore
    /// The website gets the result of the comparison.
    case flag
    /// An approval from too far away fails the challenge, too.
    case refuse
}

/// The result of comparing a phone's place with the place of the login's address.
public enum PlaceCheck: String, Sendable, CaseIterable {
    case near, far
    /// The phone reported no place, or the address has none.
    case unknown
}

/// A comparison of the two places.
public struct PlaceComparison: Sendable, Equatable {
    public let check: PlaceCheck
    /// The least distance in kilometres; nil if one of the places is not known.
    public let distance: Int?

    public init(check: PlaceCheck, distance: Int?) {
        self.check = check
        self.distance = distance
    }

    /// Judges a distance by the policy; nil if the policy ignores the place of the phone.
    public init?(distance: Int?, by policy: Policy) {
        guard policy.phonePlace != .ignore else { return nil }
        self.distance = distance
        check = distance.map { $0 > policy.phonePlaceDistance ? .far : .near } ?? .unknown
    }

    /// Whether an approval with this result is refused.
    public func isRefused(by policy: Policy) -> Bool { check == .far && policy.phonePlace == .refuse }
}
