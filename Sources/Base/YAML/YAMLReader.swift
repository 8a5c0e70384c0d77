/// Reads one document of plain YAML: scalars, sequences, and mappings with text as names.
///
/// It refuses everything that could bring in a value from elsewhere or give it an unexpected
/// meaning: anchors, aliases, tags, a second document, and duplicate names. Tests: `YAMLTests`.
public enum YAMLReader {
    private static let maxBytes = 1 << 20
    private static let maxDepth = 32

    /// Reads a document of at most 1 MiB, nested at most 32 levels deep.
    /// - Parameter file: the name of the file in error messages.
    public static func read(_ bytes: [UInt8], file: String) throws(YAMLError) -> YAMLNode {
        guard bytes.count <= maxBytes else {
            throw YAMLError("larger than \(maxBytes) bytes", at: YAMLPosition(file: file, line: 1, column: 1))
        }
        // Some editors begin a file with a byte order mark.
        let bytes = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? Array(bytes.dropFirst(3)) : bytes
        let text = SourceText(bytes: bytes, file: file)
        try text.requireUTF8()
        return try bytes.withUnsafeBufferPointer { input throws(YAMLError) in
            var events = YAMLEvents(input, text: text)
            return try document(&events)
        }
    }

    private static func document(_ events: inout YAMLEvents) throws(YAMLError) -> YAMLNode {
        var root: YAMLNode?
        while true {
            let event = try events.next()
            switch event.kind {
            case .streamStart, .documentEnd: break
            case .documentStart:
                guard root == nil else { throw YAMLError("a second document is not allowed", at: event.place) }
                root = try node(&events, try events.next(), depth: 1)
            case .streamEnd: return root ?? YAMLNode(content: .scalar("", isPlain: true), place: event.place)
            default: throw YAMLError("text outside of the document is not allowed", at: event.place)
            }
        }
    }

    private static func node(
        _ events: inout YAMLEvents, _ event: YAMLEvent, depth: Int
    ) throws(YAMLError) -> YAMLNode {
        guard depth <= maxDepth else { throw YAMLError("nested too deeply", at: event.place) }
        if event.isAnchored { throw YAMLError("anchors and aliases are not supported", at: event.place) }
        if event.isTagged { throw YAMLError("tags are not supported", at: event.place) }
        switch event.kind {
        case .scalar(let text, let isPlain):
            return YAMLNode(content: .scalar(text, isPlain: isPlain), place: event.place)
        case .sequenceStart:
            return YAMLNode(content: .sequence(try sequence(&events, depth: depth)), place: event.place)
        case .mappingStart:
            return YAMLNode(content: .mapping(try mapping(&events, depth: depth)), place: event.place)
        default: throw YAMLError("a value is missing", at: event.place)
        }
    }

    private static func sequence(_ events: inout YAMLEvents, depth: Int) throws(YAMLError) -> [YAMLNode] {
        var nodes: [YAMLNode] = []
        while true {
            let event = try events.next()
            if case .sequenceEnd = event.kind { return nodes }
            nodes.append(try node(&events, event, depth: depth + 1))
        }
    }

    private static func mapping(_ events: inout YAMLEvents, depth: Int) throws(YAMLError) -> [YAMLNode.Member] {
        var members: [YAMLNode.Member] = []
        var lines: [[UInt8]: Int] = [:]
        while true {
            let event = try events.next()
            if case .mappingEnd = event.kind { return members }
            guard case .scalar(let name, _) = try node(&events, event, depth: depth + 1).content else {
                throw YAMLError("a name must be text", at: event.place)
            }
            if let line = lines.updateValue(event.place.line, forKey: Array(name.utf8)) {
                throw YAMLError("\"\(name)\" is already set in line \(line)", at: event.place)
            }
            let value = try node(&events, try events.next(), depth: depth + 1)
            members.append(YAMLNode.Member(name: name, place: event.place, value: value))
        }
    }
}

/// The bytes of a file, to find the line and column of a byte.
struct SourceText {
    let bytes: [UInt8]
    let file: String

    func place(ofByte offset: Int) -> YAMLPosition {
        let before = bytes.prefix(offset)
        let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        // Continuation bytes of a character are not counted.
        let column = before[lineStart...].count { $0 & 0xc0 != 0x80 }
        let line = before.count { $0 == UInt8(ascii: "\n") }
        return YAMLPosition(file: file, line: line + 1, column: column + 1)
    }

    /// The byte at a line and column, both counted from 0; nil behind the end.
    func byte(line: Int, column: Int) -> UInt8? {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        guard lines.indices.contains(line) else { return nil }
        return lines[line].filter { $0 & 0xc0 != 0x80 }.dropFirst(column).first
    }

    func requireUTF8() throws(YAMLError) {
        let offset: Int
        do {
            _ = try UTF8Span(validating: bytes.span)
            return
        } catch {
            offset = error.byteOffsets.lowerBound
        }
        throw YAMLError("not valid UTF-8", at: place(ofByte: offset))
    }
}
