import Geo
import TestSupport
import Testing
import World

@testable import Demo

@Suite struct LoopbackLocationTests {
    /// Reads the database as the relay does.
    @Test func databaseNamesOnlyLoopbackAddresses() throws {
        let directory = try TemporaryDirectory()
        try TextFile.write(LoopbackLocation.database(at: 1_795_249_354), to: directory("places.mmdb"))
        let places = try PlaceFinder(path: directory("places.mmdb"))
        #expect(places.madeAt == Timestamp(seconds: 1_795_249_354))
        for address in ["127.0.0.1", "127.255.255.255", "::ffff:127.0.0.1"] {
            #expect(places.place(of: address) == "This machine")
        }
        for address in ["126.255.255.255", "128.0.0.1", "0.0.0.0", "255.255.255.255", "::1"] {
            #expect(places.place(of: address) == nil, "\(address)")
        }
    }
}
