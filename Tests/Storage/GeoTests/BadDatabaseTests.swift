import Geo
import TestSupport
import Testing

/// Files that are not place databases, and damaged databases.
@Suite(.timeLimit(.minutes(15))) struct BadDatabaseTests {
    private let directory: TemporaryDirectory
    private var path: String { directory("places.mmdb") }

    init() throws { directory = try TemporaryDirectory() }

    private func fault(_ path: String) -> String? {
        do throws(PlaceFinder.Fault) {
            _ = try PlaceFinder(path: path)
            return nil
        } catch {
            return error.text
        }
    }

    @Test func malformedDatabaseIsRefusedWithItsFault() throws {
        #expect(fault(path) == "\(path): No such file or directory")
        #expect(fault(directory.path) == "\(directory.path): is not a file")
        #expect(fault("/dev/zero") == "/dev/zero: is not a file")
        try TextFile.write("", to: path)
        #expect(fault(path) == "\(path): is empty")
        try TextFile.write("origin: https://login.example.com\n", to: path)
        #expect(try #require(fault(path)).hasPrefix("\(path): is not a MaxMind database"))
    }

    @Test func networkDatabaseIsRefused() throws {
        var file = MaxMindFile(kind: "GeoLite2-ASN")
        file.add(
            "192.0.2.0/24",
            .map([
                ("autonomous_system_number", .number32(64_496)), ("autonomous_system_organization", .text("Example")),
            ]))
        try file.write(to: path)
        #expect(
            fault(path)
                == "\(path): has no places (it is GeoLite2-ASN); use a database of cities or countries"
        )
        try MaxMindFile().write(to: path)
        #expect(try #require(fault(path)).contains("has no places (it is GeoLite2-City)"))
    }

    private var sample: MaxMindFile {
        var file = MaxMindFile(version: 4)
        file.add("192.0.2.0/24", .place(city: "Vienna", subdivision: "Wien", country: "Austria"))
        file.add("198.51.100.0/24", .place(subdivision: "Tyrol", country: "Austria"))
        file.add("0.0.0.0/8", .place(country: "Peru"))
        return file
    }

    /// Opens the file and, if that succeeds, looks up addresses. The results do not matter: each call must return.
    private func tryOut(_ bytes: [UInt8]) throws -> Bool {
        try TextFile.write(bytes, to: path)
        guard let finder = try? PlaceFinder(path: path) else { return false }
        for ip in ["192.0.2.1", "198.51.100.1", "0.0.0.1", "255.255.255.255", "2001:db8::1", "10.1.2.3"] {
            let place = finder.place(of: ip)
            #expect((place?.unicodeScalars.count ?? 0) <= 128)
            #expect(place?.unicodeScalars.contains { $0.value < 32 } != true)
        }
        return true
    }

    @Test func truncatedDatabaseIsRefused() throws {
        let whole = sample.bytes
        #expect(try tryOut(whole))
        for count in 1..<whole.count { #expect(try !tryOut(Array(whole.prefix(count))), "\(count) bytes") }
    }

    @Test(arguments: [0x00, 0xff, 0x80, 0x01, 0x3f, 0xe0] as [UInt8])
    func corruptByteNeverCrashes(_ change: UInt8) throws {
        let whole = sample.bytes
        var refused = 0
        for place in whole.indices {
            var bytes = whole
            bytes[place] = change == 0 ? 0 : bytes[place] ^ change
            if try !tryOut(bytes) { refused += 1 }
        }
        #expect(refused > 0)
    }

    @Test(arguments: 0..<4)
    func randomBytesNeverCrash(_ seed: UInt64) throws {
        let random = SeededRandomness(seed: seed)
        let whole = sample.bytes
        // Damage after the search tree: with it, most databases still open.
        for _ in 0..<500 {
            var bytes = whole
            for _ in 0..<Int(random.next() % 8) + 1 {
                bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
            }
            _ = try tryOut(bytes)
        }
    }
}
