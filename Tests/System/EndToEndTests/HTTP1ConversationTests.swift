import Glibc
import TestSupport
import Testing

/// A website's whole conversation over HTTP/1.1, by clients of other authors: it registers a user,
/// asks for a login, holds `/auth` until the phone has approved, and reads its webhook secrets. The
/// scripts are in `HTTP1`; each ends if an answer has another version.
@Suite("Conversations over HTTP/1.1", .timeLimit(.minutes(15)), .mayBlock) struct HTTP1ConversationTests {
    private static let scripts =
        #filePath.split(separator: "/").dropLast().map { "/\($0)" }.joined() + "/HTTP1"
    private static let requests = "/usr/lib/python3/dist-packages/requests/__init__.py"
    private static let expected = [
        "201", "200 active 1", "201", "200 wait", "200 success signed 2", "200 1", "404 not_found", "204",
    ]

    @Test(.enabled(if: access(requests, R_OK) == 0, "python3-requests is not installed"))
    func pythonRequestsDoesIt() async throws { try await converse("/usr/bin/python3", "conversation.py") }

    /// The trick by which fetch gets a certificate needs Node 18 or newer.
    @Test func nodeFetchDoesIt() async throws { try await converse("node", "conversation.mjs") }

    @Test(arguments: ["curl", "streams"]) func phpDoesIt(_ by: String) async throws {
        try await converse("php", "conversation.php", by: by)
    }

    @Test(.enabled(if: Child.isInstalled("go"), "go is not installed")) func goDoesIt() async throws {
        try await converse("go", "conversation.go")
    }

    @Test func curlDoesIt() async throws { try await converse("sh", "conversation.sh") }

    private func converse(_ program: String, _ script: String, by: String? = nil) async throws {
        let relay = try await RunningRelay.start()
        let directory = relay.directory.path
        try await relay.tool(
            ["website", "add", "shop", "--webhook", "https://shop.example.com/webhooks", "--out", directory])
        var arguments = ["\(Self.scripts)/\(script)", relay.origin, directory, try BuiltProgram.twoefay.path]
        if program == "go" { arguments.insert("run", at: 0) }
        if let by { arguments.append(by) }
        let ended = try await Child(
            program, arguments, environment: ["GOCACHE": "\(directory)/cache"], in: directory
        ).ended()
        let lines = ended.output.split(separator: "\n").map(String.init)
        #expect(lines == Self.expected, "\(ended.output)\(ended.errors)")
    }
}
