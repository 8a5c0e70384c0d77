import TwoefayClient

/// A carrier whose every word is told to somebody.
struct Overheard: Carrier {
    let carrier: HTTP2Carrier
    let witness: Witness

    func carry(_ call: RelayCall) async throws(CallFault) -> RelayReply {
        witness(Message(.website, .relay, call))
        let reply = try await carrier.carry(call)
        witness(Message(.relay, .website, reply))
        return reply
    }

    func pause(for duration: Duration) async { await carrier.pause(for: duration) }
}
