import CLinux
import Glibc
import TestSupport
import Testing

@testable import Daemon

/// `twoefay init --owner`: the relay's user gets what the relay needs.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct InitOwnerTests {
    private static func owner(of path: String) -> uid_t? {
        var state = stat()
        return stat(path, &state) == 0 ? state.st_uid : nil
    }

    @Test(.enabled(if: getuid() == 0, "only root can give files away"))
    func ownerGetsWhatTheRelayNeeds() async throws {
        let nobody = try #require(getpwnam("nobody")).pointee.pw_uid
        let installed = try await Installed("--owner", "nobody")
        for name in ["", "twoefay.yaml", "master.key", "server.key", "device-ca.key", "ca.pem", "twoefay.db"] {
            #expect(Self.owner(of: installed.directory("relay/\(name)")) == nobody, "\(name)")
        }
        // The relay signs with neither of them.
        for name in ["ca.key", "website-ca.key"] {
            #expect(Self.owner(of: installed.directory("relay/\(name)")) == 0, "\(name)")
        }
    }

    /// The user of a directory may replace a file by a link to one of root.
    @Test(.enabled(if: getuid() == 0, "only root can give files away")) func linkIsNotFollowed() throws {
        let place = try TemporaryDirectory()
        try TextFile.write("secret", to: place("shadow"))
        try #require(symlink(place("shadow"), place("twoefay.db")) == 0)
        try FileOwner("nobody").take(place("twoefay.db"))
        #expect(Self.owner(of: place("shadow")) == 0)
        try FileOwner("nobody").take(place("shadow"))
        #expect(Self.owner(of: place("shadow")) == getpwnam("nobody")?.pointee.pw_uid)
    }

    @Test func unknownOwnerIsRefused() async throws {
        let directory = try TemporaryDirectory()
        let ended = try await BuiltProgram.twoefay("init", directory("relay"), "--owner", "no-such-user")
        #expect(ended.status == 2 && ended.errors.contains("no user no-such-user"), "\(ended.errors)")
        #expect(directory.names.isEmpty)
    }
}
