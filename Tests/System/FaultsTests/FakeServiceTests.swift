import Bytes
import Crypto
import Glibc
import JSON
import TestSupport
import Testing
import World

/// The program `twoefay fake-apns`, as a website's developer runs it: a separate process, beside a relay or with
/// curl.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct FakeServiceTests {
    /// The running program, and its first output.
    private final class Program: Sendable {
        let child: Child
        let directory: TemporaryDirectory
        let settings: JSONObject
        let port: Int64
        private let reaper: ProcessReaper

        init(_ arguments: String..., port: Int64 = 0, in directory: TemporaryDirectory? = nil) async throws {
            let directory = try directory ?? TemporaryDirectory()
            child = try Child(
                try BuiltProgram.twoefay.path,
                ["fake-apns", "--json", "--listen", "127.0.0.1:\(port)", "--directory", directory("team")] + arguments)
            reaper = try ProcessReaper(of: child.pid)
            self.directory = directory
            let line = try await child.line(.output, with: #""event":"listening""#)
            let listening = try #require(try JSONReader.read(Array(line.utf8)).object)
            settings = try #require(listening["settings"]?.object)
            self.port = try #require(listening["port"]?.integer)
        }

        deinit {
            child.signal(SIGKILL)
            reaper.dismiss()
        }

        /// Makes it the push service in a relay's settings.
        func set(in text: inout String) throws {
            for member in settings.members {
                try text.set("push.apns.\(member.name)", to: try #require(member.value.string))
            }
        }

        func request(_ number: Int = 1) async throws -> JSONObject {
            let line = try await child.line(.output, with: #""event":"request""#, number: number)
            return try #require(try JSONReader.read(Array(line.utf8)).object)
        }

        /// Ends the program, like Ctrl-C.
        func stop() async throws -> JSONObject {
            child.signal(SIGINT)
            let ended = await child.ended()
            #expect(ended.status == 0 && ended.errors.isEmpty, "\(ended.errors)")
            let last = try #require(ended.output.split(separator: "\n").last)
            return try #require(try JSONReader.read(Array(last.utf8)).object)
        }

        /// Sends a push with curl, as in Apple's documentation. Returns the body of the answer, followed by its
        /// status.
        func curl(_ device: String, _ arguments: String...) async throws -> String {
            let (key, kid, team) = (settings["key"]?.string, settings["key_id"]?.string, settings["team_id"]?.string)
            let token = try JWS.sign(
                header: ["kid": .string(kid ?? "")],
                payload: JSONWriter.write(
                    ["iss": .string(team ?? ""), "iat": .integer(SystemTime().now().seconds)] as JSONObject),
                key: P256PrivateKey(pem: Secret(TextFile.bytes(try #require(key)))))
            let ended = try await Child.run(
                "curl",
                [
                    "--silent", "--http2", "--cacert", try #require(settings["ca"]?.string), "--max-time", "120",
                    "--header", "authorization: bearer \(token)", "--header", "apns-push-type: alert",
                    "--header", "apns-topic: com.example.twoefay",
                    "--header", "apns-id: 01234567-89ab-4def-8123-456789abcdef",
                    "--data", #"{"aps":{"alert":"hello"}}"#, "--write-out", "%{http_code}",
                ] + arguments + ["\(try #require(settings["endpoint"]?.string))/3/device/\(device)"])
            return ended.output
        }
    }

    @Test(arguments: [false, true]) func relayPushesWithThePrintedSettings(showsCertificate: Bool) async throws {
        let program = try await showsCertificate ? Program("--certificate") : Program()
        let fixture = try await Fixture.start { settings in try program.set(in: &settings) }
        let (token, phone) = try await fixture.enrol("anna")
        let login = try await fixture.login(token)
        let request = try await program.request()
        #expect(request["device"]?.string == phone.pushToken)
        #expect(request["answer"] == "200")
        #expect(request["payload"]?.object?["challenge"]?.string == login.challenge)
        try await fixture.relay.logged("event=push.accepted challenge=\(login.challenge)")
        #expect(try await fixture.auth(login.challenge).steps == ["sent"])
        try await fixture.finish(login, by: phone)
        let ended = try await program.stop()
        #expect(ended == ["event": "ended", "requests": 1, "accepted": 1])
    }

    @Test func teamIsReusedAfterARestart() async throws {
        let before = try await Program()
        let fixture = try await Fixture.start { settings in try before.set(in: &settings) }
        let (token, _) = try await fixture.enrol("anna")
        _ = try await before.stop()
        let after = try await Program(port: before.port, in: before.directory)
        #expect(after.settings == before.settings)
        _ = try await fixture.login(token)
        #expect(try await after.request()["answer"] == "200")
        #expect(try await Child.run("stat", ["-c", "%a", before.directory("team/AuthKey.p8")]).output == "600\n")
    }

    @Test func changedControlFileIsReloaded() async throws {
        let directory = try TemporaryDirectory()
        let control = directory("control.yaml")
        try TextFile.write("tokens: {dead: Unregistered}\n", to: control)
        let program = try await Program("--control", control, in: directory)
        let gone = try await program.curl("dead01")
        #expect(gone.contains(#""reason":"Unregistered""#) && gone.hasSuffix("410"), "\(gone)")
        #expect(gone.contains(#""timestamp":"#))
        #expect(try await program.curl("beef01") == "200")

        // A fault is reported with its position, and changes nothing.
        try TextFile.write("tokens:\n  dead: Unregisterd\n", to: control)
        let trouble = try await program.child.line(.output, with: #""event":"trouble""#)
        #expect(trouble.contains("control.yaml:2:9: Unregisterd is unknown; did you mean Unregistered?"), "\(trouble)")
        #expect(try await program.curl("dead01").hasSuffix("410"))

        // The file is replaced by renaming, as many editors do.
        try TextFile.write("every:\n  - {requests: 2, answer: ServiceUnavailable}\n", to: control + ".new")
        try #require(rename(control + ".new", control) == 0)
        _ = try await program.child.line(.output, with: #""event":"control""#)
        #expect(try await program.curl("dead01") == "200")
        #expect(try await program.curl("dead01").hasSuffix("503"))

        // SIGHUP reads it again, changed or not.
        program.child.signal(SIGHUP)
        _ = try await program.child.line(.output, with: #""event":"control""#, number: 2)
        #expect(try await program.curl("dead01") == "200", "the count begins anew")
        #expect(try await program.stop() == ["event": "ended", "requests": 6, "accepted": 3])
    }

    @Test func curlSeesTheConnectionBehaviors() async throws {
        let directory = try TemporaryDirectory()
        let control = directory("control.yaml")
        try TextFile.write(
            """
            connections: [expired, wrong-name, foreign-authority, cut, serve]
            tokens: {aa: {answer: reset, code: INTERNAL_ERROR}, bb: {answer: TooManyRequests, retry-after: 30s}}
            """, to: control)
        let program = try await Program("--control", control, in: directory)
        // curl's exit statuses: the certificate is not valid; then a reset, noticed at different times.
        for codes in [["60"], ["60"], ["60"], ["7", "35", "56"]] {
            let said = try await program.curl("beef", "--write-out", "%{exitcode}")
            #expect(codes.contains(said), "\(said)")
        }
        #expect(try await program.curl("beef") == "200")
        #expect(try await program.curl("aa", "--write-out", "%{exitcode}") == "92")
        let limited = try await program.curl("bb", "--include")
        #expect(limited.lowercased().contains("retry-after: 30"), "\(limited)")
    }

    @Test func nghttpSeesTheConfiguredFrames() async throws {
        let directory = try TemporaryDirectory()
        let control = directory("control.yaml")
        try TextFile.write("connections: [goaway, serve]\nstreams: 7\n", to: control)
        let program = try await Program("--control", control, in: directory)
        let arguments = ["--no-verify-peer", "-nv", "https://127.0.0.1:\(program.port)/3/device/beef"]
        // The GOAWAY precedes the SETTINGS, which some clients treat as an error.
        let refused = try await Child.run("nghttp", arguments)
        #expect(!refused.output.contains(":status"))
        let served = try await Child.run("nghttp", arguments)
        #expect(served.output.contains("[SETTINGS_MAX_CONCURRENT_STREAMS(0x03):7]"), "\(served.output)")
        #expect(served.output.contains(":status: 405"))
        #expect(try await program.request()["answer"] == "405 MethodNotAllowed")
    }

    @Test func failedStartNamesTheNextStep() async throws {
        let twoefay = BuiltProgram.twoefay
        let directory = try TemporaryDirectory()
        let missing = try await twoefay("fake-apns", "--control", directory("none.yaml"), in: directory.path)
        #expect(missing.status == 3)
        #expect(missing.errors.contains("To create one: twoefay fake-apns --example > \(directory("none.yaml"))"))

        try TextFile.write("tokens: 5\nlatency: never\n", to: directory("bad.yaml"))
        let wrong = try await twoefay("fake-apns", "--control", directory("bad.yaml"), in: directory.path)
        #expect(wrong.status == 1)
        #expect(wrong.errors.contains("bad.yaml:1:9: ") && wrong.errors.contains("bad.yaml:2:10: "))

        let program = try await Program(in: directory)
        let taken = try await twoefay(
            "fake-apns", "--listen", "127.0.0.1:\(program.port)", "--directory", directory("team"))
        #expect(taken.status == 5)
        #expect(taken.errors.contains("cannot listen on 127.0.0.1:\(program.port)"))

        try #require(unlink(directory("team/apple-ca.key")) == 0)
        let broken = try await twoefay("fake-apns", "--listen", "127.0.0.1:0", "--directory", directory("team"))
        #expect(broken.status == 4)
        #expect(broken.errors.contains("apple-ca.key is missing, but AuthKey.p8 exists"))

        let nowhere = try await twoefay("fake-apns", "--listen", "here", in: directory.path)
        #expect(nowhere.status == 2)
    }

    @Test func exampleControlFileIsValidAndDocumented() async throws {
        let directory = try TemporaryDirectory()
        let example = try await BuiltProgram.twoefay("fake-apns", "--example").output
        try TextFile.write(example, to: directory("control.yaml"))
        let program = try await Program("--control", directory("control.yaml"), in: directory)
        #expect(try await program.curl("dead00").hasSuffix("410"))
        #expect(try await program.curl("beef00") == "200")
        let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
        let page = try TextFile.read("\(root)/docs/phones/fake-apns.md")
        #expect(page.contains("```yaml\n\(example)```\n"))
        let help = try await BuiltProgram.twoefay("fake-apns", "--help").output
        let options = help.split(separator: "\n").compactMap { line -> String? in
            let word = line.drop { $0 == " " }.prefix { $0 != " " }
            return word.hasPrefix("--") && !["--config", "--help", "--version"].contains(word) ? String(word) : nil
        }
        #expect(options.count >= 8)
        for option in options { #expect(page.contains("`\(option)"), "\(option)") }
    }

    @Test func fakeAPNsOutputIsReadable() async throws {
        let directory = try TemporaryDirectory()
        let child = try Child(
            try BuiltProgram.twoefay.path,
            ["fake-apns", "--listen", "127.0.0.1:0", "--directory", directory("a team")])
        let reaper = try ProcessReaper(of: child.pid)
        defer { reaper.dismiss() }
        try await child.says("Ctrl-C ends it.")
        child.signal(SIGTERM)
        let ended = await child.ended()
        #expect(ended.status == 0)
        #expect(ended.output.contains("push:\n  apns:\n    endpoint: https://127.0.0.1:"))
        // The printed settings are valid YAML, whatever the name of the directory.
        #expect(ended.output.contains("    key: \"\(directory("a team/AuthKey.p8"))\"\n"), "\(ended.output)")
        #expect(ended.output.hasSuffix("0 requests, 0 pushes accepted.\n"))
    }
}
