import Domain
import Glibc

extension PlaceFinder {
    /// Returns the least distance in kilometres between the area of an IP address and the coarse place
    /// of a phone; nil if the database has no valid area for the address.
    ///
    /// The area of the address is a circle with the database's radius, and the phone may be anywhere
    /// near its rounded place. Both are subtracted, so that an inexact place is never called far.
    public func distance(of ip: String, to place: CoarsePlace) -> Int? {
        guard let area = area(of: ip) else { return nil }
        let between = Self.kilometres(
            fromLatitude: area.latitude, longitude: area.longitude, toLatitude: place.latitude,
            longitude: place.longitude)
        return Int(max(0, between - area.radius - CoarsePlace.error))
    }

    /// The radius of an address without a radius in the database: that of a large country.
    static let usualRadius = 1000.0

    /// The valid radii. The longest one is half the circumference of the Earth at the equator. A
    /// number outside is a fault of the file, and a distance that follows from it may not fit into
    /// an `Int`.
    static let radii = 0.0...20_038

    private static let radiusOfTheEarth = 6371.0

    /// Returns the distance on the surface of a sphere, by the haversine formula.
    static func kilometres(
        fromLatitude a: Double, longitude b: Double, toLatitude c: Double, longitude d: Double
    ) -> Double {
        func radians(_ degrees: Double) -> Double { degrees * .pi / 180 }
        let (north, east) = (sin(radians(c - a) / 2), sin(radians(d - b) / 2))
        let part = north * north + cos(radians(a)) * cos(radians(c)) * east * east
        return 2 * radiusOfTheEarth * asin(min(1, part.squareRoot()))
    }
}
