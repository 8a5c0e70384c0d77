import Bytes
import Glibc
import JSON
import TestSupport
import Testing
import TwoefayClient
import Webhooks
import World

/// The code of docs/websites/by-hand.md, run unchanged with the real daemon and a phone that answers.
@Suite("The website's guide", .timeLimit(.minutes(15)), .mayBlock) struct GuideTests {
    /// Starts a relay that knows the shop, and writes the files that the operator gives to the
    /// shop.
    private func shop() async throws -> (relay: RunningRelay, directory: TemporaryDirectory) {
        let relay = try await RunningRelay.start()
        let directory = try TemporaryDirectory()
        // As in the quickstart, without a display name: the receipt holds whatever the relay shows.
        try await relay.tool(["website", "add", "shop", "--out", directory.path])
        try TextFile.write(try TextFile.bytes(relay.file("ca.pem")), to: directory("ca.pem"))
        return (relay, directory)
    }

    /// The tests of each package run its README's code; the guide must show the same.
    @Test(arguments: ["python", "node", "php", "go", "swift"]) func guideShowsTheCodeOfThePackage(language: String)
        throws
    {
        let readme = try TextFile.read("\(GuidePage.root)/clients/\(language)/README.md")
        let section = try #require(readme.components("## Level one").dropFirst().first)
        let code = try #require(section.components("\n```\n").first?.components("```").dropFirst().first)
        let guide = try TextFile.read("\(GuidePage.root)/docs/websites/guide.md")
        #expect(guide.contains("```\(code)\n```\n"), "docs/websites/guide.md differs from \(language)'s README")
    }

    @Test(arguments: GuideCode.withReceipts) func guideCodeLogsAUserIn(code: GuideCode) async throws {
        let (relay, directory) = try await shop()
        try code.write(into: directory, origin: relay.origin)
        let arguments = code.language == "php" ? [code.driver.name] : [code.driver.name, "login"]
        let ended = try await code.start(arguments, in: directory).ended()
        let said = ended.output.split(separator: "\n").map { $0.lowercased() }
        try #require(ended.status == 0 && said.count == 6, "\(ended.output)\(ended.errors)")
        #expect(said[0] == "success signed true")
        // The program uses the same receipt again, and the person denies a second login.
        #expect(said[1].hasPrefix("ada/1 is not let in: ") && said[1].contains("an open request"))
        #expect(said[2] == "again false")
        #expect(said[3].hasPrefix("ada/1 is not let in: ") && said[4] == "failure denied false")
        #expect(said[5] == "404 not_found")
        // Each request took effect once.
        #expect(try relay.count("SELECT count(*) FROM challenge") == 2)
    }

    @Test func guideCurlCommandsWork() async throws {
        let (relay, directory) = try await shop()
        for (name, text) in try GuideCode.files("sh") {
            try TextFile.write(text.replacing(GuideCode.origin, with: relay.origin), to: directory(name))
        }
        try TextFile.write(GuideDriver.shell, to: directory("driver.sh"))
        let ended = try await Child(
            "sh", ["driver.sh"], environment: ["TWOEFAY": try BuiltProgram.twoefay.path], in: directory.path
        ).ended()
        #expect(
            ended.output.split(separator: "\n") == [
                "active", "success signed ", "failure signed denied", "not_found",
            ], "\(ended.output)\(ended.errors)")
    }

    // MARK: Webhooks

    private static let secret = WebhookSecret.make(SystemRandomness())
    private static let next = WebhookSecret.make(SystemRandomness())
    private static let body =
        #"{"type":"login.decided","timestamp":"2026-11-22T05:00:00.000Z","data":{"token":"tök","login":"failure"}}"#

    /// A webhook and the expected status.
    private struct Incoming {
        let name: String
        let status: Int
        var id = "0123456789abcdef0123456789abcdef"
        var body = GuideTests.body
        var age = Duration.zero
        var secrets = [GuideTests.secret]
        var isChanged = false

        var fields: [(name: String, value: String)] {
            get throws {
                WebhookHeaders(
                    id: try #require(WebhookID(id)), body: Array(body.utf8), at: SystemTime().now() - age,
                    secrets: secrets
                ).fields
            }
        }

        var sent: String { isChanged ? body + " " : body }
    }

    private static let incoming = [
        Incoming(name: "honest", status: 204),
        Incoming(name: "the same once more", status: 204),
        Incoming(name: "signed by another", status: 400, id: "a", secrets: [WebhookSecret.make(SystemRandomness())]),
        Incoming(name: "changed on its way", status: 400, id: "b", isChanged: true),
        Incoming(name: "sent long ago", status: 400, id: "c", age: .seconds(600)),
        Incoming(name: "sent in the future", status: 400, id: "d", age: .seconds(-600)),
        Incoming(name: "by the next secret", status: 204, id: "e", secrets: [next]),
        Incoming(name: "by both", status: 204, id: "f", secrets: [WebhookSecret.make(SystemRandomness()), secret]),
    ]
    /// The number of new webhooks among the accepted ones.
    private static let acted = 3

    private func writeSecrets(_ directory: TemporaryDirectory) throws {
        for (name, secret) in [("shop.secret", Self.secret), ("shop.secret.new", Self.next)] {
            try TextFile.write(secret.text.reveal() + [0x0a], to: directory(name))
        }
    }

    @Test(arguments: GuideCode.withReceipts) func guideReceiverAcceptsWebhooks(code: GuideCode) async throws {
        let (relay, directory) = try await shop()
        try code.write(into: directory, origin: relay.origin)
        try writeSecrets(directory)
        let port = try FreePort()
        let receiver = try code.start(code.listening(String(port.port)), in: directory)
        let reaper = try ProcessReaper(of: receiver.pid)
        defer { reaper.dismiss() }
        _ = try await receiver.line(code.ready.stream, with: code.ready.word)
        for one in Self.incoming {
            let fields = try one.fields.flatMap { ["--header", "\($0.name): \($0.value)"] }
            let posted = try await Child.run(
                "curl",
                [
                    "--silent", "--show-error", "--output", "/dev/null", "--write-out", "%{http_code}", "--header",
                    "content-type: application/json", "--data-binary", one.sent,
                ] + fields + ["http://127.0.0.1:\(port.port)/webhook"])
            #expect(posted.output == "\(one.status)", "\(one.name): \(posted.errors)\(receiver.written)")
        }
        _ = try await receiver.line(code.ready.stream, with: "login.decided", number: Self.acted)
        receiver.signal(SIGKILL)
        let ended = await receiver.ended()
        let lines = (ended.output + ended.errors).split(separator: "\n").filter { $0.contains("login.decided") }
        #expect(lines.count == Self.acted && lines.allSatisfy { $0.contains("tök") }, "\(ended.output)\(ended.errors)")
    }

    @Test func guideShellCodeVerifiesWebhooks() async throws {
        let directory = try TemporaryDirectory()
        for (name, text) in try GuideCode.files("sh") { try TextFile.write(text, to: directory(name)) }
        try writeSecrets(directory)
        for one in Self.incoming {
            try TextFile.write(one.sent, to: directory("body"))
            let ended = try await Child.run(
                "sh", ["-c", ". ./website.sh; is_webhook \"$@\"", "sh"] + one.fields.map(\.value) + ["body"],
                in: directory.path)
            #expect((ended.status == 0) == (one.status == 204), "\(one.name): \(ended.errors)")
        }
    }

    // MARK: Swift

    @Test func guideSwiftCodeIsCompiled() throws {
        let own = try TextFile.read(
            #filePath.split(separator: "/").dropLast().map { "/\($0)" }.joined() + "/GuideShop.swift")
        #expect(try GuideCode.files("swift").map(\.text) == [own])
    }

    @Test func guideSwiftCodeLogsAUserIn() async throws {
        let (relay, directory) = try await shop()
        let shop = try Shop(
            origin: relay.origin, authority: try TextFile.bytes(directory("ca.pem")),
            certificate: try TextFile.bytes(directory("shop.pem")),
            key: Secret(try TextFile.bytes(directory("shop.key"))), secrets: [Self.secret, Self.next])
        func phone(_ arguments: String...) async throws {
            let ended = try await Child.run(
                try BuiltProgram.twoefay.path, ["phone"] + arguments + ["--keys", directory("phone")])
            try #require(ended.status == 0, "\(ended.errors)")
        }
        try await phone("enrol", try #require(try await shop.register("ada")))
        try await shop.pinPhones(of: "ada")
        let login = try await shop.ask("ada", ip: "203.0.113.7")
        async let isLetIn = shop.isLetIn(login)
        try await phone("approve", "--challenge", login.challenge, "--number", login.number ?? "")
        #expect(try await isLetIn)
        await #expect(throws: ReceiptFault.requestUsed) { try await shop.isLetIn(login) }
        let denied = try await shop.ask("ada", ip: "203.0.113.7")
        try await phone("deny", "--challenge", denied.challenge)
        #expect(try await shop.isLetIn(denied) == false)
        for one in Self.incoming {
            let status = await shop.receive(fields: try one.fields, body: Array(one.sent.utf8))
            #expect(status == one.status, "\(one.name)")
        }
    }
}

extension String {
    /// The parts between a separator.
    fileprivate func components(_ separator: String) -> [String] {
        var (parts, rest) = ([String](), self[...])
        while let found = rest.firstRange(of: separator) {
            parts.append(String(rest[..<found.lowerBound]))
            rest = rest[found.upperBound...]
        }
        return parts + [String(rest)]
    }
}
