import JSON
import TestSupport
import Testing

/// The keys that relays make by themselves, as the operator sees and replaces them.
@Suite("twoefay keys", .timeLimit(.minutes(15)), .mayBlock) struct KeysTests {
    private func keys(_ installed: Installed, _ arguments: String...) async throws -> Child.Ended {
        try await Child.run(
            try BuiltProgram.twoefay.path, ["--config", installed.settings, "keys"] + arguments + ["--json"])
    }

    private func listed(_ installed: Installed) async throws -> [(number: Int64?, state: String?)] {
        let list = try await keys(installed, "list")
        try #require(list.status == 0, "\(list.errors)")
        return try #require(try list.json["keys"]?.array).compactMap(\.object).map {
            ($0["number"]?.integer, $0["state"]?.string)
        }
    }

    @Test func operatorReplacesKeys() async throws {
        let installed = try await Installed()
        #expect(try await listed(installed).isEmpty)
        let first = try await keys(installed, "roll", "nonces")
        #expect(first.status == 0, "\(first.errors)")
        let second = try await keys(installed, "roll", "nonces")
        #expect(try second.json["key"]?.object?["number"]?.integer == 2)
        var list = try await listed(installed)
        #expect(list.map(\.number) == [1, 2] && list.map(\.state) == ["used", "next"])
        let now = try await keys(installed, "roll", "nonces", "--now")
        #expect(try now.json["replaced"]?.bool == true)
        list = try await listed(installed)
        #expect(list.map(\.number) == [3] && list.map(\.state) == ["used"])
        let status = try await BuiltProgram.twoefay("--config", installed.settings, "status")
        #expect(status.output.contains("Key for nonces: number 3, 0 h old."), "\(status.output)")
        #expect(status.output.contains(/Master key [0-9a-f]{8}: 0 h old\./), "\(status.output)")
    }

    @Test func unknownKindIsRefused() async throws {
        let installed = try await Installed()
        #expect(try await keys(installed, "roll", "coffee").status == 2)
        #expect(try await listed(installed).isEmpty)
    }

    @Test func keysThatAreOffAreNotMade() async throws {
        let installed = try await Installed()
        let settings = try text(installed.settings)
        try #require(settings.contains("  # nonces: 24\n"))
        try TextFile.write(settings.replacing("  # nonces: 24\n", with: "  nonces: 0\n"), to: installed.settings)
        let refused = try await keys(installed, "roll", "nonces")
        #expect(refused.status == 4)
        #expect(try refused.json["error"]?.object?["message"]?.string?.contains("rolling.nonces is 0") == true)
        #expect(try await listed(installed).isEmpty)
        let status = try await BuiltProgram.twoefay("--config", installed.settings, "status")
        #expect(!status.output.contains("Key for nonces"))
    }

    /// The key file must keep the key under which rolling keys are sealed.
    @Test func masterKeyInUseByRollingKeysIsKept() async throws {
        let installed = try await Installed()
        #expect(try await keys(installed, "roll", "nonces").status == 0)
        for (step, status) in [([], Int32(0)), (["--use"], 0), (["--finish"], 4)] {
            let done = try await Child.run(
                try BuiltProgram.twoefay.path, ["--config", installed.settings, "rekey"] + step)
            #expect(done.status == status, "\(done.errors)")
        }
        // A key that replaces the others is sealed under the new master key.
        #expect(try await keys(installed, "roll", "nonces", "--now").status == 0)
        let done = try await Child.run(
            try BuiltProgram.twoefay.path, ["--config", installed.settings, "rekey", "--finish"])
        #expect(done.status == 0, "\(done.errors)")
    }
}
