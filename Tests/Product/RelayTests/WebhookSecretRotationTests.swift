import Bytes
import Crypto
import Domain
import Log
import Storage
import TestSupport
import Testing

@testable import Relay

/// A change of the master key: the secrets of webhooks open before and after it.
@Suite(.timeLimit(.minutes(10)), .mayBlock) struct WebhookSecretRotationTests {
    private static let insert = Statement(
        """
        INSERT INTO webhook_endpoint VALUES (:website, :secrets, '1', NULL, 'active', NULL, NULL, NULL, 0, :operation,
        '2026-11-22 09:00:00.000', NULL)
        """)
    private static let secrets = Statement(
        "SELECT website_id, secrets, sealed_by FROM webhook_endpoint ORDER BY website_id")
    private static let old = Sealer.Key(id: "1", key: Secret(Array(repeating: 7, count: 32)))
    private static let new = Sealer.Key(id: "2", key: Secret(Array(repeating: 8, count: 32)))

    private func rows(_ rig: RelayRig) async throws -> [Row] {
        let store = rig.store
        return try await rig.on { _ in
            Array(try await store.run(Script("rows", reads: [Self.secrets()]))[0])
        }
    }

    @Test(arguments: StoreKind.all) func webhookSecretsAreResealedUnderTheNewKey(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let before = try Sealer(keys: [Self.old])
        var websites: [WebsiteID] = []
        for number in 0..<120 { websites.append(try await rig.website("shop-\(number)").id) }
        // A secret from another website's row does not open.
        let foreign = websites[7]
        var steps: [BoundStatement] = []
        for website in websites {
            let sealed = try before.seal(
                Array("whsec_\(website)".utf8),
                associated: WebhookSecretSeal.associated(website: website == foreign ? websites[8] : website))
            steps.append(
                Self.insert(website: .blob(website.bytes), secrets: .blob(sealed), operation: .blob(website.bytes)))
        }
        let (store, script) = (rig.store, Script("fill", writes: steps))
        try await rig.on { _ in _ = try await store.run(script) }

        rig.relay.replace(try Sealer(keys: [Self.new, Self.old]))
        for _ in 0..<2 { try await rig.on { _ in await rig.relay.reseal() } }
        let after = try Sealer(keys: [Self.new])
        for row in try await rows(rig) {
            let website = try #require(WebsiteID(try row.blob("website_id")))
            let (sealed, key) = (try row.blob("secrets"), try row.text("sealed_by"))
            let associated = WebhookSecretSeal.associated(website: website)
            if website == foreign {
                #expect(key == "1")
            } else {
                #expect(
                    key == "2" && (try? after.open(sealed, associated: associated)) == Array("whsec_\(website)".utf8))
            }
        }
        let lines = rig.sink.lines
        #expect(lines.count { $0.contains("event=webhook.resealed") && $0.contains("count=119") } == 1)
        #expect(lines.count { $0.contains("event=webhook.stuck") && $0.contains("count=1") } == 2)
    }
}
