import Glibc
import TestSupport
import Testing

@testable import Hardening

@Suite struct LandlockTests {
    @Test(.enabled(if: !Sanitizer.isOn && SystemKernel().landlockVersion != nil))
    func filesOutsideTheRulesCannotBeOpened() async throws {
        let directory = try TemporaryDirectory()
        for name in ["in", "out"] { mkdir(directory(name), 0o700) }
        await #expect(processExitsWith: .success) { [path = directory.path as String] in
            let (inside, outside) = ("\(path)/in", "\(path)/out")
            var process = RestrictedProcess(changing: inside)
            process.check("a new file inside", open("\(inside)/new", O_CREAT | O_RDWR, 0o600) >= 0)
            process.check("its removal", unlink("\(inside)/new") == 0)
            process.check("the resolver's files", open("/etc/nsswitch.conf", O_RDONLY) >= 0)
            process.check("chance", open("/dev/urandom", O_RDONLY) >= 0)
            process.refuses("a new file outside", with: EACCES) { open("\(outside)/new", O_CREAT | O_RDWR, 0o600) >= 0 }
            process.refuses("a directory outside", with: EACCES) { open(outside, O_RDONLY) >= 0 }
            process.refuses("a new file of the system", with: EACCES) { open("/etc/new", O_CREAT | O_RDWR, 0o600) >= 0 }
            process.end()
        }
    }

    /// certbot renews in this way: a link changes to another file in the same directory, or a file
    /// is replaced by renaming.
    @Test func symlinkAllowsItsDirectoryAndThatOfItsTarget() throws {
        let directory = try TemporaryDirectory()
        for name in ["live", "archive", "else"] { mkdir(directory(name), 0o700) }
        try TextFile.write("1", to: directory("archive/key1"))
        symlink("../archive/key1", directory("live/key"))
        var rules = LandlockRules()
        rules.allow(directory("live/key"), .reading)
        #expect(rules.allows(directory("live/key"), .reading))
        #expect(rules.allows(directory("archive/key2"), .reading))
        #expect(!rules.allows(directory("else/key"), .reading))
        #expect(!rules.allows(directory("live/key"), .changing))
        // The link now leads to another directory.
        unlink(directory("live/key"))
        symlink("../else/key", directory("live/key"))
        #expect(!rules.allows(directory("live/key"), .reading))
        #expect(!rules.allows(directory("nowhere/key"), .reading))
    }

    @Test func fileInTheRootDirectoryDoesNotAllowEverything() {
        var rules = LandlockRules()
        rules.allow("/hardening-test.key", .reading)
        #expect(rules.allows("/hardening-test.key", .reading))
        #expect(!rules.allows("/etc/passwd", .reading))
    }
}
