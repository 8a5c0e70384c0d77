import Glibc
import JSON
import TestSupport
import Testing
import World

/// The program `twoefay fake-fcm`, as a website's developer runs it: a separate process, beside a relay.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct FakeFCMProgramTests {
    /// The running program, and its first output.
    private final class Program: Sendable {
        let child: Child
        let directory: TemporaryDirectory
        let settings: JSONObject
        private let reaper: ProcessReaper

        init(_ arguments: String..., in directory: TemporaryDirectory? = nil) async throws {
            let directory = try directory ?? TemporaryDirectory()
            child = try Child(
                try BuiltProgram.twoefay.path,
                ["fake-fcm", "--json", "--listen", "127.0.0.1:0", "--directory", directory("project")] + arguments)
            reaper = try ProcessReaper(of: child.pid)
            self.directory = directory
            let line = try await child.line(.output, with: #""event":"listening""#)
            let listening = try #require(try JSONReader.read(Array(line.utf8)).object)
            settings = try #require(listening["settings"]?.object)
        }

        deinit {
            child.signal(SIGKILL)
            reaper.dismiss()
        }

        func set(in text: inout String) throws {
            for member in settings.members {
                try text.set("push.fcm.\(member.name)", to: try #require(member.value.string))
            }
        }

        func line(_ part: String, number: Int = 1) async throws -> JSONObject {
            let line = try await child.line(.output, with: part, number: number)
            return try #require(try JSONReader.read(Array(line.utf8)).object)
        }
    }

    @Test func relayPushesWithThePrintedSettings() async throws {
        let directory = try TemporaryDirectory()
        let control = directory("control.yaml")
        try TextFile.write("access-tokens: [unavailable, issue]\n", to: control)
        let program = try await Program("--control", control, in: directory)
        let fixture = try await Fixture.start { settings in try program.set(in: &settings) }
        let (token, code) = try await fixture.register("anna")
        let key = try TestPhone(pushToken: TestFCM.token("live"))
        var body = try fixture.verifyBody(key, token: token, code: code)
        body["platform"] = "android"
        let phone = try fixture.phone(key, try await fixture.anyone.send("POST", "/verify", body))
        let login = try await fixture.login(token)
        let request = try await program.line(#""device":"live"#)
        #expect(request["answer"] == "200" && request["device"]?.string == key.pushToken)
        #expect(request["payload"]?.object?["challenge"]?.string == login.challenge)
        #expect(try await program.line(#""path":"/token""#)["answer"] == "503")
        #expect(try await program.line(#""path":"/token""#, number: 2)["answer"] == "200")
        try await fixture.finish(login, by: phone)

        try TextFile.write("tokens: {live: UNREGISTERED}\n", to: control)
        _ = try await program.line(#""event":"control""#)
        let next = try await fixture.login(token)
        try await fixture.relay.logged("event=push.refused challenge=\(next.challenge)")

        program.child.signal(SIGINT)
        let ended = await program.child.ended()
        #expect(ended.status == 0 && ended.errors.isEmpty, "\(ended.errors)")
        #expect(ended.output.contains(#""answer":"404 UNREGISTERED""#))
    }

    /// The account is the same after a restart, and its file names the new port.
    @Test func accountIsReusedAfterARestart() async throws {
        let before = try await Program()
        func account(_ program: Program) throws -> JSONObject {
            let path = try #require(program.settings["account"]?.string)
            return try #require(try JSONReader.read(TextFile.bytes(path)).object)
        }
        let first = try account(before)
        before.child.signal(SIGINT)
        _ = await before.child.ended()
        let after = try await Program(in: before.directory)
        let second = try account(after)
        #expect(first["private_key"] == second["private_key"])
        #expect(second["token_uri"]?.string == "\(after.settings["endpoint"]?.string ?? "")/token")
        let mode = try await Child.run("stat", ["-c", "%a", after.directory("project/account.json")])
        #expect(mode.output == "600\n")
    }

    @Test func exampleAndOptionsAreDocumented() async throws {
        let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
        let page = try TextFile.read("\(root)/docs/phones/fake-fcm.md")
        let example = try await BuiltProgram.twoefay("fake-fcm", "--example").output
        #expect(page.contains("```yaml\n\(example)```\n"))
        let help = try await BuiltProgram.twoefay("fake-fcm", "--help").output
        let options = help.split(separator: "\n").compactMap { line -> String? in
            let word = line.drop { $0 == " " }.prefix { $0 != " " }
            return word.hasPrefix("--") && !["--config", "--help", "--version"].contains(word) ? String(word) : nil
        }
        #expect(options.count >= 6)
        for option in options { #expect(page.contains("`\(option)"), "\(option)") }
    }
}
