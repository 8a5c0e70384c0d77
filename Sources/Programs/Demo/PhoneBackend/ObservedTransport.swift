import TwoefayClient

/// A carrier whose every word is told to somebody.
struct ObservedTransport: RelayTransport {
    let carrier: HTTP2Transport
    let witness: MessageObserver

    func carry(_ call: RelayCall) async throws(CallFault) -> RelayReply {
        witness(Message(.website, .relay, call))
        let reply = try await carrier.carry(call)
        witness(Message(.relay, .website, reply))
        return reply
    }

    func pause(for duration: Duration) async { await carrier.pause(for: duration) }
}
