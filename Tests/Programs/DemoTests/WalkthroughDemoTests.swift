import Glibc
import JSON
import TestSupport
import Testing

/// The built `twoefay demo --terminal`, run as a newcomer runs it.
@Suite("twoefay demo --terminal", .timeLimit(.minutes(15))) struct WalkthroughDemoTests {
    private let scratch: TemporaryDirectory

    init() throws { scratch = try TemporaryDirectory() }

    private func start(_ arguments: String...) throws -> Child {
        try Child(
            try BuiltProgram.twoefay.path, ["demo", "--terminal"] + arguments, environment: ["TMPDIR": scratch.path])
    }

    /// Returns the relay's process id when the relay runs.
    private func relay(of demo: Child) async throws -> pid_t {
        let line = try await demo.line(.output, with: "twoefayd as process")
        return try #require(line.split(separator: " ").last.flatMap { pid_t($0) })
    }

    private func isGone(_ pid: pid_t) -> Bool { kill(pid, 0) != 0 && errno == ESRCH }

    /// Returns whether an orphan has ended. A zombie counts as ended, because its new parent may or
    /// may not reap it.
    private func hasEnded(_ pid: pid_t) -> Bool {
        guard !isGone(pid), let stat = try? TextFile.read("/proc/\(pid)/stat") else { return true }
        return stat.split(separator: ") ").last?.hasPrefix("Z") ?? true
    }

    /// Takes about a minute, because no wait in it is shortened.
    @Test func walkthroughRunsThreeLogins() async throws {
        let played = try await start("--json").ended()
        try #require(played.status == 0, "\(played.output)\(played.errors)")
        #expect(played.errors == "")
        let json = try #require(try JSONReader.read(Array(played.output.utf8.dropLast())).object)
        #expect(json["succeeded"] == true)
        let logins = try #require(json["logins"]?.array).compactMap(\.object)
        #expect(logins.map { $0["login"]?.string } == ["approved", "denied", "expired"])
        #expect(logins.map { $0["result"]?.string } == ["success", "failure", "failure"])
        #expect(logins.map { $0["reason"]?.string } == [nil, "denied", "expired"])
        #expect(logins.allSatisfy { $0["as_expected"] == true })
        #expect(Set(logins.compactMap { $0["challenge"]?.string }).count == 3)

        // Two logins were answered, and the phone signed both answers.
        #expect(logins.map { $0["proof"]?.string } == ["signed", "signed", nil])

        // The messages of the approved login, in order.
        let challenge = try #require(logins.first?["challenge"]?.string)
        let steps = try #require(json["steps"]?.array).compactMap(\.object)
            .filter { $0["body"]?.object?["challenge"]?.string == challenge }
            .map { "\($0["from"]?.string ?? "") → \($0["to"]?.string ?? "")" }
        for step in [
            "relay → push service", "relay → website", "push service → phone", "website → relay", "phone → relay",
        ] { #expect(steps.contains(step), "\(step)") }
        let asked = try #require(steps.firstIndex(of: "push service → phone"))
        let answered = try #require(steps.firstIndex(of: "phone → relay"))
        #expect(asked < answered && steps.last == "relay → website")

        let pid = try #require(json["relay"]?.object?["pid"]?.integer.flatMap { pid_t(exactly: $0) })
        #expect(isGone(pid))
        #expect(json["directory"]?.string?.hasPrefix(scratch.path) == true)
        #expect(scratch.names == [])
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP]) func walkthroughCleansUpAfterSIGTERM(signal: Int32) async throws {
        let demo = try start()
        let pid = try await relay(of: demo)
        _ = try await demo.line(.output, with: "3. Alice logs in")
        demo.signal(signal)
        let ended = await demo.ended()
        #expect(ended.status == 1)
        #expect(ended.errors.contains("interrupted before its end"))
        #expect(!ended.output.contains("\u{1b}"), "colours in a pipe")
        #expect(isGone(pid))
        #expect(scratch.names == [])
    }

    /// Interrupts the demo while it creates the installation.
    @Test func walkthroughCleansUpAfterAnImmediateSIGTERM() async throws {
        let demo = try start()
        _ = try await demo.line(.output, with: "Three logins with Twoefay")
        demo.signal(SIGINT)
        #expect(await demo.ended().status == 1)
        #expect(scratch.names == [])
    }

    @Test func walkthroughCleansUpAfterSIGKILL() async throws {
        let demo = try start()
        let pid = try await relay(of: demo)
        demo.signal(SIGKILL)
        // The process that cleans up holds the same output, so this waits for it too.
        #expect(await demo.ended().status == 128 + SIGKILL)
        // The relay was sent SIGKILL, but may not have ended yet.
        while !hasEnded(pid) { await Task.yield() }
        #expect(scratch.names == [])
    }

    @Test func walkthroughReportsADeadRelay() async throws {
        let demo = try start()
        let pid = try await relay(of: demo)
        kill(pid, SIGKILL)
        let ended = await demo.ended()
        #expect(ended.status == 1)
        #expect(ended.errors.contains("the relay ended by itself"))
        // The message quotes the end of the relay's log, which has lines because the relay had
        // started.
        #expect(ended.errors.contains("event="), "\(ended.errors)")
        #expect(scratch.names == [])
    }

    @Test func walkthroughKeepsTheDirectoryOnRequest() async throws {
        let demo = try start("--keep")
        let pid = try await relay(of: demo)
        demo.signal(SIGINT)
        #expect(await demo.ended().output.contains("is kept"))
        #expect(isGone(pid))
        let name = try #require(scratch.names.first)
        let kept = TemporaryDirectory.names(in: scratch(name))
        for file in ["twoefay.yaml", "twoefay.db", "ca.pem", "shop.pem", "shop.key", "twoefayd.log"] {
            #expect(kept.contains(file), "\(file)")
        }
        #expect(TemporaryDirectory.mode(of: scratch(name)) == 0o700)
    }

    @Test func walkthroughNeedsTwoefaydBesideIt() async throws {
        let copy = scratch("twoefay")
        let copied = try await Child.run("cp", [try BuiltProgram.twoefay.path, copy])
        try #require(copied.status == 0)
        let demo = try await Child(copy, ["demo", "--terminal"], environment: ["TMPDIR": scratch.path]).ended()
        #expect(demo.status == 3)
        #expect(demo.errors.contains("/twoefayd: No such file or directory"))
        #expect(scratch.names == ["twoefay"])
    }

    @Test(arguments: [["--storage", "mysql://x"], ["now"], ["--kept"]]) func walkthroughRefusesUnknownOptions(
        arguments: [String]
    ) async throws {
        let demo = try await Child(
            try BuiltProgram.twoefay.path, ["demo"] + arguments, environment: ["TMPDIR": scratch.path]
        ).ended()
        #expect(demo.status == 2)
        #expect(scratch.names == [])
    }
}
