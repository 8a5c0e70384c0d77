import Crypto
import Glibc
import TestSupport
import Testing

/// deploy/haproxy.cfg, by the program that it is for.
@Suite(.mayBlock) struct BalancerTests {
    private static let program = "/usr/sbin/haproxy"
    static let isInstalled = access(program, X_OK) == 0

    private static let settings =
        #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined() + "/deploy/haproxy.cfg"

    @Test(.enabled(if: isInstalled)) func theExampleForHAProxyIsRight() async throws {
        let directory = try TemporaryDirectory()
        try TextFile.write(try TestCertificates().websites.certificatePEM(), to: directory("ca.pem"))
        let environment = ["TWOEFAY_CA": directory("ca.pem"), "TWOEFAY_PROXY_SOCKET": directory("socket")]
        let right = try await Child(Self.program, ["-c", "-f", Self.settings], environment: environment).ended()
        #expect(right.status == 0, "\(right.errors)")
        #expect(!(right.output + right.errors).lowercased().contains("warning"), "\(right.errors)")
        // It does look: without the authority nothing can be checked.
        var without = environment
        without["TWOEFAY_CA"] = directory("nothing.pem")
        let wrong = try await Child(Self.program, ["-c", "-f", Self.settings], environment: without).ended()
        #expect(wrong.status != 0)
    }
}
