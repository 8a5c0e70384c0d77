/// A gettext file with the texts of one language, named after the language.
public struct CatalogFile: Sendable {
    /// The path as error messages show it.
    public let path: String
    public let bytes: [UInt8]

    public init(path: String, bytes: [UInt8]) {
        self.path = path
        self.bytes = bytes
    }

    /// The language tag from the file name, such as `pt-BR.po` or gettext's `pt_BR.po`; nil if the
    /// name is not a language.
    var language: String? {
        let name = path.split(separator: "/").last ?? ""
        guard name.hasSuffix(".po") else { return nil }
        let tag = String(name.dropLast(3).map { $0 == "_" ? "-" : $0 })
        return LanguageRanges.isTag(tag.lowercased()) ? tag : nil
    }
}

/// An error in a catalogue file.
public struct CatalogFault: Sendable, Equatable, CustomStringConvertible {
    public let path: String
    public let line: Int
    public let message: String

    init(_ path: String, _ line: Int, _ message: String) {
        self.path = path
        self.line = line
        self.message = message
    }

    public var description: String { "\(path):\(line): \(message)" }
}

/// All errors of the catalogue files that were read together.
public struct CatalogFaults: Error, Sendable, Equatable, CustomStringConvertible {
    public let all: [CatalogFault]

    public var description: String { all.map(\.description).joined(separator: "\n") }
}
