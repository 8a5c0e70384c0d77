import JSON
import TestSupport
import Testing

@Suite("twoefay status", .timeLimit(.minutes(15)), .mayBlock) struct Status {
    @Test func saysThatNobodyAnswersAndWhatTheStoreHolds() async throws {
        // Nobody listens on the first port of all.
        let installed = try await Installed("--listen", "127.0.0.1:1", "--host", "127.0.0.1")
        _ = try await BuiltProgram.twoefay(
            "--config", installed.settings, "website", "add", "shop", "--out", installed.directory.path)
        let status = try await BuiltProgram.twoefay("--config", installed.settings, "status")
        #expect(status.status == 5)
        #expect(status.output.contains("The relay at https://127.0.0.1:1 does not answer"))
        #expect(status.output.contains("1 active websites, and 0 relays"))
        let told = try await BuiltProgram.twoefay("--config", installed.settings, "status", "--json")
        let json = try #require(try JSONReader.read(Array(told.output.utf8)).object)
        #expect(json["relay"]?.object?["state"]?.string == "silent")
        #expect(json["store"]?.object?["websites"]?.integer == 1)
        #expect(json["store"]?.object?["waiting"]?.array == [])
    }

    @Test func saysThatTheStoreIsMissing() async throws {
        let installed = try await Installed("--listen", "127.0.0.1:1")
        _ = try await Child.run("sh", ["-c", "rm twoefay.db*"], in: installed.directory("relay"))
        let status = try await BuiltProgram.twoefay("--config", installed.settings, "status", "--json")
        #expect(status.status == 5)
        let json = try #require(try JSONReader.read(Array(status.output.utf8)).object)
        #expect(json["store"]?.object?["error"]?.object?["code"]?.string == "not_found")
    }
}
