import Glibc
import JSON
import TestSupport
import Testing

/// The built `twoefay demo --json`, with curl as the browser. The demo ends when the last reference
/// is released.
final class RunningDemo: Sendable {
    struct Answer {
        let status: Int
        /// The status line and the header fields, one on each line.
        let head: String
        let body: String

        var json: JSONObject { (try? JSONReader.read(Array(body.utf8)))?.object ?? [:] }

        func field(_ name: String) -> String? {
            head.split(whereSeparator: \.isNewline).first { $0.lowercased().hasPrefix("\(name):") }
                .map { String($0.dropFirst(name.count + 1).drop { $0 == " " }) }
        }
    }

    let child: Child
    let ready: JSONObject
    private let scratch: TemporaryDirectory

    init(_ scratch: TemporaryDirectory, _ arguments: String...) async throws {
        self.scratch = scratch
        child = try Child(
            try BuiltProgram.twoefay.path, ["demo", "--json"] + arguments, environment: ["TMPDIR": scratch.path])
        let line = try await child.line(.output, with: "\"ready\"")
        ready = try #require(try JSONReader.read(Array(line.utf8)).object)
    }

    deinit { child.signal(SIGTERM) }

    /// The process id of the relay.
    var relay: pid_t { ready["pid"]?.integer.flatMap { pid_t(exactly: $0) } ?? 0 }

    /// Returns `http://localhost:PORT`, without the secret of the printed address.
    func origin(_ name: String) throws -> String {
        let address = try #require(ready[name]?.string)
        return String(address.prefix { $0 != "?" }.dropLast())
    }

    /// Returns the cookie that a visitor gets for the secret of the printed address.
    func cookie() async throws -> String {
        let answer = try await curl(try #require(ready["dashboard"]?.string))
        let field = try #require(answer.field("set-cookie"))
        return String(field.prefix { $0 != ";" })
    }

    /// Sends a request with curl.
    ///
    /// - Parameter arguments: further arguments of curl.
    func curl(_ url: String, cookie: String? = nil, _ arguments: [String] = []) async throws -> Answer {
        let answer = try await Child.run(
            "curl",
            ["--silent", "--show-error", "--include", "--max-time", "60"] + (cookie.map { ["--cookie", $0] } ?? [])
                + arguments + [url])
        try #require(answer.status == 0, "curl \(url): \(answer.errors)")
        let parts = answer.output.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
        let status = try #require(parts[0].split(separator: " ").dropFirst().first.flatMap { Int($0) })
        return Answer(status: status, head: String(parts[0]), body: parts.count == 2 ? String(parts[1]) : "")
    }

    func post(_ url: String, _ json: JSONValue, cookie: String) async throws -> Answer {
        try await curl(
            url, cookie: cookie, ["--header", "Content-Type: application/json", "--data", JSONWriter.text(json)])
    }

    /// Returns the messages of the feed when one of them satisfies `isMeant`. The demo holds each
    /// request until there is a new message.
    func feed(cookie: String, until isMeant: (JSONObject) -> Bool) async throws -> [JSONObject] {
        var said: [JSONObject] = []
        var last: Int64 = 0
        let origin = try origin("dashboard")
        while !said.contains(where: isMeant) {
            let answer = try await curl("\(origin)/feed?after=\(last)", cookie: cookie).json
            last = try #require(answer["last"]?.integer)
            said += answer["messages"]?.array?.compactMap(\.object) ?? []
        }
        return said
    }

    /// Returns the messages of a phone when there is at least one.
    func messages(phone: Int, after: Int64 = 0, cookie: String) async throws -> [JSONObject] {
        let origin = try origin("phone")
        while true {
            let answer = try await curl("\(origin)/messages?phone=\(phone)&after=\(after)", cookie: cookie).json
            let messages = answer["messages"]?.array?.compactMap(\.object) ?? []
            if !messages.isEmpty { return messages }
        }
    }
}
