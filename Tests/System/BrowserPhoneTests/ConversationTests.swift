import TestSupport
import Testing

/// A person who uses the phone's web app in Chromium, and in Firefox.
@Suite("The phone's web app in a browser", .timeLimit(.minutes(20)), .mayBlock) struct ConversationTests {
    private static let scripts =
        #filePath.split(separator: "/").dropLast().map { "/\($0)" }.joined() + "/Script"

    /// The script plays the website and a relay that verifies every proof without code of the product.
    @Test(.enabled(if: ChromiumScript.canRun, "Chromium, its driver or selenium is not installed"))
    func everyStepWorks() async throws {
        let ended = try await ChromiumScript.run("\(Self.scripts)/conversation.py", [])
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
        #expect(ended.output.contains("\n0 steps failed, 0 faults, "), "\(ended.output)")
    }

    /// The relay serves the app, and is its relay.
    @Test(.enabled(if: ChromiumScript.canRun, "Chromium, its driver or selenium is not installed"))
    func appAndRelayFitEachOther() async throws {
        let ports = [try FreePort(), try FreePort()]
        let programs = try BuiltProgram.twoefayd.path.split(separator: "/").dropLast().map { "/\($0)" }.joined()
        let ended = try await ChromiumScript.run(
            "\(Self.scripts)/real.py", [programs] + ports.map { "\($0.port)" })
        let last = "ok: a login is reported afterwards\n"
        #expect(ended.status == 0 && ended.output.hasSuffix(last), "\(ended.output)\(ended.errors)")
        withExtendedLifetime(ports) {}
    }

    /// The relay sends pushes to a push service of the test, and Firefox decrypts them.
    @Test(.enabled(if: ChromiumScript.canRunFirefox, "Firefox or selenium is not installed"))
    func firefoxDecryptsPushes() async throws {
        let ports = [try FreePort(), try FreePort()]
        let programs = try BuiltProgram.twoefayd.path.split(separator: "/").dropLast().map { "/\($0)" }.joined()
        let ended = try await ChromiumScript.run(
            "\(Self.scripts)/firefox.py", [programs] + ports.map { "\($0.port)" })
        #expect(ended.status == 0 && ended.output.hasSuffix("\n0 faults\n"), "\(ended.output)\(ended.errors)")
        withExtendedLifetime(ports) {}
    }
}
