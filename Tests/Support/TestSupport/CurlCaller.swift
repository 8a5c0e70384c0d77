import Glibc
import JSON

/// A client that calls a relay with curl, as any website or phone may.
public struct CurlCaller: Sendable {
    public let origin: String
    /// The file of the authority that must have signed the server's certificate.
    public var authorityPath: String
    /// The port of the origin on this machine.
    public var port: UInt16
    public var certificatePath: String?
    public var keyPath: String?
    /// A loopback address to call from. The relay treats 127.0.0.3 and 127.0.0.4 as different
    /// callers.
    public var address: String?

    public struct Answer: Sendable, CustomStringConvertible {
        public let status: Int
        /// The header fields, with names in lower case, in order of arrival.
        public let lines: [(name: String, value: String)]
        public let text: String

        public var json: JSONValue? { try? JSONReader.read(Array(text.utf8)) }
        public subscript(name: String) -> JSONValue? { json?.object?[name] }
        public func field(_ name: String) -> String? { lines.first { $0.name == name }?.value }
        public var description: String { "\(status) \(text)" }
    }

    /// A failure of curl itself, with its exit status: 60 means that it does not accept the
    /// certificate.
    public struct Failed: Error, CustomStringConvertible {
        public let status: Int32
        public let message: String
        public var description: String { "curl ended with \(status): \(message)" }
    }

    /// Sends a request and returns the answer.
    ///
    /// - Parameters:
    ///   - json: the body, sent with its content type.
    ///   - arguments: further arguments of curl.
    public func curl(
        _ method: String, _ path: String, json: String? = nil, fields: [String: String] = [:],
        arguments: [String] = []
    ) async throws -> Answer {
        try await Self.read(child(method, path, json: json, fields: fields, arguments: arguments))
    }

    /// Starts a request that the relay may hold. Read its answer with `CurlCaller.read`.
    public func child(
        _ method: String, _ path: String, json: String? = nil, fields: [String: String] = [:],
        arguments: [String] = []
    ) throws -> Child {
        var all = [
            "--silent", "--show-error", "--include", "--http2", "--max-time", "90", "--cacert", authorityPath,
            "--connect-to", "::127.0.0.1:\(port)", "--request", method,
        ]
        if let certificatePath { all += ["--cert", certificatePath] }
        if let keyPath { all += ["--key", keyPath] }
        if let address { all += ["--interface", address] }
        if let json { all += ["--header", "content-type: application/json", "--data-binary", json] }
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { all += ["--header", "\(name): \(value)"] }
        return try Child("curl", all + arguments + ["\(origin)\(path)"])
    }

    public static func read(_ child: Child) async throws -> Answer {
        let ended = await child.ended()
        guard ended.status == 0 else { throw Failed(status: ended.status, message: ended.errors) }
        guard let answer = parse(ended.output) else {
            throw Failed(status: 0, message: "no answer in \(ended.output)")
        }
        return answer
    }

    /// Parses the output. For Swift, a carriage return with a line feed is one character.
    private static func parse(_ output: String) -> Answer? {
        var rest = output[...]
        func line() -> Substring? {
            guard let end = rest.firstIndex(of: "\r\n") else { return nil }
            defer { rest = rest[rest.index(after: end)...] }
            return rest[..<end]
        }
        guard let status = line()?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else { return nil }
        var lines: [(name: String, value: String)] = []
        while let field = line(), !field.isEmpty {
            guard let colon = field.firstIndex(of: ":") else { return nil }
            let value = field[field.index(after: colon)...].drop { $0 == " " }
            lines.append((field[..<colon].lowercased(), String(value)))
        }
        return Answer(status: status, lines: lines, text: String(rest))
    }
}
