import CLinux
import Glibc
import TestSupport
import Testing

@testable import Daemon

@Suite struct InstallationFileTests {
    @Test func fileIsWrittenWithItsModeAndReadBack() throws {
        let directory = try TemporaryDirectory()
        let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0) }
        try Files.create("\(directory.path)/a", bytes, mode: 0o600)
        try Files.create("\(directory.path)/b", [], mode: 0o644)
        #expect(TemporaryDirectory.mode(of: "\(directory.path)/a") == 0o600)
        #expect(TemporaryDirectory.mode(of: "\(directory.path)/b") == 0o644)
        #expect(try Files.read("\(directory.path)/a") == bytes)
        #expect(try Files.read("\(directory.path)/b") == [])
    }

    @Test func existingFileIsNotOverwritten() throws {
        let directory = try TemporaryDirectory()
        try Files.create("\(directory.path)/a", [1], mode: 0o600)
        let problem = #expect(throws: Files.Problem.self) { try Files.create("\(directory.path)/a", [2], mode: 0o600) }
        #expect(problem?.exists == true)
        #expect(try Files.read("\(directory.path)/a") == [1])
    }

    @Test func fileIsReplacedAtomically() throws {
        let directory = try TemporaryDirectory()
        try Files.replace(directory("a"), [1], mode: 0o600)
        try Files.replace(directory("a"), [2, 3], mode: 0o600)
        #expect(try Files.read(directory("a")) == [2, 3])
        #expect(TemporaryDirectory.mode(of: directory("a")) == 0o600)
        #expect(try Files.names(in: directory.path) == ["a"])
        #expect(throws: Files.Problem.self) { try Files.replace(directory("b/c"), [1], mode: 0o600) }
        try Files.makeDirectories(directory("b/c/d"), mode: 0o700)
        try Files.makeDirectories(directory("b/c/d"), mode: 0o700)
        #expect(TemporaryDirectory.mode(of: directory("b/c/d")) == 0o700)
        #expect(throws: Files.Problem.self) { try Files.makeDirectories(directory("a/b"), mode: 0o700) }
    }

    /// Root rewrites a file of the relay's account, in a directory where that account can plant links.
    @Test(.enabled(if: getuid() == 0, "only root can give files away"))
    func rewrittenFileKeepsItsOwnerAndFollowsNoLink() throws {
        let directory = try TemporaryDirectory()
        try Files.create(directory("key"), [1], mode: 0o640)
        try Files.create(directory("secret"), [7], mode: 0o600)
        try #require(chown(directory("key"), 5, 60) == 0)
        try #require(symlink(directory("secret"), directory("key.\(getpid())")) == 0)
        try Files.rewrite(directory("key"), [2])
        var state = stat()
        #expect(lstat(directory("key"), &state) == 0 && state.st_mode == S_IFREG | 0o640)
        #expect(state.st_uid == 5 && state.st_gid == 60)
        #expect(try Files.read(directory("key")) == [2])
        #expect(lstat(directory("secret"), &state) == 0 && state.st_uid == 0)
        #expect(try Files.read(directory("secret")) == [7])
        #expect(Set(directory.names) == ["key", "secret"])
    }

    @Test func secretFileReadableByOthersIsRefused() throws {
        let directory = try TemporaryDirectory()
        try Files.create("\(directory.path)/open", [1], mode: 0o640)
        let problem = #expect(throws: Files.Problem.self) { try Files.readPrivate("\(directory.path)/open") }
        #expect(problem?.text.contains("chmod 600") == true)
        try Files.create("\(directory.path)/shut", [1], mode: 0o600)
        #expect(try Files.readPrivate("\(directory.path)/shut") == [1])
    }

    @Test func missingFileIsNamed() throws {
        let problem = #expect(throws: Files.Problem.self) { try Files.read("/nowhere/at/all") }
        #expect(problem?.text == "/nowhere/at/all: No such file or directory")
    }

    @Test func relativePathsResolveToTheSettingsDirectory() {
        #expect(Files.resolve("a", in: "/etc/x") == "/etc/x/a")
        #expect(Files.resolve("/a", in: "/etc/x") == "/a")
        #expect(Files.directory(of: "/etc/x/y.yaml") == "/etc/x")
        #expect(Files.directory(of: "/y.yaml") == "/")
        #expect(Files.directory(of: "y.yaml") == ".")
    }
}
