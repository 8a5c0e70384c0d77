import Foundation
import Testing
import TwoefayPhone

/// The named examples of a page of the documentation, such as "```json enrol claims".
struct ProtocolPage {
    let text: String
    private let examples: [String: String]

    static let directory = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../../..")
        .standardized

    init(_ name: String) throws {
        text = try String(contentsOf: Self.directory.appending(path: "docs/phones/\(name)"), encoding: .utf8)
        var examples: [String: String] = [:]
        var name: String?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let line = line.drop { $0 == " " }
            if line.hasPrefix("```") {
                // The first word is the language.
                let words = line.dropFirst(3).split(separator: " ").dropFirst()
                name = name == nil && !words.isEmpty ? words.joined(separator: " ") : nil
            } else if let name {
                try #require(examples[name] == nil, "\(name) has one line")
                examples[name] = String(line)
            }
        }
        self.examples = examples
    }

    var names: Set<String> { Set(examples.keys) }

    func callAsFunction(_ name: String) throws -> String { try #require(examples[name], "\(name)") }

    /// The members of an example in JSON.
    func members(_ name: String) throws -> JSONObject {
        try #require(try JSONReader.read(Array(try self(name).utf8)).object)
    }

    /// The first two parts of the JWS with this name, and its signature.
    func signed(_ name: String) throws -> (input: String, signature: [UInt8]) {
        let parts = try self("\(name) jws").split(separator: ".")
        try #require(parts.count == 3, "\(name)")
        #expect(Base64URL.decode(parts[0]) == Array(try self("\(name) header").utf8), "\(name)")
        #expect(Base64URL.decode(parts[1]) == Array(try self("\(name) claims").utf8), "\(name)")
        return ("\(parts[0]).\(parts[1])", try #require(Base64URL.decode(parts[2])))
    }
}

/// Reads bytes in hexadecimal. Spaces are ignored.
func hex(_ text: String) -> [UInt8] {
    let digits = Array(text.filter { !$0.isWhitespace })
    return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0..<($0 + 2)]), radix: 16) }
}
