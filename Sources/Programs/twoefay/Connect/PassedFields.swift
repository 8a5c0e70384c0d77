import HTTP

/// The header fields that pass the sidecar, in both directions: all but those that belong to one
/// connection (RFC 9110 §7.6.1), and `Authorization`, which is for the sidecar alone.
enum PassedFields {
    /// The most bytes that the target and the fields of a request may have, counted as in RFC 9113
    /// §6.5.2. The relay charges more to the connection, which other callers share.
    static let longest = 4096
    /// The words that `Connection` may have. If it named another field, that field would not reach the
    /// relay, though the caller counts on it: a POST without its `Idempotency-Key` could take effect
    /// twice.
    private static let connectionOptions: Set = ["close", "keep-alive", "te", "upgrade", "http2-settings"]

    private static let ofConnection: Set = [
        "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
        // HTTP/2 has its own form of these, or this end has acted on them.
        "content-length", "expect", "host",
    ]

    static func ofRequest(_ fields: Fields) -> Fields { passed(fields, without: ["authorization"]) }

    static func ofResponse(_ fields: Fields) -> Fields { passed(fields, without: []) }

    private static func passed(_ fields: Fields, without more: Set<String>) -> Fields {
        let dropped = ofConnection.union(connectionOptions(fields)).union(more)
        return Fields(fields.all.filter { !dropped.contains($0.name) })
    }

    private static func connectionOptions(_ fields: Fields) -> [String] {
        fields.values("connection").flatMap { value in
            value.split(separator: ",").map { $0.filter { !$0.isWhitespace }.lowercased() }
        }
    }

    /// Returns the fault of a request's fields, because of which no one may interpret them; nil if
    /// there is none.
    ///
    /// - Parameter target: the path with the query.
    static func fault(_ fields: Fields, target: String = "/") -> String? {
        for field in fields.all {
            guard !field.name.isEmpty, field.name.utf8.allSatisfy(isToken) else { return "a field has an invalid name" }
            // Bytes that are no UTF-8 arrive here as another character, and must not reach the relay so.
            guard field.value.utf8.allSatisfy({ $0 == 0x09 || 0x20...0x7e ~= $0 }) else {
                return "the field \(field.name) has a character that is not printable ASCII"
            }
        }
        let (lengths, codings) = (fields.values("content-length"), fields.values("transfer-encoding"))
        // Two parties could read the end of this body differently (RFC 9112 §6.3).
        guard lengths.isEmpty || codings.isEmpty else { return "it has both Content-Length and Transfer-Encoding" }
        guard lengths.count <= 1, lengths.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(isDigit) }) else {
            return "Content-Length must be one number"
        }
        guard codings.isEmpty || codings.count == 1 && codings[0].lowercased() == "chunked" else {
            return "the only Transfer-Encoding is chunked"
        }
        if let name = connectionOptions(fields).first(where: { !connectionOptions.contains($0) }) {
            return "Connection names the field \(name.prefix(32))"
        }
        let size = ofRequest(fields).all.reduce(target.utf8.count) {
            $0 + $1.name.utf8.count + $1.value.utf8.count + 32
        }
        return size <= longest ? nil : "its path and fields have more than \(longest) bytes"
    }

    private static func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }

    private static func isToken(_ byte: UInt8) -> Bool {
        isDigit(byte) || UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
}
