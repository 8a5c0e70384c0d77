import Glibc
import Hardening
import Log
import Synchronization
import TestSupport
import Testing

@testable import Daemon

private struct OldKernel: HardeningKernel {
    var landlockVersion: Int? { nil }
    var filterShortcoming: String? { "the kernel has no seccomp filter" }

    func restrictFiles(_ rules: LandlockRules) throws(HardeningFault) { throw HardeningFault("never asked") }
    func install(_ filter: SyscallFilter) throws(HardeningFault) { throw HardeningFault("never asked") }
}

/// A kernel with all features, which does not change this process.
private struct NewKernel: HardeningKernel {
    var landlockVersion: Int? { 5 }
    var filterShortcoming: String? { nil }

    func restrictFiles(_ rules: LandlockRules) throws(HardeningFault) {}
    func install(_ filter: SyscallFilter) throws(HardeningFault) {}
}

/// The setting `hardening` on complete and incomplete kernels.
@Suite struct HardeningSettingsTests {
    private let log = Log(minimum: .error)

    private func settings(_ level: String, in directory: String) throws -> Settings {
        let text = "origin: https://a.example\nlisten: 127.0.0.1:0\nstorage: sqlite:data/t.db\nhardening: \(level)\n"
        return try SettingsReader.read(Array(text.utf8), file: "\(directory)/twoefay.yaml")
    }

    @Test func requiredHardeningRefusesAnIncompleteKernel() throws {
        let settings = try settings("required", in: "/nowhere")
        let failure = #expect(throws: Failure.self) { try settings.restrictProcess(on: OldKernel(), log: log) }
        let message = failure?.message ?? ""
        #expect(message.contains("landlock: the kernel has no Landlock"), "\(message)")
        #expect(message.contains("seccomp: the kernel has no seccomp filter"), "\(message)")
        #expect(throws: Failure.self) { try settings.requireHardening(of: OldKernel()) }
        #expect(try settings.restrictProcess(on: NewKernel(), log: log)?.missing.isEmpty == true)
    }

    @Test func hardeningOnContinuesWithAWarning() throws {
        let settings = try settings("on", in: "/nowhere")
        let applied = try #require(try settings.restrictProcess(on: OldKernel(), log: log))
        #expect(applied.missing.count == 2 && applied.fault != nil)
        #expect(settings.hardeningReport(OldKernel()).line.contains("incomplete"))
        #expect(settings.hardeningReport(NewKernel()).line.contains("is complete"))
        #expect(try self.settings("off", in: "/nowhere").restrictProcess(on: NewKernel(), log: log) == nil)
        #expect(throws: SettingsReader.Problems.self) { try self.settings("perhaps", in: "/nowhere") }
    }

    @Test func landlockRulesCoverEveryConfiguredFile() throws {
        var settings = try settings("on", in: "/i")
        settings.tls.websitesKey = FileName("offline/website-ca.key")
        settings.mail.passwordFile = FileName("secrets/mail")
        settings.templates = FileName("/t")
        settings.push.key = FileName("apns/key.p8")
        let paths = settings.openedPaths
        for path in ["/i", "/i/server.pem", "/i/master.key", "/i/secrets/mail", "/t", "/i/apns/key.p8"] {
            #expect(paths.contains(OpenedPath(path: path, access: .reading)), "\(path)")
        }
        #expect(paths.contains(OpenedPath(path: "/i/data/t.db", access: .changing)))
        #expect(!paths.contains { $0.path.contains("offline") })
        settings.tls.websitesRenewal = .on
        #expect(settings.openedPaths.contains(OpenedPath(path: "/i/offline/website-ca.key", access: .reading)))
        // The key service, another process, holds these keys.
        settings.masterKey = FileName("secret/master.key")
        settings.tls.phonesKey = FileName("secret/phones.key")
        settings.token.module = FileName("secret/module.so")
        settings.token.pinFile = FileName("secret/pin")
        settings.keys = try SocketName(settingsText: "unix:secret/socket")
        #expect(!settings.openedPaths.contains { $0.path.contains("/secret/") && !$0.path.hasSuffix("/mail") })
        #expect(!settings.openedPaths.contains { $0.path.contains("offline") })
        let (place, elsewhere) = (try TemporaryDirectory(), try TemporaryDirectory())
        for (renewal, isOpened) in [(Settings.Switch.on, true), (.off, false)] {
            settings.tls.websitesKey = FileName(elsewhere("website-ca.key"))
            try TextFile.write("x", to: elsewhere("website-ca.key"))
            settings.tls.websitesRenewal = renewal
            let rules = settings.keyServiceRules(socket: place("socket"))
            #expect(rules.allows(elsewhere("website-ca.key"), .reading) == isOpened)
        }
        let rules = settings.keyServiceRules(socket: place("socket"))
        #expect(rules.allows(place("socket"), .changing))
        #expect(!rules.allows(elsewhere("server.key"), .reading))
    }

    @Test func settingsOutsideTheRulesNeedARestart() throws {
        let directory = try TemporaryDirectory()
        for name in ["i", "i/data", "else"] { mkdir(directory(name), 0o700) }
        for name in ["i/mail.password", "else/mail.password"] { try TextFile.write("x", to: directory(name)) }
        var settings = try settings("on", in: directory("i"))
        let applied = try #require(try settings.restrictProcess(on: NewKernel(), log: log))
        settings.mail.passwordFile = FileName("mail.password")
        try applied.requireReach(of: settings)
        settings.mail.passwordFile = FileName(directory("else/mail.password"))
        let failure = #expect(throws: Failure.self) { try applied.requireReach(of: settings) }
        #expect(failure?.message.contains("else/mail.password needs a restart") == true)
        // A process without rules can read every file.
        try Hardening.apply(.system, on: OldKernel()).requireReach(of: settings)
    }
}
