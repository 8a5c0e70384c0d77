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

    @Test func optionOutweighsTheEnvironment() async throws {
        let installed = try await Installed()
        let wrong = installed.directory("nothing.yaml")
        let ended = try await websites(["--config", installed.settings], environment: ["TWOEFAY_CONFIG": wrong])
        #expect(ended.status == 0, "\(ended.errors)")
        let refused = try await websites([], environment: ["TWOEFAY_CONFIG": wrong])
        #expect(refused.status == 3 && refused.errors.contains("nothing.yaml"), "\(refused.errors)")
    }
}
