import Geo
import TestSupport
import Testing
import World

/// Some networks of the documentation ranges, with their places.
private func sample(version: Int = 6, recordBits: Int = 28) -> MaxMindFile {
    var file = MaxMindFile(version: version, recordBits: recordBits)
    file.add("192.0.2.0/25", .place(city: "Vienna", subdivision: "Wien", country: "Austria"))
    file.add("192.0.2.128/26", .place(subdivision: "Tyrol", country: "Austria"))
    file.add("192.0.2.192/32", .place(country: "Austria"))
    file.add("192.0.2.193/32", .place())
    file.add("198.51.100.0/24", .place(city: "Singapore", country: "Singapore"))
    file.add("203.0.113.0/24", .place(city: "Nowhere"))
    guard version == 6 else { return file }
    file.add("2001:db8:1::/48", .place(city: "Zürich", country: "Switzerland"))
    file.add("2001:db8:2::/127", .place(country: "Peru"))
    return file
}

private func opened(_ file: MaxMindFile, _ directory: TemporaryDirectory) throws -> PlaceFinder {
    try file.write(to: directory("places.mmdb"))
    return try PlaceFinder(path: directory("places.mmdb"))
}

@Suite(.timeLimit(.minutes(15))) struct PlaceFinderTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test(arguments: [24, 28, 32], [4, 6])
    func addressesResolveToPlaces(recordBits: Int, version: Int) throws {
        let finder = try opened(sample(version: version, recordBits: recordBits), directory)
        #expect(finder.place(of: "192.0.2.0") == "Vienna, Austria")
        #expect(finder.place(of: "192.0.2.127") == "Vienna, Austria")
        #expect(finder.place(of: "192.0.2.128") == "Tyrol, Austria")
        #expect(finder.place(of: "192.0.2.191") == "Tyrol, Austria")
        #expect(finder.place(of: "192.0.2.192") == "Austria")
        #expect(finder.place(of: "192.0.2.193") == nil)
        #expect(finder.place(of: "192.0.2.194") == nil)
        #expect(finder.place(of: "198.51.100.77") == "Singapore")
        #expect(finder.place(of: "203.0.113.255") == "Nowhere")
        #expect(finder.place(of: "127.0.0.1") == nil)
        // The form in which a dual-stack server writes an IPv4 client.
        #expect(finder.place(of: "::ffff:192.0.2.1") == "Vienna, Austria")
        #expect(finder.place(of: "::FFFF:c000:0201") == "Vienna, Austria")
        #expect(finder.place(of: "2001:db8:1::5") == (version == 6 ? "Zürich, Switzerland" : nil))
        #expect(finder.place(of: "2001:0db8:0002:0000:0000:0000:0000:0001") == (version == 6 ? "Peru" : nil))
        #expect(finder.place(of: "2001:db8:2::2") == nil)
        #expect(finder.place(of: "2001:db8:3::1") == nil)
    }

    @Test(arguments: [
        "", " ", "localhost", "192.0.2", "192.0.2.1.1", "192.0.2.256", "0300.0.2.1", " 192.0.2.1", "192.0.2.1 ",
        "192.0.2.1\0", "192.0.2.1\n", "3221225985", "0xc0000201", "192.0.2.1/24", "192.0.2.1:80", "[2001:db8:1::5]",
        "2001:db8:1::5%eth0", "2001:db8:1:::5", "2001:db8:1::5::", ":", "::ffff:192.0.2", "１９２.0.2.1",
        String(repeating: "1", count: 100_000),
    ])
    func malformedAddressHasNoPlace(_ text: String) throws {
        #expect(try opened(sample(), directory).place(of: text) == nil)
    }

    @Test func unprintablePlaceNamesAreOmitted() throws {
        let long = String(repeating: "x", count: 120)
        let records: [(MaxMindFile.Value, String?)] = [
            (.place(city: "Vi\u{202e}enna", subdivision: "Wien", country: "Austria"), "Wien, Austria"),
            (.place(city: "Vienna\n", country: "Austria"), "Austria"),
            (.place(city: "Vienna", country: "Aus\u{7}tria"), "Vienna"),
            (.place(city: "", country: "Austria"), "Austria"),
            (.place(city: "\0", country: "\u{2066}"), nil),
            (.place(city: long, country: "Austria"), "Austria"),
            (.place(city: String(long.dropLast()), country: "Austria"), "\(long.dropLast()), Austria"),
            (.place(city: long + long, country: "Austria"), "Austria"),
            (.place(city: String(repeating: "ü", count: 100_000), country: "Austria"), "Austria"),
            (.map([("city", .text("Vienna")), ("country", .named("Austria"))]), "Austria"),
            (.map([("city", .map([("names", .text("Vienna"))])), ("country", .named("Austria"))]), "Austria"),
            (.map([("city", .map([("names", .map([("en", .number32(7))]))]))]), nil),
            (.map([("city", .map([("names", .map([("de", .text("Wien"))]))]))]), nil),
            (.map([("city", .map([("names", .map([("en", .bytes([0x56]))]))]))]), nil),
            (.map([("subdivisions", .array([])), ("country", .named("Austria"))]), "Austria"),
            (.map([("subdivisions", .named("Wien")), ("country", .named("Austria"))]), "Austria"),
            (.text("Vienna"), nil),
            (.array([.named("Vienna")]), nil),
        ]
        var file = sample()
        for (index, record) in records.enumerated() { file.add("10.0.\(index).0/24", record.0) }
        let finder = try opened(file, directory)
        for (index, record) in records.enumerated() {
            #expect(finder.place(of: "10.0.\(index).1") == record.1, "\(index)")
        }
    }

    @Test func databaseMetadataIsReported() throws {
        var file = sample()
        file.kind = "DBIP-City-Lite"
        file.madeAt = 1_700_000_000
        let finder = try opened(file, directory)
        #expect(finder.kind == "DBIP-City-Lite")
        #expect(finder.madeAt?.rfc3339 == "2023-11-14T22:13:20.000Z")
        file.kind = "City\u{1b}[2J"
        file.madeAt = .max >> 1
        let odd = try opened(file, directory)
        #expect(!odd.kind.unicodeScalars.contains("\u{1b}"))
        #expect(odd.madeAt == nil)
    }

    /// The open database is overwritten. A process that maps the file itself is killed by this.
    @Test func truncationAfterLoadingIsHarmless() throws {
        let finder = try opened(sample(), directory)
        try TextFile.write("", to: directory("places.mmdb"))
        #expect(finder.place(of: "192.0.2.1") == "Vienna, Austria")
        #expect(finder.place(of: "2001:db8:1::5") == "Zürich, Switzerland")
    }

    @Test func concurrentLookupsAreSafe() async throws {
        let finder = try opened(sample(), directory)
        await withTaskGroup(of: Int.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    (0..<2000).count { finder.place(of: "192.0.2.\($0 % 128)") == "Vienna, Austria" }
                }
            }
            for await count in group { #expect(count == 2000) }
        }
    }
}
