import CLinux
import Crypto
import Glibc
import Log
import Relay
import TestSupport
import Testing
import World

@testable import Daemon

/// The steps that replace the authority of websites or phones, by their files.
@Suite struct AuthorityReplacementTests {
    private static let day = 86_400
    private let directory: TemporaryDirectory
    private let settings: Settings
    /// The time of the authorities that `init` has made.
    private let made: Timestamp

    init() throws {
        directory = try TemporaryDirectory()
        let time = TestTime()
        made = time.now()
        let installation = try NewInstallation(directory: directory.path)
        try installation.create(time: time, log: Log(time: time, sink: MemorySink()))
        settings = installation.settings
    }

    /// Sets the time of the last change of a file.
    private func change(_ path: String, at time: Timestamp) {
        let moment = timespec(tv_sec: Int(time.seconds), tv_nsec: 0)
        #expect(utimensat(AT_FDCWD, path, [moment, moment], 0) == 0)
    }

    @Test func phonesHaveTheirTimeAfterEachChange() throws {
        let replacement = try AuthorityReplacement(.phones, settings)
        let life = Duration.seconds(Self.day * (Relay.certificateDays + 1))
        let present = try #require(try replacement.authorities().first)
        let begun = made + .seconds(500 * Self.day)
        let next = try replacement.begin(at: begun)
        #expect(try replacement.authorities().map(\.serial) == [next.serial, present.serial])
        change(replacement.certificatesPath, at: begun)
        #expect(try replacement.lastPhoneExpiry() == begun + life)
        // The newer authority has signed until now, although the one that signs again is old.
        let before = SystemTime().now()
        let former = try replacement.revert()
        #expect(try replacement.authorities().map(\.serial) == [former.serial, next.serial])
        #expect(try replacement.lastPhoneExpiry() >= Timestamp(seconds: before.seconds) + life)
        #expect(try replacement.finish().serial == next.serial)
        #expect(throws: Failure.self) { try replacement.lastPhoneExpiry() }
    }

    @Test func formerAuthoritySignsAgain() throws {
        let replacement = try AuthorityReplacement(.websites, settings)
        let key = try TextFile.bytes(replacement.keyPath)
        let next = try replacement.begin(at: made)
        #expect(throws: Failure.self) { try replacement.begin(at: made) }
        let former = try replacement.revert()
        #expect(try TextFile.bytes(replacement.keyPath) == key)
        #expect(former.serial != next.serial)
        #expect(try WebsiteAuthority.current(settings) == former.spkiThumbprint)
        #expect(try replacement.finish().serial == next.serial)
        #expect(!Files.exists(replacement.formerKeyPath))
        #expect(throws: Failure.self) { try replacement.revert() }
    }

    @Test func authorityOutsideOfTheInstallationIsLeftAlone() throws {
        var outside = settings
        outside.command.words = ["/usr/bin/issue"]
        #expect(throws: Failure.self) { try AuthorityReplacement(.phones, outside) }
        #expect(try AuthorityReplacement(.websites, outside).authorities().count == 1)
    }
}
