/// A file of texts in one language, named after it.
public struct CatalogFile: Sendable {
    /// As it is called in messages.
    public let path: String
    public let bytes: [UInt8]

    public init(path: String, bytes: [UInt8]) {
        self.path = path
        self.bytes = bytes
    }

    /// `…/pt-BR.po`, and `pt_BR.po` as gettext spells it; nil if the name is no language.
    var language: String? {
        let name = path.split(separator: "/").last ?? ""
        guard name.hasSuffix(".po") else { return nil }
        let tag = String(name.dropLast(3).map { $0 == "_" ? "-" : $0 })
        return LanguageRanges.isTag(tag.lowercased()) ? tag : nil
    }
}

/// One thing that is wrong with a file of texts.
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

public struct CatalogFaults: Error, Sendable, Equatable, CustomStringConvertible {
    public let all: [CatalogFault]

    public var description: String { all.map(\.description).joined(separator: "\n") }
}
