import DeliveryOutcomes
import EventLoop
import FakePushServices
import HTTP2
import Synchronization
import Testing
import World

@testable import Pushes

/// Records the reports without the values that vary.
private final class Notes: PushObserver {
    private let notes = Mutex<[String]>([])
    private let durations = Mutex<[Duration]>([])

    var all: [String] { notes.withLock { $0 } }
    var longest: Duration { durations.withLock { $0.max() ?? .zero } }
    var shortest: Duration { durations.withLock { $0.min() ?? .zero } }

    private func note(_ text: String) { notes.withLock { $0.append(text) } }

    func answered(status: Int, reason: String, after duration: Duration) {
        durations.withLock { $0.append(duration) }
        note("answered \(status) \(reason)")
    }
    func unanswered(_ why: PushUnansweredReason, after duration: Duration) { note("unanswered \(why)") }
    func unsent(_ why: PushUnsentReason) { note("unsent \(why)") }
    func connected(host: String) { note("connected \(host)") }
    func disconnected(host: String, reason: String) { note("disconnected \(host)") }
    func goAway(host: String, reason: String) { note("goaway \(host)") }
    func tokenRetired(reason: String) { note("retired \(reason)") }
}

@Suite(.serialized) struct ObserverTests {
    @Test func observerReceivesEveryEvent() async throws {
        let notes = Notes()
        try await Rig.with(observer: notes) { rig in
            rig.apple.script("a1", .refuse(.unregistered), .reset(.internalError, accepts: false), .accept)
            _ = await rig.send(rig.push())
            _ = await rig.send(rig.push())
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            _ = await rig.send(rig.push("nonsense"))
            _ = await rig.send(rig.push(lives: .zero))
            #expect(
                notes.all == [
                    "connected 127.0.0.1", "answered 410 Unregistered", "retired Unregistered", "unanswered reset",
                    "answered 200 Success", "unsent invalid", "unsent expired",
                ])
            #expect(notes.shortest > .zero)
            await rig.apple.sendGoAway()
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            #expect(notes.all.contains("goaway 127.0.0.1"))
            #expect(notes.all.contains("disconnected 127.0.0.1"))
        }
    }

    @Test func observerDistinguishesTimeoutsAndLosses() async throws {
        let notes = Notes()
        try await Rig.with(observer: notes) { rig in
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            rig.apple.script("5e", .silence, repeatsLast: true)
            _ = await rig.send(rig.push("5e", lives: .seconds(3)))
            #expect(notes.all.last == "unanswered timeout")
            let second = await rig.begin(rig.push("5e"))
            for _ in 0..<3 { _ = try await rig.apple.nextRequest() }
            await rig.apple.cut()
            _ = await second.outcome()
            #expect(notes.all.contains("unanswered lost"))
        }
    }

    @Test func snapshotReportsConnectionsAndQueue() async throws {
        let time = ManualTime(SystemTime().now())
        try await Rig.with(time: time) { rig in
            #expect(rig.sender.snapshot().connections == 0)
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            time.advance(by: .seconds(60))
            rig.apple.script("5e", .silence)
            let waiting = await rig.begin(rig.push("5e"))
            var snapshot = rig.sender.snapshot()
            #expect(snapshot.connections == 1)
            #expect(snapshot.inFlight == 1)
            #expect(snapshot.queued == 0)
            #expect(snapshot.oldestWait == nil)
            #expect(snapshot.streamLimit > 0)
            #expect(snapshot.tokenAge == .seconds(60))
            rig.sender.close()
            _ = await waiting.outcome()
            await rig.loops[1].perform {}
            snapshot = rig.sender.snapshot()
            #expect(snapshot.connections == 0)
            #expect(snapshot.inFlight == 0)
        }
    }

    @Test func goAwayIsCountedOnce() throws {
        let notes = Notes()
        let stand = try PoolBench(observer: notes)
        func goAways() -> Int { notes.all.count { $0.hasPrefix("goaway") } }
        stand.enter { stand.loopState.connectEagerly() }
        stand.open()
        let wire = try stand.wire()
        let first = stand.send()
        let second = stand.send()
        // This one answer makes the sender replace the connection. With another answer the service announces its
        // end.
        try stand.answer(wire, 503, "ServiceUnavailable")
        #expect(wire.state == .goingAway)
        #expect(goAways() == 0)
        let last = try #require(wire.underway.last)
        stand.enter { wire.goAway(last: last) }
        try stand.answer(wire)
        #expect(wire.state == .closed)
        #expect(goAways() == 1)
        stand.open()
        try stand.answer(stand.wire())
        #expect(stand.outcomes(first) == [.accepted(by: nil)])
        #expect(stand.outcomes(second) == [.accepted(by: nil)])
        let next = try stand.wire()
        stand.enter { next.goAway(last: -1) }
        #expect(goAways() == 2)
    }
}
