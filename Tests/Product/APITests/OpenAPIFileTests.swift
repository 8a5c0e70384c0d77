import Glibc
import JSON
import TestSupport
import Testing

@testable import API

/// The file docs/websites/openapi.json, compared with the document that a relay serves.
struct OpenAPIFileTests {
    private static let origin = "https://login.example.com:8080"

    @Test func committedDocumentIsTheServedOne() throws {
        let document = OpenAPIDocument.document(of: API.table.routes, origin: Self.origin)
        // dev/write-openapi runs this test to get the document.
        if let path = getenv("TWOEFAY_OPENAPI") {
            try TextFile.write(JSONWriter.write(document), to: String(cString: path))
            return
        }
        let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
        let file = try TextFile.bytes("\(root)/docs/websites/openapi.json")
        let committed = try JSONReader.read(file, limits: JSONLimits(maxDepth: 32, maxMembers: 1024))
        #expect(committed == .object(document), "docs/websites/openapi.json is out of date: run dev/write-openapi")
    }
}
