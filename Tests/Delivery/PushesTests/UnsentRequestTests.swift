import Crypto
import DeliveryOutcomes
import EventLoop
import FakePushServices
import HTTP
import HTTP2
import TLS
import TestSupport
import Testing
import World

@testable import Pushes

/// Requests that were never written, so the service certainly does not have them.
@Suite(.serialized) struct UnsentRequestTests {
    @Test func unwrittenRequestCountsAsUnsent() async throws {
        try await Rig.with { rig in
            let tls = try TLSClientContext(roots: .pem(try rig.team.authority.certificatePEM()))
            let (loop, port, log) = (rig.loops[1], rig.apple.port, rig.senderLog)
            let address = try #require(SocketAddress(host: "127.0.0.1", port: port))
            let result: Result<Response, RequestFailure> = await loop.perform {
                let client = HTTP2Client(loop: loop, host: "127.0.0.1", port: port, tls: tls, log: log)
                do throws(ConnectionFailure) { try await client.connect(to: [address]) } catch {
                    return .failure(.ambiguous("not connected: \(error)"))
                }
                return await withUnsafeContinuation { continuation in
                    let form = APNsRequest.form(topic: "com.example.app", authority: "127.0.0.1", authorization: nil)
                    let stream = client.begin(APNsRequest.own(Sample.push()), of: form) {
                        continuation.resume(returning: $0)
                    }
                    #expect(stream != nil)
                    // In the same turn, so nothing has been written yet.
                    client.close()
                }
            }
            guard case .failure(.notSent) = result else {
                Issue.record("it has never left: \(result)")
                return
            }
        }
    }

    @Test func unsentPushIsSentOnAnotherConnection() throws {
        let stand = try PoolBench()
        stand.enter { stand.loopState.connectEagerly() }
        stand.open()
        let wire = try stand.wire()
        let sent = stand.send()
        wire.isBlocked = true
        let unsent = stand.send()
        stand.enter { wire.close() }
        #expect(stand.outcomes(sent) == [.ambiguous("closed")])
        #expect(stand.outcomes(unsent) == [])
        stand.open()
        try stand.answer(stand.wire())
        #expect(stand.outcomes(unsent) == [.accepted(by: nil)])
    }

    @Test func unsentPushCanExpire() throws {
        let stand = try PoolBench()
        stand.enter { stand.loopState.connectEagerly() }
        stand.open()
        try stand.wire().isBlocked = true
        let push = stand.send(lives: .seconds(1))
        stand.pass(.seconds(2))
        #expect(stand.outcomes(push) == [.retry(after: .seconds(1), reason: "no stream in time")])
    }
}
