import Testing
import World

@testable import HTTP2

private typealias State = ServerConnectionState<String>

private func at(_ seconds: Int64) -> Instant { Instant(nanoseconds: 0) + .seconds(seconds) }

struct ServerConnectionStateTests {
    private let open = State.open("session", lastStream: .max)

    private let allStates: [State] = [
        .accepted, .awaitingProxyHeader, .awaitingFirstByte, .handshakeQueued(since: at(1)), .handshake,
        .opening("session", lastStream: .max), .open("session", lastStream: .max),
        .draining("session", .serving, lastStream: .max), .draining("session", .noticed, lastStream: .max),
        .draining("session", .final, lastStream: 7), .closing("session"), .lingering, .frozen, .ended,
    ]

    /// Checks that an event changes only the states in `changes`.
    private func expect(
        _ changes: [(from: State, to: State)], by event: (inout State) -> Void,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        for state in allStates {
            let expected = changes.first { $0.from == state }?.to ?? state
            var changed = state
            event(&changed)
            #expect(changed == expected, "\(state)", sourceLocation: sourceLocation)
        }
    }

    // MARK: Before the connection is open

    @Test func connectionOfABalancerAwaitsItsProxyHeader() {
        expect([(.accepted, .awaitingProxyHeader)]) { $0.start(awaitsProxyHeader: true) }
        expect([(.awaitingProxyHeader, .awaitingFirstByte)]) { $0.proxyHeaderRead() }
    }

    @Test func directConnectionAwaitsItsFirstByte() {
        expect([(.accepted, .awaitingFirstByte)]) { $0.start(awaitsProxyHeader: false) }
        expect([(.awaitingFirstByte, .handshakeQueued(since: at(3)))]) { $0.firstByteArrived(at: at(3)) }
    }

    @Test func queuedHandshakeReportsItsWait() {
        expect([(.handshakeQueued(since: at(1)), .handshake)]) { _ = $0.handshakeBegan(at: at(9)) }
        for var state in allStates {
            let isQueued = state == .handshakeQueued(since: at(1))
            let waited = state.handshakeBegan(at: at(9))
            #expect(waited == (isQueued ? .seconds(8) : nil), "\(state)")
        }
    }

    @Test func completeHandshakeOpensTheConnection() {
        let opening = State.opening("session", lastStream: .max)
        // A connection without TLS has no handshake.
        expect([(.handshake, opening), (.awaitingFirstByte, opening)]) { $0.handshakeCompleted(with: "session") }
        expect([(opening, open)]) { _ = $0.finishOpening() }
        for var state in allStates {
            let isOpening = state == opening
            let finishes = state.finishOpening()
            #expect(finishes == isOpening, "\(state)")
        }
    }

    @Test func goAwayBeforeSettingsStaysInForce() throws {
        var state = State.opening("session", lastStream: .max)
        let sent = state.goAway(lastStream: 0)
        #expect(try #require(sent) == ("session", 0))
        let finishes = state.finishOpening()
        #expect(finishes && state == .open("session", lastStream: 0))
    }

    // MARK: Queries

    @Test func sessionExistsOnlyFromHandshakeToEnd() {
        for state in allStates {
            let hasSession: Bool
            let receives: Bool
            switch state {
            case .opening, .open, .draining: (hasSession, receives) = (true, true)
            case .closing: (hasSession, receives) = (true, false)
            default: (hasSession, receives) = (false, false)
            }
            #expect(state.session == (hasSession ? "session" : nil), "\(state)")
            #expect(state.hasSession == hasSession, "\(state)")
            #expect(state.receivingSession == (receives ? "session" : nil), "\(state)")
            #expect(state.handles(1) == receives, "\(state)")
        }
    }

    @Test func streamsAboveTheBoundAreNotHandled() {
        let bounded = State.draining("session", .final, lastStream: 7)
        #expect(bounded.handles(7) && !bounded.handles(9))
        #expect(open.handles(.max))
    }

    @Test func onlyRefusedStreamsAreIgnored() {
        #expect(!open.ignoresStreams)
        #expect(State.open("session", lastStream: 7).ignoresStreams)
        #expect(State.draining("session", .serving, lastStream: .max).ignoresStreams)
    }

    // MARK: GOAWAY and drain

    @Test func boundOnStreamsNeverRises() throws {
        var state = open
        var sent = state.goAway(lastStream: 5)
        #expect(try #require(sent) == ("session", 5))
        sent = state.goAway(lastStream: 9)
        #expect(try #require(sent) == ("session", 5))
        #expect(state == .open("session", lastStream: 5))
        _ = state.beginDrain(hasStreams: true)
        let action = state.refuseStreams(above: 9)
        #expect(action == .sendGoAway("session", lastStream: 5))
        sent = state.goAway(lastStream: 3)
        #expect(try #require(sent) == ("session", 3))
        #expect(state == .draining("session", .final, lastStream: 3))
    }

    @Test func goAwayIsSentOnlyWithASession() {
        for var state in allStates {
            let receives = state.receivingSession != nil
            let isSent = state.goAway(lastStream: 1) != nil
            #expect(isSent == receives, "\(state)")
        }
    }

    @Test func idleConnectionDrainsByTwoRoundTrips() {
        var state = open
        var action = state.beginDrain(hasStreams: false)
        #expect(action == .serve("session", ping: true))
        action = state.drainPingAcknowledged(hasStreams: false, lastProcessed: 0)
        #expect(action == .sendNotice("session"))
        #expect(state == .draining("session", .noticed, lastStream: .max))
        action = state.drainPingAcknowledged(hasStreams: true, lastProcessed: 3)
        #expect(action == .sendGoAway("session", lastStream: 3))
        #expect(state == .draining("session", .final, lastStream: 3))
        action = state.drainPingAcknowledged(hasStreams: false, lastProcessed: 3)
        #expect(action == .none)
    }

    @Test func noticeWaitsForOpenStreams() {
        var state = open
        var action = state.beginDrain(hasStreams: true)
        #expect(action == .serve("session", ping: false))
        // A request arrived before the acknowledgement of the PING.
        action = state.drainPingAcknowledged(hasStreams: true, lastProcessed: 5)
        #expect(action == .none)
        #expect(state == .draining("session", .serving, lastStream: .max))
        action = state.lastStreamEnded()
        #expect(action == .sendNotice("session"))
        action = state.lastStreamEnded()
        #expect(action == .none)
    }

    @Test func drainStepEndsTheWaitForAClient() {
        var silent = open
        _ = silent.beginDrain(hasStreams: false)
        var action = silent.drainStepElapsed(.serving, hasStreams: false, lastProcessed: 0)
        #expect(action == .sendGoAway("session", lastStream: 0))
        var busy = open
        _ = busy.beginDrain(hasStreams: true)
        action = busy.drainStepElapsed(.serving, hasStreams: true, lastProcessed: 1)
        #expect(action == .sendNotice("session"))
        action = busy.drainStepElapsed(.noticed, hasStreams: true, lastProcessed: 1)
        #expect(action == .sendGoAway("session", lastStream: 1))
        action = busy.drainStepElapsed(.final, hasStreams: true, lastProcessed: 1)
        #expect(action == .none)
    }

    /// The timer of a step is not cancelled when the drain moves to the next step by itself.
    @Test func timerOfAnEarlierStepHasNoEffect() {
        for step in [DrainState.serving, .noticed] {
            for state in allStates {
                if case .draining(_, step, _) = state { continue }
                var late = state
                let action = late.drainStepElapsed(step, hasStreams: false, lastProcessed: 0)
                #expect(action == .none && late == state, "\(state)")
            }
        }
    }

    @Test func connectionWithoutRequestsIsNotDrained() {
        for var state in allStates {
            let before = state
            let action = state.beginDrain(hasStreams: false)
            switch before {
            case .accepted, .awaitingProxyHeader, .awaitingFirstByte, .handshakeQueued, .handshake, .opening, .frozen:
                #expect(action == .end, "\(before)")
                #expect(state == before)
            case .open: #expect(action == .serve("session", ping: true))
            case .draining, .closing, .lingering, .ended:
                #expect(action == .none, "\(before)")
                #expect(state == before)
            }
        }
    }

    @Test func revokedConnectionRefusesFurtherStreamsAtOnce() {
        let final = State.draining("session", .final, lastStream: 3)
        expect([
            (open, final), (.draining("session", .serving, lastStream: .max), final),
            (.draining("session", .noticed, lastStream: .max), final),
        ]) { _ = $0.refuseStreams(above: 3) }
    }

    // MARK: The end

    @Test func connectionIsClosedOnce() {
        for state in allStates {
            var closed = state
            let session = closed.close()
            #expect(session == state.receivingSession, "\(state)")
            #expect(closed == (session == nil ? state : .closing("session")), "\(state)")
            let again = closed.close()
            #expect(again == nil)
        }
    }

    @Test func connectionLingersOnlyAfterItsSettings() {
        expect(allStates.filter(\.mayLinger).map { ($0, .lingering) }) { $0.linger() }
        #expect(!State.opening("session", lastStream: .max).mayLinger)
    }

    @Test func liveConnectionCanBeFrozen() {
        for state in allStates {
            var frozen = state
            let isFrozen = frozen.freeze()
            #expect(isFrozen == state.isLive, "\(state)")
            #expect(frozen == (state.isLive ? .frozen : state))
        }
    }

    @Test func everyStateCanEnd() {
        expect(allStates.map { ($0, .ended) }) { $0.end() }
    }
}
