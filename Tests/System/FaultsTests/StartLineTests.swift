import Glibc
import TestSupport
import Testing

@Suite(.mayBlock) struct StartLineTests {
    /// Whoever reads the logs of several relays sees which one began, where, and from which build.
    @Test func startNamesRelayHostAndVersion() async throws {
        let relay = try await RunningRelay.start()
        let line = try #require(relay.log.split(separator: "\n").first { $0.contains("event=daemon.started") })
        let fields = Set(line.split(separator: " ").map(String.init))
        let version = try await BuiltProgram.twoefayd("--version").output.split(separator: "\n").first
        var names = utsname()
        uname(&names)
        let host = withUnsafeBytes(of: names.nodename) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        #expect(fields.contains("version=\(version ?? "none")"), "\(line)")
        #expect(fields.contains("host=\(host)"), "\(line)")
        let id = try #require(fields.first { $0.hasPrefix("relay=") }?.dropFirst("relay=".count))
        #expect(try relay.count("SELECT count(*) FROM relay WHERE lower(hex(id)) = '\(id)'") == 1, "\(line)")
    }
}
