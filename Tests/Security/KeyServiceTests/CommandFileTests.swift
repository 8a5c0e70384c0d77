import Glibc
import TestSupport
import Testing

@testable import KeyService

/// Who could replace the program of the command.
@Suite struct CommandFileTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func file(_ mode: mode_t) throws -> String {
        try TextFile.write("#!/bin/sh\n", to: place("issue"))
        chmod(place("issue"), mode)
        return place("issue")
    }

    @Test(arguments: [0o755, 0o700, 0o555]) func ownFileIsAccepted(mode: mode_t) throws {
        #expect(CommandFile.fault(try file(mode)) == nil)
        #expect(CommandFile.fault("/bin/sh") == nil)
    }

    @Test func wrongFileIsNamedWithItsRemedy() throws {
        #expect(CommandFile.fault(place("nothing")) == "\(place("nothing")): No such file or directory")
        #expect(CommandFile.fault(place.path) == "\(place.path) is not a file")
        for mode in [0o775, 0o757, 0o777] as [mode_t] {
            let path = try file(mode)
            #expect(CommandFile.fault(path) == "\(path) can be changed by other users: chmod go-w \(path)")
        }
        let plain = try file(0o600)
        #expect(CommandFile.fault(plain)?.hasSuffix("chmod 755 \(plain)") == true)
    }

    @Test(.enabled(if: getuid() == 0, "only root can give a file to another user"))
    func fileOfAnotherUserIsRefused() throws {
        let path = try file(0o755)
        try #require(chown(path, 12345, 12345) == 0)
        #expect(CommandFile.fault(path)?.contains("belongs to the user 12345") == true)
    }

    @Test func directoryOfOthersIsAWarning() throws {
        let path = try file(0o755)
        #expect(CommandFile.warnings(path).filter { $0.hasPrefix(place.path) } == [])
        chmod(place.path, 0o777)
        #expect(CommandFile.warnings(path).count { $0.contains(" could replace the command \(path)") } >= 1)
        // Nobody else can replace a file there.
        chmod(place.path, 0o1777)
        #expect(CommandFile.warnings(path).filter { $0.hasPrefix(place.path) } == [])
    }
}
