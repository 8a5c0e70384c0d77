/// The path pattern of a route, such as `/user/{username}/activation`.
struct PathPattern: Sendable {
    enum Segment: Sendable, Equatable {
        case word(String)
        /// A non-empty segment that becomes a parameter with this name.
        case parameter(String)
    }

    let text: String
    let segments: [Segment]

    var hasParameters: Bool {
        segments.contains { if case .parameter = $0 { true } else { false } }
    }

    /// The names of the parameters.
    var names: [String] {
        segments.compactMap { if case .parameter(let name) = $0 { name } else { nil } }
    }

    init(_ text: String) {
        self.text = text
        segments = text.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map {
            let segment = String($0) ?? ""
            guard segment.utf8.first == UInt8(ascii: "{"), segment.utf8.last == UInt8(ascii: "}") else {
                return .word(segment)
            }
            return .parameter(String(segment.dropFirst().dropLast()))
        }
    }

    /// The parameters of a path, still encoded; nil if the path does not match.
    func match(_ path: [Substring]) -> [String: Substring]? {
        guard path.count == segments.count else { return nil }
        var places: [String: Substring] = [:]
        for (segment, text) in zip(segments, path) {
            switch segment {
            case .word(let word): guard word.utf8.elementsEqual(text.utf8) else { return nil }
            case .parameter(let name):
                guard !text.isEmpty else { return nil }
                places[name] = text
            }
        }
        return places
    }

    /// The segments of a request's path, still encoded.
    static func split(_ path: String) -> [Substring]? {
        guard path.utf8.first == UInt8(ascii: "/") else { return nil }
        return path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    }

    /// Decodes percent-encoding; nil if a percent sign has no two digits after it, or if the bytes
    /// are not UTF-8.
    static func decode(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }
}
