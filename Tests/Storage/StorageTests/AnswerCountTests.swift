import Bytes
import Domain
import Relay
import TestSupport
import Testing
import World

@testable import Storage

extension HarmedServerTests {
    /// A connection that ends at the COMMIT of a phone's answer: the answer is counted once.
    struct AnswerCountTests {
        private static let counted = Statement(
            "SELECT sum(login_successes) AS successes, sum(login_failures) AS failures FROM device")

        @Test(arguments: [CutProxy.Cut.before, .after]) func answerIsCountedOnce(cut: CutProxy.Cut) async throws {
            let server = try MariaDBServer.shared()
            let proxy = try CutProxy(to: server.port)
            defer { proxy.close() }
            let url = try StorageURL(server.url(try server.freshDatabase(), port: proxy.port))
            let store = try TestDatabase(url: url, migrations: Migration.all).open(options: .patient)
            defer { store.close() }
            try await Sample.fill(store, at: url)
            let operations = Operations(
                masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SystemRandomness())
            for number in 1...3 {
                proxy.cutNextCommit(cut)
                #expect(try await Sample.approve(number, on: store, as: operations.new()) != nil)
                let row = try await store.run(Script("counted", reads: [Self.counted()])).row(0)
                #expect(try row.integer("successes") == Int64(number) && row.integer("failures") == 0)
            }
        }
    }
}
