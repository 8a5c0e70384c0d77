import Glibc
import TestSupport
import Testing

/// Secrets that systemd hands over in a directory, which the tests make.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct CredentialTests {
    /// A relay that does not run, and whose master key is a credential.
    private static func relay() async throws -> (RunningRelay, directory: String) {
        let relay = try await RunningRelay.start()
        await relay.stop()
        let directory = relay.directory("credentials")
        try #require(mkdir(directory, 0o700) == 0)
        try #require(rename(relay.file("master.key"), "\(directory)/master.key") == 0)
        // The mode that a file with an ACL of systemd shows.
        try #require(chmod("\(directory)/master.key", 0o440) == 0)
        try relay.change { try $0.set("master_key_file", to: "credential:master.key") }
        return (relay, directory)
    }

    /// The directory is outside of the installation, so this fails if the restrictions of the
    /// process leave it out.
    @Test func relayReadsACredentialAtTheStartAndAtAReload() async throws {
        let (relay, directory) = try await Self.relay()
        let child = try Child(
            try BuiltProgram.twoefayd.path, ["--config", relay.settings],
            environment: ["CREDENTIALS_DIRECTORY": directory])
        _ = try await child.line(.errors, with: "event=daemon.started")
        child.signal(SIGHUP)
        _ = try await child.line(.errors, with: "event=daemon.reloaded")
        child.signal(SIGTERM)
        #expect(await child.ended().status == 0)
    }

    @Test func credentialThatOthersCanReadIsRefused() async throws {
        let (relay, directory) = try await Self.relay()
        for mode in [0o444, 0o460] as [mode_t] {
            try #require(chmod("\(directory)/master.key", mode) == 0)
            let ended = try await Self.check(relay, directory)
            #expect(ended.status == 1 && ended.errors.contains("can be read by others"), "\(ended)")
        }
        // Elsewhere the group may not read a secret either.
        try #require(rename("\(directory)/master.key", relay.file("master.key")) == 0)
        try #require(chmod(relay.file("master.key"), 0o440) == 0)
        try relay.change { try $0.set("master_key_file", to: "master.key") }
        let ended = try await Self.check(relay, directory)
        #expect(ended.status == 1 && ended.errors.contains("can be read by others"), "\(ended)")
    }

    /// Without the variable, a directory of its name in another user's directory is not used.
    @Test(arguments: [nil, "", "/"]) func missingDirectoryIsNamed(_ value: String?) async throws {
        let (relay, directory) = try await Self.relay()
        let place = try TemporaryDirectory()
        try #require(rename(directory, place("$CREDENTIALS_DIRECTORY")) == 0)
        try #require(chmod(place("$CREDENTIALS_DIRECTORY/master.key"), 0o400) == 0)
        let ended = try await Self.check(relay, value, in: place.path)
        #expect(
            ended.status == 1 && ended.errors.contains("/$CREDENTIALS_DIRECTORY/master.key: No such file"),
            "\(ended)")
    }

    @Test func slashAtTheEndOfTheDirectoryCountsNothing() async throws {
        let (relay, directory) = try await Self.relay()
        let ended = try await Self.check(relay, directory + "/")
        #expect(ended.status == 0, "\(ended)")
    }

    @Test(arguments: ["credential:", "credential:../master.key", "credential:.."])
    func wrongNameIsRefused(_ name: String) async throws {
        let (relay, directory) = try await Self.relay()
        try relay.change { try $0.set("master_key_file", to: "\"\(name)\"") }
        let ended = try await Self.check(relay, directory)
        #expect(ended.status == 1 && ended.errors.contains("must be credential:NAME"), "\(ended)")
    }

    private static func check(
        _ relay: RunningRelay, _ directory: String?, in place: String = "/"
    ) async throws -> Child.Ended {
        try await Child(
            "/bin/sh",
            [
                "-c", #"cd "$0" && exec "$@""#, place, try BuiltProgram.twoefayd.path, "--config", relay.settings,
                "--check",
            ],
            environment: directory.map { ["CREDENTIALS_DIRECTORY": $0] } ?? [:]
        ).ended()
    }
}
