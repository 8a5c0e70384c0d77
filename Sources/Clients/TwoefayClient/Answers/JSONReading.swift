import JSON
import World

/// Typed access to the members of an answer. A missing or mistyped member throws `CallFault.odd`.
extension JSONObject {
    func text(_ name: String) throws(CallFault) -> String {
        guard let text = self[name]?.string else { throw .odd("it has no \(name)") }
        return text
    }

    /// Reads a text; nil if there is none. Null counts as none.
    func text(ifAny name: String) throws(CallFault) -> String? {
        guard let value = self[name], !value.isNull else { return nil }
        return try text(name)
    }

    /// Reads an id of the relay.
    func id(_ name: String) throws(CallFault) -> String {
        let id = try text(name)
        guard id.isRelayID else { throw .odd("\(name) is not an id of a relay") }
        return id
    }

    func flag(_ name: String) throws(CallFault) -> Bool {
        guard let flag = self[name]?.bool else { throw .odd("it has no \(name)") }
        return flag
    }

    func object(_ name: String) throws(CallFault) -> JSONObject {
        guard let object = self[name]?.object else { throw .odd("it has no \(name)") }
        return object
    }

    func objects(_ name: String) throws(CallFault) -> [JSONObject] {
        guard let values = self[name]?.array else { throw .odd("it has no \(name)") }
        let objects = values.compactMap(\.object)
        guard objects.count == values.count else { throw .odd("\(name) has items of another type") }
        return objects
    }

    func texts(_ name: String) throws(CallFault) -> [String] {
        guard let values = self[name]?.array else { throw .odd("it has no \(name)") }
        let texts = values.compactMap(\.string)
        guard texts.count == values.count else { throw .odd("\(name) has items of another type") }
        return texts
    }

    func timestamp(_ name: String) throws(CallFault) -> Timestamp {
        guard let moment = Timestamp(rfc3339: try text(name)) else { throw .odd("\(name) is not a time") }
        return moment
    }

    func timestamp(ifAny name: String) throws(CallFault) -> Timestamp? {
        guard let value = self[name], !value.isNull else { return nil }
        return try timestamp(name)
    }

    func word<Word: RelayWord>(_ name: String) throws(CallFault) -> Word { Word(rawValue: try text(name)) }

    /// Reads a list of words; empty if there is none.
    func words<Word: RelayWord>(ifAny name: String) throws(CallFault) -> [Word] {
        self[name] == nil ? [] : try texts(name).map { Word(rawValue: $0) }
    }

    func word<Word: RelayWord>(ifAny name: String) -> Word? { self[name]?.string.map { Word(rawValue: $0) } }
}

extension StringProtocol {
    /// Whether the text is an id of the relay: of a challenge, a phone, a user or a webhook. An id
    /// fits into a path and a column.
    var isRelayID: Bool {
        (1...128).contains(utf8.count)
            && utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x5f: true
                default: false
                }
            }
    }

    /// Whether the text has only decimal digits of ASCII, and this many.
    func isDigits(_ counts: ClosedRange<Int>) -> Bool {
        counts.contains(utf8.count) && utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    /// The text without white space at its ends.
    var trimmed: String {
        var text = Substring(self).drop(while: \.isWhitespace)
        while text.last?.isWhitespace == true { text.removeLast() }
        return String(text)
    }
}
