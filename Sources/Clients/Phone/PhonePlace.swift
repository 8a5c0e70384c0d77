/// The coarse place of this phone, which it may report with a decision: a tenth of a degree, about 11
/// kilometres. The website sees it, because it stands in the receipt.
public struct PhonePlace: Sendable, Equatable {
    /// Latitude and longitude, such as `52.5,13.4`.
    public let text: String

    /// Rounds a place; nil if it is not on the earth.
    public init?(latitude: Double, longitude: Double) {
        guard (-90...90).contains(latitude), (-180...180).contains(longitude) else { return nil }
        text = "\(Self.rounded(latitude)),\(Self.rounded(longitude))"
    }

    private static func rounded(_ degrees: Double) -> String {
        let tenths = Int((degrees * 10).rounded())
        return "\(tenths < 0 ? "-" : "")\(abs(tenths) / 10).\(abs(tenths) % 10)"
    }
}
