import Bytes
import Crypto
import Curl
import EventLoop
import Log
import TestSupport
import Testing

@testable import Daemon

/// The webhook courier stays in use, with its connections, unless its own settings change.
@Suite struct ActiveWebhookCourierTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates() }

    private func material(
        _ ranges: [String] = ["10.0.0.0/8"], authority: [UInt8]? = [1], shown: WebClientOptions.ClientCertificate?
    ) throws -> LoadedFiles.WebhookFiles {
        LoadedFiles.WebhookFiles(
            allowed: try ranges.map { try #require(AddressRange($0)) }, authority: authority, certificate: shown)
    }

    private func issued() throws -> WebClientOptions.ClientCertificate {
        let issued = try certificates.client()
        return WebClientOptions.ClientCertificate(chain: try issued.certificatePEM(), key: try issued.keyPEM())
    }

    @Test func unchangedCourierIsKeptOnReload() throws {
        let (one, other) = (try issued(), try issued())
        let callers = ActiveWebhookCourier(try material(shown: one), time: TestTime(), log: Log(sink: MemorySink()))
        let first = callers.courier
        callers.replace(try material(shown: .init(chain: one.chain, key: Secret(one.key.reveal()))))
        #expect(callers.courier === first)
        let changes = [
            try material([], shown: one), try material(authority: nil, shown: one), try material(shown: nil),
            try material(shown: other), try material(shown: .init(chain: one.chain, key: other.key)),
        ]
        for change in changes {
            let before = callers.courier
            callers.replace(change)
            #expect(callers.courier !== before)
        }
        callers.close()
    }
}
