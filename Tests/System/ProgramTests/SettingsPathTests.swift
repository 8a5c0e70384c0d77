import TestSupport
import Testing

/// The way to the settings: an option, then the environment, then the standard path.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct SettingsPathTests {
    private func websites(_ arguments: [String], environment: [String: String]) async throws -> Child.Ended {
        let child = try Child(
            try BuiltProgram.twoefay.path, arguments + ["website", "list"], environment: environment)
        return await child.ended()
    }

    @Test func environmentNamesTheSettings() async throws {
        let installed = try await Installed()
        let ended = try await websites([], environment: ["TWOEFAY_CONFIG": installed.settings])
        #expect(ended.status == 0, "\(ended.errors)")
        let check = try Child(
            try BuiltProgram.twoefayd.path, ["--check"], environment: ["TWOEFAY_CONFIG": installed.settings])
        #expect(await check.ended().status == 0)
    }

    /// An account of the help desk has the relay's socket, and no use for an installation of its own.
    @Test func commandThatTheRelayDoesNotPerformNeedsAnOperator() async throws {
        let directory = try TemporaryDirectory()
        for command in [["website", "edit", "shop"], ["doctor"], ["backup", directory("copy")], ["audit", "verify"]] {
            let child = try Child(
                try BuiltProgram.twoefay.path, command, environment: ["TWOEFAY_CONTROL": directory("control")])
            let ended = await child.ended()
            #expect(ended.status == 1 && ended.errors.contains("An operator who can read"), "\(ended.errors)")
            #expect(ended.errors.contains(" the relay does not perform '"), "\(ended.errors)")
            #expect(!ended.errors.contains("twoefay init"), "\(ended.errors)")
        }
        // The relay itself has no such operator.
        let relay = try Child(
            try BuiltProgram.twoefayd.path, [], environment: ["TWOEFAY_CONTROL": directory("control")])
        let started = await relay.ended()
        #expect(started.status == 2 && started.errors.contains("twoefay init DIR"), "\(started.errors)")
    }

    @Test func optionOutweighsTheEnvironment() async throws {
        let installed = try await Installed()
        let wrong = installed.directory("nothing.yaml")
        let ended = try await websites(["--config", installed.settings], environment: ["TWOEFAY_CONFIG": wrong])
        #expect(ended.status == 0, "\(ended.errors)")
        let refused = try await websites([], environment: ["TWOEFAY_CONFIG": wrong])
        #expect(refused.status == 3 && refused.errors.contains("nothing.yaml"), "\(refused.errors)")
    }
}
