import Glibc
import TestSupport
import Testing

/// The command `twoefay rekey` under a running relay.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct RekeyTests {
    private func rekey(_ fixture: Fixture, _ arguments: String...) async throws -> Child.Ended {
        try await Child.run(
            try BuiltProgram.twoefay.path, ["--config", fixture.relay.file("twoefay.yaml"), "rekey"] + arguments)
    }

    private func reload(_ fixture: Fixture, number: Int) async throws {
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded", number: number)
    }

    /// A stored answer for a repeated request opens with the key that sealed it, through every step.
    @Test(arguments: [StoreKind.file, .mariadb]) func storedAnswersOpenDuringKeyRotation(kind: StoreKind) async throws {
        let fixture = try await Fixture.start(kind)
        let (token, phone) = try await fixture.enrol("anna")
        let first = try await fixture.login(token, key: "first")
        try await fixture.finish(first, by: phone)
        let path = fixture.relay.file("master.key")
        let original = try TextFile.read(path)

        #expect(try await rekey(fixture).status == 0)
        let known = try TextFile.read(path)
        #expect(known.hasSuffix(" next\n\(original)"))
        #expect(TemporaryDirectory.mode(of: path) == 0o600)
        // A second new key is refused before the first one is used.
        #expect(try await rekey(fixture).status == 4)
        try await reload(fixture, number: 1)

        #expect(try await rekey(fixture, "--use").status == 0)
        #expect(try await rekey(fixture, "--use").status == 4)
        // A damaged file is refused, and the relay keeps its keys.
        let used = try TextFile.read(path)
        try TextFile.write(String(used.dropLast(10)), to: path)
        fixture.relay.signal(SIGHUP)
        let refused = try await fixture.relay.logged("event=daemon.reload ")
        #expect(refused.contains("level=error") && refused.contains("master.key: line "))
        #expect(!refused.contains(String(original.prefix(16))))
        #expect(try await fixture.login(token, key: "first") == first)
        try TextFile.write(used, to: path)
        try await reload(fixture, number: 2)

        let second = try await fixture.login(token, key: "second")
        #expect(try await fixture.login(token, key: "first") == first)
        #expect(try await fixture.login(token, key: "second") == second)
        // After a kill the relay starts with all keys.
        await fixture.relay.kill()
        try await fixture.relay.restart()
        #expect(try await fixture.login(token, key: "first") == first)
        #expect(try await fixture.login(token, key: "second") == second)
        try await fixture.finish(second, by: phone)

        let early = try await rekey(fixture, "--finish")
        #expect(early.status == 4)
        #expect(early.errors.contains(" kept answers and the secrets of "), "\(early.errors)")
        #expect(try TextFile.read(path) == used)
        // A day later the stored answers are deleted.
        try fixture.relay.execute("DELETE FROM idempotency")
        try fixture.relay.execute("DELETE FROM operation_secret")
        #expect(try await rekey(fixture, "--finish").status == 0)
        #expect(!(try TextFile.read(path)).contains(original))
        #expect(try await rekey(fixture, "--finish").status == 4)
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.restart ")
        await fixture.relay.stop()
        try await fixture.relay.restart()
        let third = try await fixture.login(token, key: "third")
        #expect(try await fixture.login(token, key: "third") == third)
        try await fixture.finish(third, by: phone)
    }
}
