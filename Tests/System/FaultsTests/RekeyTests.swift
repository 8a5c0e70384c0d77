import Glibc
import TestSupport
import Testing

/// The command `twoefay rekey` under a running relay.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct RekeyTests {
    private func rekey(_ scene: Fixture, _ arguments: String...) async throws -> Child.Ended {
        try await Child.run(
            try BuiltProgram.twoefay.path, ["--config", scene.relay.file("twoefay.yaml"), "rekey"] + arguments)
    }

    private func reload(_ scene: Fixture, number: Int) async throws {
        scene.relay.signal(SIGHUP)
        try await scene.relay.logged("event=daemon.reloaded", number: number)
    }

    /// A stored answer for a repeated request opens with the key that sealed it, through every step.
    @Test(arguments: [StoreKind.file, .mariadb]) func storedAnswersOpenDuringKeyRotation(kind: StoreKind) async throws {
        let scene = try await Fixture.start(kind)
        let (token, phone) = try await scene.enrol("anna")
        let first = try await scene.login(token, key: "first")
        try await scene.finish(first, by: phone)
        let path = scene.relay.file("master.key")
        let original = try TextFile.read(path)

        #expect(try await rekey(scene).status == 0)
        let known = try TextFile.read(path)
        #expect(known.hasSuffix(" next\n\(original)"))
        #expect(TemporaryDirectory.mode(of: path) == 0o600)
        // A second new key is refused before the first one is used.
        #expect(try await rekey(scene).status == 4)
        try await reload(scene, number: 1)

        #expect(try await rekey(scene, "--use").status == 0)
        #expect(try await rekey(scene, "--use").status == 4)
        // A damaged file is refused, and the relay keeps its keys.
        let used = try TextFile.read(path)
        try TextFile.write(String(used.dropLast(10)), to: path)
        scene.relay.signal(SIGHUP)
        let refused = try await scene.relay.logged("event=daemon.reload ")
        #expect(refused.contains("level=error") && refused.contains("master.key: line "))
        #expect(!refused.contains(String(original.prefix(16))))
        #expect(try await scene.login(token, key: "first") == first)
        try TextFile.write(used, to: path)
        try await reload(scene, number: 2)

        let second = try await scene.login(token, key: "second")
        #expect(try await scene.login(token, key: "first") == first)
        #expect(try await scene.login(token, key: "second") == second)
        // After a kill the relay starts with all keys.
        await scene.relay.kill()
        try await scene.relay.restart()
        #expect(try await scene.login(token, key: "first") == first)
        #expect(try await scene.login(token, key: "second") == second)
        try await scene.finish(second, by: phone)

        let early = try await rekey(scene, "--finish")
        #expect(early.status == 4)
        #expect(early.errors.contains(" kept answers and the secrets of "), "\(early.errors)")
        #expect(try TextFile.read(path) == used)
        // A day later the stored answers are deleted.
        try scene.relay.execute("DELETE FROM idempotency")
        try scene.relay.execute("DELETE FROM operation_secret")
        #expect(try await rekey(scene, "--finish").status == 0)
        #expect(!(try TextFile.read(path)).contains(original))
        #expect(try await rekey(scene, "--finish").status == 4)
        scene.relay.signal(SIGHUP)
        try await scene.relay.logged("event=daemon.restart ")
        await scene.relay.stop()
        try await scene.relay.restart()
        let third = try await scene.login(token, key: "third")
        #expect(try await scene.login(token, key: "third") == third)
        try await scene.finish(third, by: phone)
    }
}
