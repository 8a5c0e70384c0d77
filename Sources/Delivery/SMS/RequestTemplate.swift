import Bytes
import JSON

/// A text with placeholders such as `{to}`. Values are escaped so that they keep their meaning in
/// the surrounding format. Any other brace stands for itself, since JSON bodies contain many.
public struct RequestTemplate: Sendable, Equatable {
    public enum Placeholder: String, Sendable, CaseIterable {
        /// The number in E.164 form, with the plus sign.
        case to
        /// The number without the plus sign.
        case number
        case text, from, id, username, password
    }

    /// The escaping of values, so that none of their characters acts as syntax of the surrounding
    /// text.
    public enum Escaping: Sendable, Equatable {
        /// Inside the path or the query of a URL.
        case url
        /// A body of type `application/x-www-form-urlencoded`.
        case form
        /// Inside the quotes of a JSON string.
        case json
        /// Inside an element or a quoted attribute.
        case xml
        case none

        /// Creates the escaping for bodies of this media type; nil if the type is unknown.
        public init?(contentType: String) {
            let type = contentType.prefix { $0 != ";" }.lowercased()
            let word = String(type.reversed().drop { $0 == " " }.reversed())
            switch word {
            case "application/x-www-form-urlencoded": self = .form
            case "application/json": self = .json
            case "text/xml", "application/xml": self = .xml
            case "text/plain": self = .none
            default:
                if word.hasSuffix("+json") {
                    self = .json
                } else if word.hasSuffix("+xml") {
                    self = .xml
                } else {
                    return nil
                }
            }
        }
    }

    private enum Piece: Sendable, Equatable {
        case plain(String)
        case gap(Placeholder)
    }

    public struct Malformed: Error, Sendable, Equatable {
        public let message: String
    }

    private let pieces: [Piece]

    public var gaps: Set<Placeholder> {
        Set(pieces.compactMap { piece in if case .gap(let gap) = piece { gap } else { nil } })
    }

    /// Parses a template. An unknown word in braces is an error, since a misspelt placeholder would
    /// be sent to every user.
    public init(_ text: String) throws(Malformed) {
        var pieces: [Piece] = []
        var plain = ""
        var rest = Substring(text)
        while let first = rest.first {
            let word = rest.dropFirst().prefix { $0.isASCII && $0.isLetter || $0 == "_" }
            if first == "{", !word.isEmpty, rest.dropFirst(1 + word.count).first == "}" {
                guard let gap = Placeholder(rawValue: String(word)) else {
                    let known = Placeholder.allCases.map { "{\($0.rawValue)}" }.joined(separator: ", ")
                    throw Malformed(message: "{\(word)} is not a placeholder; the placeholders are \(known)")
                }
                if !plain.isEmpty { pieces.append(.plain(plain)) }
                plain = ""
                pieces.append(.gap(gap))
                rest = rest.dropFirst(word.count + 2)
            } else {
                plain.append(first)
                rest = rest.dropFirst()
            }
        }
        if !plain.isEmpty { pieces.append(.plain(plain)) }
        self.pieces = pieces
    }

    public func filled(_ escaping: Escaping, _ value: (Placeholder) -> String) -> String {
        pieces.reduce(into: "") { text, piece in
            switch piece {
            case .plain(let plain): text += plain
            case .gap(let gap): text += escaping.write(value(gap))
            }
        }
    }
}

extension RequestTemplate.Escaping {
    func write(_ value: String) -> String {
        switch self {
        case .none: value
        case .url: PercentEncoding.encode(value)
        case .form: PercentEncoding.encode(value, space: "+")
        // The template already has the quotes.
        case .json: String(JSONWriter.text(.string(value)).dropFirst().dropLast())
        case .xml: Markup.escaped(value)
        }
    }
}
