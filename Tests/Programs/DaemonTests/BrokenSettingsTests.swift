import Bytes
import Crypto
import Glibc
import Log
import TestSupport
import Testing
import World

@testable import Daemon

/// Each kind of fault in the settings, as `twoefayd --check` and the start report it: one line with
/// file, line, column and what is wrong, and what to do next.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct BrokenSettingsTests {
    /// An installation with further files, in which all kinds are tried.
    private struct Site {
        let directory: TemporaryDirectory
        var path: String { directory("relay") }

        init() throws {
            directory = try TemporaryDirectory()
            let log = Log(minimum: .error, sink: MemorySink())
            try NewInstallation(directory: directory("relay")).create(log: log)
            let now = SystemTime().now()
            let expired = try CertificateAuthority.create(commonName: "old", days: 1, at: now - .seconds(5 * 86_400))
            try TextFile.write(expired.certificatePEM(), to: directory("relay/expired.pem"))
            try TextFile.write("", to: directory("relay/empty.pem"))
            try TextFile.write("secret-1\n", to: directory("relay/password"))
            try TextFile.write(TextFile.bytes(directory("relay/ca.pem")), to: directory("relay/ca.crt"))
            try TextFile.write(TextFile.bytes(directory("relay/server.key")), to: directory("relay/open.key"))
            chmod(directory("relay/open.key"), 0o644)
        }
    }

    private static let required = """
        origin: https://localhost:8080
        listen: 127.0.0.1:8080
        storage: sqlite:twoefay.db

        """

    private func text(_ broken: BrokenSettings) -> String {
        broken.lines.contains("listen:") && broken.lines.contains("origin:")
            ? broken.lines + "\n" : Self.required + broken.lines + "\n"
    }

    /// Reads settings as the daemon and its `--check` do.
    private func failure(_ text: String, at path: String) throws -> Failure? {
        try TextFile.write(text, to: path)
        guard case .run(let invocation) = try DaemonProgram.reader.read(["--config", path, "--check"]) else {
            return nil
        }
        do throws(Failure) {
            _ = try Settings.loadWithFiles(invocation, at: SystemTime().now())
            return nil
        } catch {
            return error
        }
    }

    @Test func everyKindIsReportedWithItsPosition() throws {
        let site = try Site()
        for broken in BrokenSettings.all { try check(broken, in: site) }
    }

    private func check(_ broken: BrokenSettings, in site: Site) throws {
        let marked = text(broken)
        let before = try #require(marked.split(separator: "▸", omittingEmptySubsequences: false).first)
        #expect(marked.count { $0 == "▸" } == 1, "\(broken.kind)")
        let lines = before.split(separator: "\n", omittingEmptySubsequences: false)
        let path = site.directory("relay/t.yaml")
        let place = "\(path):\(lines.count):\((lines.last?.count ?? 0) + 1): "
        let failure = try #require(try failure(marked.filter { $0 != "▸" }, at: path), "\(broken.kind)")
        let expected = place + broken.message.replacing("DIR", with: site.path)
        let said = failure.message.split(separator: "\n").map(String.init)
        #expect(said.contains { $0.hasPrefix(expected) }, "\(broken.kind): \(expected) is not in \(failure.message)")
        // A fault has one line, besides the two headings.
        let positions = said.filter { $0.hasPrefix(path + ":") }
        #expect(positions.count == 1, "\(broken.kind): \(failure.message)")
        #expect(failure.code == .failed && failure.next.contains("docs/operators/"), "\(failure.next)")
    }

    @Test func thereAreAsManyKindsAsPromised() throws {
        #expect(BrokenSettings.all.count >= BrokenSettings.promised)
        #expect(Set(BrokenSettings.all.map(\.kind)).count == BrokenSettings.all.count)
        // Without the fault, the same installation is accepted.
        let site = try Site()
        #expect(try failure(Self.required, at: site.directory("relay/good.yaml")) == nil)
    }

    /// A file that the settings do not name has no position, so its key is named.
    @Test func faultOfADefaultFileNamesItsKey() throws {
        let directory = try TemporaryDirectory()
        try NewInstallation(directory: directory("relay")).create(log: Log(minimum: .error, sink: MemorySink()))
        unlink(directory("relay/server.key"))
        let path = directory("relay/plain.yaml")
        let said = try #require(try failure(Self.required, at: path)).message
        #expect(said == "tls.key: \(directory("relay/server.key")): No such file or directory")
    }

    /// Two settings name the file, and either may be the wrong one.
    @Test func faultOfAFileThatIsNamedTwiceHasBothPositions() throws {
        let site = try Site()
        let path = site.directory("relay/twice.yaml")
        let said = try #require(try failure(Self.required + "tls:\n  ca: ca.crt\n  revoked: ca.crt\n", at: path))
            .message
        #expect(said.contains("\(path):5:7, \(path):6:12: \(site.path)/ca.crt: holds no revocation list"), "\(said)")
    }
}
