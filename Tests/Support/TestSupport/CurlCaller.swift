import Glibc
import JSON

/// Somebody who calls a relay with curl, as any website or phone may.
public struct CurlCaller: Sendable {
    public let origin: String
    /// Whom it believes the server.
    public var authorityPath: String
    /// Where the origin is to be found on this machine.
    public var port: UInt16
    public var certificatePath: String?
    public var keyPath: String?
    /// One of this machine's own addresses, to call from: 127.0.0.3 is another caller than 127.0.0.4.
    public var address: String?

    public struct Answer: Sendable, CustomStringConvertible {
        public let status: Int
        /// Names in lower case, in the order they came in.
        public let lines: [(name: String, value: String)]
        public let text: String

        public var json: JSONValue? { try? JSONReader.read(Array(text.utf8)) }
        public subscript(name: String) -> JSONValue? { json?.object?[name] }
        public func field(_ name: String) -> String? { lines.first { $0.name == name }?.value }
        public var description: String { "\(status) \(text)" }
    }

    /// curl's own failure, with its exit status: 60 is a certificate that it does not accept.
    public struct Failed: Error, CustomStringConvertible {
        public let status: Int32
        public let message: String
        public var description: String { "curl ended with \(status): \(message)" }
    }

    /// - Parameter json: the body, with its content type.
    /// - Parameter arguments: further ones of curl's.
    public func curl(
        _ method: String, _ path: String, json: String? = nil, fields: [String: String] = [:],
        arguments: [String] = []
    ) async throws -> Answer {
        try await Self.read(child(method, path, json: json, fields: fields, arguments: arguments))
    }

    /// The same, begun: for requests that are held. The answer is read with `CurlCaller.read`.
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

    /// Carriage return and line feed are one character to Swift.
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
