import Testing

@testable import HTTP2

private typealias State = ClientConnectionState<String, String, String>

struct ClientConnectionStateTests {
    private let handshake = State.handshake("link", "attempt")
    private let awaiting = State.awaitingSettings("link", "session", "attempt")
    private let open = State.open("link", "session")
    private let goingAway = State.goingAway("link", "session")

    private var allStates: [State] {
        [
            .idle, .connecting, handshake, awaiting, open, goingAway, .closing("link", "session"),
            .closing("link", nil), .closed,
        ]
    }

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

    @Test func clientConnectsOnce() {
        expect([(.idle, .connecting)]) { _ = $0.connect() }
        for var state in allStates {
            // `connect` may follow `close`.
            let isAllowed = state == .idle || state == .closed
            let connects = state.connect()
            #expect(connects == isAllowed, "\(state)")
        }
    }

    @Test func handshakeBeginsOnlyWhileConnecting() {
        expect([(.connecting, handshake)]) { _ = $0.beginHandshake("link", "attempt") }
        for var state in allStates {
            let isConnecting = state == .connecting
            let begins = state.beginHandshake("link", "attempt")
            #expect(begins == isConnecting, "\(state)")
        }
        expect([(handshake, awaiting)]) { $0.handshakeCompleted(with: "session") }
    }

    @Test func firstSettingsCompleteTheAttempt() {
        expect([(awaiting, open)]) { _ = $0.settingsArrived() }
        var state = awaiting
        var attempt = state.settingsArrived()
        #expect(attempt == "attempt")
        attempt = state.settingsArrived()
        #expect(attempt == nil)
    }

    @Test func eachStateHasItsResources() {
        for state in allStates {
            let link: String?
            let session: String?
            switch state {
            case .idle, .connecting, .closed: (link, session) = (nil, nil)
            case .handshake, .closing(_, nil): (link, session) = ("link", nil)
            case .awaitingSettings, .open, .goingAway, .closing: (link, session) = ("link", "session")
            }
            #expect(state.link == link, "\(state)")
            #expect(state.session == session, "\(state)")
            let isEstablished = state == open || state == goingAway
            #expect(state.establishedSession == (isEstablished ? "session" : nil), "\(state)")
        }
        let reported = allStates.map(\.reported)
        #expect(
            reported
                == [.connecting, .connecting, .connecting, .connecting, .open, .goingAway, .closed, .closed, .closed])
    }

    @Test func goAwayBeforeSettingsEndsTheTransport() {
        expect([(open, goingAway)]) { _ = $0.goAwayArrived() }
        for var state in allStates {
            let before = state
            switch state.goAwayArrived() {
            case .end(let link): #expect(before == awaiting && link == "link")
            case .failWaiting: #expect(before == open)
            case .none: #expect(before != awaiting && before != open)
            }
        }
    }

    @Test func retiredConnectionIsClosedUnlessItCarriesRequests() {
        expect([(open, goingAway)]) { _ = $0.retire() }
        for var state in allStates {
            let before = state
            switch state.retire() {
            case .close: #expect([.idle, .connecting, handshake, awaiting].contains(before))
            case .failWaiting: #expect(before == open)
            case .none: #expect([.goingAway, .closed].contains(before.reported))
            }
        }
    }

    @Test func connectionIsClosedOnce() {
        let closing = State.closing("link", "session")
        expect([
            (.idle, .closed), (.connecting, .closed), (handshake, .closing("link", nil)), (awaiting, closing),
            (open, closing), (goingAway, closing),
        ]) { _ = $0.close() }
        let actions = allStates.map { state in
            var state = state
            return state.close()
        }
        #expect(
            actions == [
                .tearDown, .tearDown, .end("link", nil, "attempt"), .end("link", "session", "attempt"),
                .end("link", "session", nil), .end("link", "session", nil), .none, .none, .none,
            ])
    }

    @Test func failedAttemptLeavesRoomForTheNextAddress() {
        expect([
            (handshake, .connecting), (awaiting, .connecting), (open, .closed), (goingAway, .closed),
            (.closing("link", "session"), .closed), (.closing("link", nil), .closed),
        ]) { _ = $0.transportEnded() }
        let actions = allStates.map { state in
            var state = state
            return state.transportEnded()
        }
        #expect(
            actions == [
                .none, .none, .fail("attempt"), .fail("attempt"), .tearDown, .tearDown, .tearDown, .tearDown, .none,
            ])
    }
}
