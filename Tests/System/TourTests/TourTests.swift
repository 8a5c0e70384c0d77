import Glibc
import JSON
import TestSupport
import Testing

/// The built `twoefay demo`, and a browser that walks through it like a person.
///
/// The pictures of the steps go to the directory that TWOEFAY_TOUR_PICTURES names; docs/start/tour was made in this
/// way.
@Suite("The tour", .serialized, .mayBlock, .timeLimit(.minutes(20))) struct TourTests {
    /// The largest size of a picture, which bounds the loading time of the page.
    private static let largestPicture = 60 << 10

    @Test(
        .enabled(if: ChromiumScript.canRun, "Chromium, its driver or selenium is not installed"),
        .enabled(if: !Sanitizer.isOn, "the other tests of the demo run under a sanitizer"),
        arguments: [StoreKind.file, .mariadb])
    func tourPageWorksInABrowser(store: StoreKind) async throws {
        let scratch = try TemporaryDirectory()
        let pictures = try TemporaryDirectory()
        var arguments = ["demo", "--json"]
        if store == .mariadb {
            arguments += [
                "--storage",
                try await blocking {
                    let server = try MariaDBServer.shared()
                    return server.url(try server.freshDatabase())
                },
            ]
        }
        let demo = try Child(try BuiltProgram.twoefay.path, arguments, environment: ["TMPDIR": scratch.path])
        let line = try await demo.line(.output, with: "\"dashboard\"")
        let addresses = try #require(try JSONReader.read(Array(line.utf8)).object)

        // Aspects that do not depend on the store are checked once: accessibility, appearance and use.
        let isFirst = store == .file
        let place = (isFirst ? getenv("TWOEFAY_TOUR_PICTURES").map { String(cString: $0) } : nil) ?? pictures.path
        let walked = try await TourScript.walk(addresses, pictures: place, looksCloser: isFirst)
        #expect(walked.status == 0, "\(walked.output)\(walked.errors)\(demo.written.errors)")

        demo.signal(SIGTERM)
        let ended = await demo.ended()
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.errors == "")
        #expect(scratch.names == [])

        guard walked.status == 0 else { return }
        let taken = Set(TemporaryDirectory.names(in: place))
        let shown = try Self.namedInTheDocs()
        #expect(isFirst ? taken == shown : taken.isStrictSubset(of: shown), "\(taken.symmetricDifference(shown))")
    }

    /// Returns the pictures that docs/start/tour.md shows.
    private static func namedInTheDocs() throws -> Set<String> {
        let page = try TextFile.read("\(TourScript.root)/docs/start/tour.md")
        return Set(
            page.split(separator: "(tour/").dropFirst().compactMap { part in
                part.split(separator: ")").first.map(String.init)
            })
    }

    @Test func docsShowExistingPictures() throws {
        let place = "\(TourScript.root)/docs/start/tour"
        let there = TemporaryDirectory.names(in: place)
        #expect(Set(there) == (try Self.namedInTheDocs()))
        for name in there {
            let size = try TextFile.bytes("\(place)/\(name)").count
            #expect(size <= Self.largestPicture, "\(name) has \(size) bytes")
        }
    }
}
