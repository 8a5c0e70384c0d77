import Testing

@testable import Domain

@Suite struct PhonePlaceTests {
    @Test(arguments: [
        ("52.5,13.4", 52.5, 13.4), ("0,0", 0, 0), ("-0.5,-179.9", -0.5, -179.9), ("90,180", 90, 180),
        ("-90.0,-180.0", -90, -180), ("7,007.1", 7, 7.1),
    ])
    func coarsePlaceIsRead(text: String, latitude: Double, longitude: Double) throws {
        let place = try #require(CoarsePlace(text))
        #expect(place.latitude == latitude && place.longitude == longitude)
    }

    /// A finer place is refused, too: the relay need not know it.
    @Test(arguments: [
        "", ",", "52.5", "52.5,", ",13.4", "52.51,13.4", "52.5,13.41", "90.1,0", "-90.1,0", "0,180.1", "0,-180.1",
        "52.5, 13.4", "52.5,13.4,1", "+52.5,13.4", "52.,13.4", ".5,13.4", "5e1,1", "٥٢,13", "nan,0", "--1,0", "0000,0",
        "52.5,13.4\n", String(repeating: "1", count: 10_000),
    ])
    func otherTextIsNoCoarsePlace(text: String) { #expect(CoarsePlace(text) == nil) }

    @Test func distanceIsJudgedByThePolicy() throws {
        var policy = Policy()
        #expect(PlaceComparison(distance: 9000, by: policy) == nil)
        for use in [PhonePlaceUse.flag, .refuse] {
            policy.phonePlace = use
            for (distance, check) in [(nil, .unknown), (0, .near), (500, .near), (501, .far)] as [(Int?, PlaceCheck)] {
                let comparison = try #require(PlaceComparison(distance: distance, by: policy))
                #expect(comparison == PlaceComparison(check: check, distance: distance))
                #expect(comparison.isRefused(by: policy) == (use == .refuse && check == .far))
            }
        }
    }
}
