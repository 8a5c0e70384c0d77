import Domain
import TestSupport
import Testing

@testable import Geo

/// The distance between an address and a phone.
@Suite struct DistanceTests {
    private let directory: TemporaryDirectory
    private let finder: PlaceFinder

    init() throws {
        directory = try TemporaryDirectory()
        var file = MaxMindFile()
        file.add("192.0.2.0/25", .place(city: "Equator", latitude: 0, longitude: 0, radius: .number16(100)))
        file.add("192.0.2.128/25", .place(city: "Date line", latitude: 0, longitude: 179.5, radius: .number16(0)))
        file.add("198.51.100.0/25", .place(city: "No radius", latitude: 0, longitude: 0))
        file.add("198.51.100.128/25", .place(city: "Nowhere", latitude: 91, longitude: 0, radius: .number16(1)))
        file.add("203.0.113.0/24", .place(country: "Austria"))
        for (index, radius) in [-1e300, -1, 1e300, 20_039].enumerated() {
            let value = MaxMindFile.Value.double(radius)
            file.add("203.0.112.\(index)/32", .place(city: "Corrupt", latitude: 0, longitude: 0, radius: value))
        }
        file.add("203.0.112.4/32", .place(city: "Anywhere", latitude: 0, longitude: 0, radius: .double(20_038)))
        try file.write(to: directory("places.mmdb"))
        finder = try PlaceFinder(path: directory("places.mmdb"))
    }

    private func distance(_ ip: String, _ place: String) throws -> Int? {
        finder.distance(of: ip, to: try #require(CoarsePlace(place)))
    }

    /// Ten degrees of the equator of a sphere of 6371 km are 1111.9 km; a quarter of it is 10007.5 km.
    @Test func radiusAndRoundingAreSubtracted() throws {
        #expect(try distance("192.0.2.1", "0,0") == 0)
        #expect(try distance("192.0.2.1", "0.9,0") == 0)
        #expect(try distance("192.0.2.1", "0,10") == 1111 - 100 - 8)
        #expect(try distance("192.0.2.1", "90,0") == 10_007 - 100 - 8)
        #expect(try distance("192.0.2.1", "0,180") == 20_015 - 100 - 8)
        #expect(try distance("198.51.100.1", "0,10") == 1111 - 1000 - 8)
    }

    @Test func dateLineIsCrossed() throws { #expect(try distance("192.0.2.200", "0,-179.5") == 111 - 8) }

    /// The file is from somebody else, so no number in it may stop the relay.
    @Test func corruptRadiusHasNoDistance() throws {
        for index in 0..<4 { #expect(try distance("203.0.112.\(index)", "0,10") == nil, "\(index)") }
        #expect(try distance("203.0.112.4", "0,180") == 0)
    }

    @Test(arguments: ["203.0.113.1", "198.51.100.200", "127.0.0.1", "localhost", ""])
    func addressWithoutCoordinatesHasNoDistance(ip: String) throws { #expect(try distance(ip, "0,0") == nil) }
}
