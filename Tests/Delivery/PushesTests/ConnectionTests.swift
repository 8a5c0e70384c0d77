import DeliveryOutcomes
import EventLoop
import FakePushServices
import Glibc
import HTTP2
import Log
import Pushes
import TestSupport
import Testing
import World

/// Pushes while connections end, are refused, or stay silent.
@Suite(.serialized) struct ConnectionTests {
    @Test func senderReconnectsWhenTheServiceIsBack() async throws {
        try await Rig.with { rig in
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            await rig.apple.stop()
            try await rig.apple.start()
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
        }
    }

    @Test func pushWaitsForAReconnect() async throws {
        try await Rig.with { rig in
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            await rig.apple.stop()
            async let outcome = rig.send(rig.push())
            // The connection ended, and at least one attempt to reconnect failed.
            await rig.sink.lines(of: "apns.disconnected", count: 2)
            try await rig.apple.start()
            #expect(await outcome == .accepted(by: nil))
        }
    }

    @Test func unreachableServiceIsReported() async throws {
        var options = PushOptions.patient
        options.deadline = .milliseconds(400)
        try await Rig.with(options: options) { rig in
            await rig.apple.stop()
            guard case .unavailable(let pause?, let reason) = await rig.send(rig.push()) else {
                Issue.record("neither sent nor refused")
                return
            }
            #expect(pause >= .seconds(1) && pause <= .seconds(60))
            #expect(reason.contains("connect"))
            // The second attempt follows the first at once. When the third starts, the failure of the second has
            // been reported.
            await rig.sink.lines(of: "apns.disconnected", count: 3)
            #expect(rig.sender.fault != nil)
        }
    }

    @Test func goAwayLosesNoPush() async throws {
        try await Rig.with { rig in
            rig.apple.script("51", .after(.milliseconds(100), .accept))
            async let slow = rig.send(rig.push("51"))
            _ = try await rig.apple.nextRequest()
            try await rig.apple.goAway()
            #expect(await slow == .accepted(by: nil), "begun before, and still answered")
            for _ in 0..<5 { #expect(await rig.send(rig.push()) == .accepted(by: nil)) }
            #expect(rig.count("apns.connected") == 2)
            #expect(rig.apple.acceptedCount == 6)
        }
    }

    @Test func goAwayUnderLoadLosesNoPush() async throws {
        try await Rig.with { rig in
            let outcomes = try await withThrowingTaskGroup(of: DeliveryOutcome?.self) { group in
                for number in 0..<300 {
                    let push = rig.push(number: UInt64(number))
                    group.addTask { await rig.send(push) }
                    if number % 100 == 99 {
                        group.addTask {
                            try await rig.apple.goAway()
                            return nil
                        }
                    }
                }
                return try await group.reduce(into: [DeliveryOutcome]()) { all, outcome in
                    if let outcome { all.append(outcome) }
                }
            }
            #expect(outcomes.count == 300)
            #expect(outcomes.allSatisfy { $0 == .accepted(by: nil) })
            var ids: Set<String> = []
            for _ in 0..<300 { ids.insert(try await rig.apple.next().id) }
            #expect(ids.count == 300)
            #expect(rig.apple.acceptedCount == 300, "each once")
        }
    }

    @Test func missingAnswerIsAmbiguousAtTheDeadline() async throws {
        try await Rig.with { rig in
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            rig.apple.script("a1", .silence)
            // The push must be delivered or given up before it expires.
            #expect(await rig.send(rig.push(lives: .seconds(5))) == .ambiguous("no answer in time"))
            // Only the stream was reset. The connection still answers, so it is kept.
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            #expect(rig.count("apns.connected") == 1)
        }
    }

    @Test func connectionLostAfterSendingIsAmbiguous() async throws {
        var limits = FakePushService.limits
        limits.drain = .milliseconds(1)
        try await Rig.with(limits: limits) { rig in
            rig.apple.script("a1", .silence)
            async let outcome = rig.send(rig.push())
            _ = try await rig.apple.nextRequest()
            await rig.apple.stop()
            guard case .ambiguous = await outcome else {
                Issue.record("nobody can know whether it was taken")
                return
            }
            try await rig.apple.start()
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
        }
    }

    @Test func deadConnectionIsFoundBeforeTheDeadline() async throws {
        var options = PushOptions.patient
        options.deadline = .seconds(60)
        options.suspicion = .seconds(3)
        options.pingTimeout = .seconds(3)
        try await Rig.with(options: options) { rig in
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            // The service's loop is blocked: its side of the connection stays open and is silent.
            var ends: [Int32] = [0, 0]
            try #require(pipe(&ends) == 0)
            let (awaited, release) = (ends[0], ends[1])
            defer {
                close(awaited)
                close(release)
            }
            await withCheckedContinuation { standing in
                rig.loops[0].post {
                    standing.resume()
                    var byte: UInt8 = 0
                    _ = read(awaited, &byte, 1)
                }
            }
            let outcome = await rig.send(rig.push())
            var byte: UInt8 = 1
            #expect(write(release, &byte, 1) == 1)
            // If the push had reached its deadline, the outcome would be "no answer in time".
            #expect(outcome == .ambiguous("no answer to a PING"))
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            #expect(rig.count("apns.connected") == 2)
        }
    }

    @Test func untrustedAuthorityIsRefused() async throws {
        try await Rig.with(trusts: false) { rig in try await isRefusedByTLS(rig) }
    }

    @Test func wrongServerNameIsRefused() async throws {
        try await Rig.with(names: ["push.example.com", "127.0.0.2"]) { rig in try await isRefusedByTLS(rig) }
    }

    /// Checks that a push waits for a connection and that TLS refuses every connection.
    private func isRefusedByTLS(_ rig: Rig) async throws {
        async let outcome = rig.send(rig.push())
        await rig.sink.lines(of: "apns.disconnected", count: 2)
        rig.sender.close()
        #expect(await outcome == .retry(after: .seconds(1), reason: "closed"))
        let lines = rig.sink.lines.filter { ObservedSink.isOf("apns.disconnected", $0) }
        #expect(lines.allSatisfy { $0.contains("TLS") }, "\(lines)")
        #expect(rig.count("apns.connected") == 0)
        #expect(rig.apple.acceptedCount == 0)
    }

    @Test func pushesArriveOverOneStreamAtATime() async throws {
        var limits = FakePushService.limits
        limits.streams = 1
        try await Rig.with(limits: limits) { rig in
            let outcomes = try await withThrowingTaskGroup(of: DeliveryOutcome.self) { group in
                for number in 0..<30 {
                    let push = rig.push(number: UInt64(number))
                    group.addTask { await rig.send(push) }
                }
                return try await group.reduce(into: [DeliveryOutcome]()) { $0.append($1) }
            }
            #expect(outcomes.allSatisfy { $0 == .accepted(by: nil) })
            #expect(rig.count("apns.connected") == 1)
        }
    }

    @Test func closedSenderRefusesPushes() async throws {
        try await Rig.with { rig in
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            rig.sender.close()
            #expect(await rig.send(rig.push()) == .retry(after: .seconds(1), reason: "closed"))
        }
    }
}
