import Crypto
import Log
import Relay
import TestSupport
import Testing
import World

@testable import Daemon

/// The steps that replace the server's authority, by their files.
@Suite struct ServerReplacementTests {
    private let directory: TemporaryDirectory
    private let settings: Settings
    private let now: Timestamp
    private var path: String { directory.path }

    init() throws {
        directory = try TemporaryDirectory()
        let time = TestTime()
        now = time.now()
        let installation = try NewInstallation(directory: directory.path)
        try installation.create(time: time, log: Log(time: time, sink: MemorySink()))
        settings = installation.settings
    }

    private func refusal(_ step: () throws(Failure) -> Void) -> String? {
        do throws(Failure) {
            try step()
            return nil
        } catch {
            return error.message
        }
    }

    @Test func statementAfterTheSwitchIsByTheFormerAuthority() throws {
        let replacement = ServerReplacement(settings, keyPath: nil)
        let first = try replacement.announce(days: 1, at: now)
        _ = try replacement.change(at: now)
        // The statement has expired: phones that pin only the former authority must still get one.
        let later = now + .seconds(2 * 86_400)
        let again = try replacement.announce(days: 5, at: later)
        #expect(again.pins == first.pins && again.signer == first.signer)
        #expect(again.refusal(by: again.audience, pinned: [first.signer], last: first.sequence, at: later) == nil)
        #expect(again.expiresAt == Timestamp(seconds: later.seconds) + .seconds(5 * 86_400))
        #expect(refusal { () throws(Failure) in _ = try replacement.withdraw(days: 5, at: later) } != nil)
        #expect(try replacement.underWay() == again)
        let last = try replacement.finish(at: later)
        #expect(last.pins == [first.newest] && last.signer == first.newest)
    }

    @Test func withdrawnAuthorityIsNotAnnouncedAgain() throws {
        let replacement = ServerReplacement(settings, keyPath: nil)
        let first = try replacement.announce(days: 30, at: now)
        let withdrawn = try replacement.withdraw(days: 1, at: now)
        #expect(withdrawn.pins == [first.signer] && withdrawn.sequence > first.sequence)
        // It lives as long as the statement that it takes back.
        #expect(withdrawn.expiresAt == first.expiresAt)
        #expect(!Files.exists(path + "/ca-next.key") && !Files.exists(path + "/ca-next.pem"))
        let second = try replacement.announce(days: 30, at: now)
        #expect(second.signer == first.signer && second.newest != first.newest)
    }

    @Test func keysStayBesideTheKeyOfTheAuthority() throws {
        let drive = try TemporaryDirectory()
        try TextFile.write(try TextFile.bytes(path + "/ca.key"), to: drive.path + "/ca.key")
        Files.remove(path + "/ca.key")
        let replacement = ServerReplacement(settings, keyPath: drive.path + "/ca.key")
        _ = try replacement.announce(days: 1, at: now)
        _ = try replacement.change(at: now)
        #expect(Files.exists(drive.path + "/ca-former.key"))
        for name in ["ca.key", "ca-next.key", "ca-former.key"] { #expect(!Files.exists("\(path)/\(name)"), "\(name)") }
        _ = try replacement.finish(at: now)
        #expect(!Files.exists(drive.path + "/ca-former.key"))
    }

    /// The power fails after the authority's key was written, and before or after its certificate.
    @Test(arguments: [false, true]) func interruptedSwitchIsRepeated(_ hasCertificate: Bool) throws {
        let replacement = ServerReplacement(settings, keyPath: nil)
        let statement = try replacement.announce(days: 1, at: now)
        let names = ["ca.pem", "ca-next.pem", "ca-next.key"]
        let before = try names.map { try TextFile.bytes("\(path)/\($0)") }
        _ = try replacement.change(at: now)
        for (name, bytes) in zip(names, before) where name != "ca.pem" || !hasCertificate {
            try TextFile.write(bytes, to: "\(path)/\(name)")
        }
        #expect(
            refusal { () throws(Failure) in _ = try replacement.announce(days: 1, at: now) }
                == "'twoefay server switch' was interrupted")
        #expect(refusal { () throws(Failure) in _ = try replacement.finish(at: now) } != nil)
        #expect(try replacement.underWay() == statement)
        _ = try replacement.change(at: now)
        #expect(try ServerAuthority.load(settings, keyPath: nil).keyThumbprint == statement.newest)
        #expect(!Files.exists(path + "/ca-next.key"))
        #expect(try replacement.finish(at: now).signer == statement.newest)
    }

    @Test func expiredStatementIsNoProblem() throws {
        var named = settings
        named.tls.pins = FileName("pins.jwt")
        _ = try ServerReplacement(settings, keyPath: nil).announce(days: 1, at: now)
        // Another authority, as after a theft of the key.
        let other = try CertificateAuthority.create(commonName: "Other", days: 10, at: now)
        for (time, problems) in [(now, 1), (now + .seconds(86_401), 0)] {
            var reader = LoadedFilesReader(settings: named, now: time)
            #expect(reader.pins(other.certificate) == nil || problems == 1)
            #expect(reader.problems.count == problems, "\(reader.problems)")
        }
    }
}
