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

/// The shutdown of a pool, which leaves nothing behind.
@Suite struct PoolShutdownTests {
    @Test func pushReturnedDuringShutdownIsRefused() throws {
        let stand = try PoolBench()
        stand.enter { stand.loopState.connectEagerly() }
        stand.open()
        let wire = try stand.wire()
        wire.isBlocked = true
        let push = stand.send()
        #expect(stand.outcomes(push) == [])
        stand.enter { stand.loopState.close() }
        #expect(stand.outcomes(push) == [.retry(after: .seconds(1), reason: "closed")])
        #expect(stand.wires().count == 1, "and no connection is opened for it")
        let next = stand.send()
        #expect(stand.outcomes(next) == [.retry(after: .seconds(1), reason: "closed")])
    }

    @Test func replacedPoolIsReleased() throws {
        let stand = try PoolBench(connections: 2)
        stand.enter { stand.loopState.connectEagerly() }
        stand.open()
        let push = stand.send()
        try stand.replace()
        #expect(stand.record.leases.count == 2)
        #expect(stand.record.leases[0].lease != nil, "it still has something to answer")
        let carrying = try #require(stand.wires().first { !$0.underway.isEmpty })
        try stand.answer(carrying)
        #expect(stand.outcomes(push) == [.accepted(by: nil)])
        #expect(stand.record.leases[0].lease == nil)
        #expect(stand.record.leases[1].lease != nil)
        for _ in 0..<5 { try stand.replace() }
        #expect(stand.record.leases.count { $0.lease != nil } == 1, "those that never opened, too")
    }

    @Test func closedPoolIsReleased() throws {
        let stand = try PoolBench(connections: 2)
        stand.enter { stand.loopState.connectEagerly() }
        stand.settle()
        // One connection is open; the other is being opened.
        let first = try #require(stand.wires().first)
        stand.enter { first.open(limit: 10) }
        stand.send()
        stand.enter { stand.loopState.close() }
        #expect(stand.record.leases.count { $0.lease != nil } == 0)
    }

    @Test func releasedSenderClosesItsConnections() async throws {
        try await Rig.with(.certificate) { rig in
            let provider = try rig.team.issueProvider(at: SystemTime().now())
            let certificate = try provider.certificatePEM()
            let key = try provider.keyPEM()
            do {
                let sender = try APNsSender(
                    endpoint: PushEndpoint(host: "127.0.0.1", port: rig.apple.port), topic: rig.team.topic,
                    credential: .certificate(chainPEM: certificate, key: key),
                    trust: .pem(try rig.team.authority.certificatePEM()), time: rig.time,
                    randomness: SystemRandomness(), log: rig.senderLog, options: .patient)
                let push = rig.push()
                #expect(await rig.loops[2].perform { await sender.send(push) } == .accepted(by: nil))
            }
            await rig.sink.lines(of: "apns.disconnected", count: 1)
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            #expect(rig.count("apns.disconnected") == 1, "the other's stand")
        }
    }
}
