/// An element of a key package, with its attributes, text and children.
struct XMLElement {
    /// The local name, if the namespace is known. Otherwise `{namespace}name`, which no reader
    /// looks for.
    let name: String
    let attributes: [String: String]
    let line: Int
    var text = ""
    var children: [XMLElement] = []

    subscript(path: String...) -> XMLElement? {
        var found = self
        for name in path {
            guard let child = found.children.first(where: { $0.name == name }) else { return nil }
            found = child
        }
        return found
    }

    func all(_ name: String) -> [XMLElement] { children.filter { $0.name == name } }

    /// The text without the white space around it; nil if nothing is left.
    var content: String? {
        let bytes = Array(text.utf8)
        guard let first = bytes.firstIndex(where: { !$0.isXMLSpace }),
            let last = bytes.lastIndex(where: { !$0.isXMLSpace })
        else { return nil }
        return String(decoding: bytes[first...last], as: UTF8.self)
    }

    func fault(_ message: String) -> SeedFault { SeedFault(line: line, message) }
}

extension UInt8 {
    var isXMLSpace: Bool { self == 0x20 || self == 0x09 || self == 0x0a || self == 0x0d }
}
