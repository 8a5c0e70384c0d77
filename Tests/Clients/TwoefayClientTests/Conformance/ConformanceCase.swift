import Glibc
import JSON
import Testing
import TwoefayClient

/// A case of clients/conformance, which the clients of all languages run.
struct ConformanceCase: Sendable {
    /// The settings of the website: those of the document, with the changes of the case.
    let website: JSONObject
    private let json: JSONObject

    var name: String { json["name"]?.string ?? "" }
    var call: String { json["call"]?.string ?? "" }
    /// The website's clock in seconds since 1970.
    var clock: Int64 { json["clock"]?.integer ?? 0 }
    var given: JSONObject { json["given"]?.object ?? [:] }
    var expected: JSONObject { json["expected"]?.object ?? [:] }

    /// Returns the relay's answer to a request, the first one being 0; nil if there is none.
    func answer(_ index: Int) -> JSONValue? {
        if let answer = json["answer"] { return answer }
        let answers = json["answers"]?.array ?? []
        return index < answers.count ? answers[index] : nil
    }

    // MARK: The document

    static func all() throws -> [ConformanceCase] {
        let limits = JSONLimits(maxDepth: 64)
        let document = try JSONReader.read(withoutZeros(try bytes(try path())), limits: limits).object ?? [:]
        let defaults = try #require(document["defaults"]?.object)
        return try (document["cases"]?.array ?? []).map { value in
            let json = try #require(value.object)
            var website = defaults
            for member in json["website"]?.object?.members ?? [] { website[member.name] = member.value }
            return ConformanceCase(website: website, json: json)
        }
    }

    /// Finds the file beside this one, or in a directory above.
    private static func path() throws -> String {
        var directory = #filePath
        while let slash = directory.lastIndex(of: "/") {
            directory = String(directory[..<slash])
            for name in ["cases.json", "clients/conformance/cases.json"] where access("\(directory)/\(name)", R_OK) == 0
            {
                return "\(directory)/\(name)"
            }
        }
        throw Missing()
    }

    private struct Missing: Error, CustomStringConvertible {
        let description = "clients/conformance/cases.json is missing"
    }

    private static func bytes(_ path: String) throws -> [UInt8] {
        let file = try #require(fopen(path, "re"))
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        while case let count = fread(&chunk, 1, chunk.count, file), count > 0 { bytes += chunk[..<count] }
        return bytes
    }

    /// The character that stands for U+0000, which the reader refuses.
    private static let zero: Unicode.Scalar = "\u{e000}"

    /// Replaces each escape of U+0000.
    private static func withoutZeros(_ text: [UInt8]) -> [UInt8] {
        var bytes = text
        let escape = Array(#"\u0000"#.utf8)
        var at = 0
        while let backslash = bytes[at...].firstIndex(of: UInt8(ascii: "\\")) {
            let end = min(backslash + escape.count, bytes.count)
            if bytes[backslash..<end].elementsEqual(escape) { bytes[backslash + 2] = UInt8(ascii: "e") }
            at = backslash + 2
        }
        return bytes
    }

    /// Returns a text of the document with its U+0000.
    static func text(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { $0 == zero ? "\0" : $0 }))
    }
}
