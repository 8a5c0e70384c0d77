import TwoefayClient

/// A transport that reports every call and answer to an observer.
struct ObservedCarrier: Carrier {
    let carrier: HTTP2Carrier
    let observer: MessageObserver

    func send(_ call: RelayCall) async throws(CallFault) -> RelayReply {
        observer(Message(.website, .relay, call))
        let reply = try await carrier.send(call)
        observer(Message(.relay, .website, reply))
        return reply
    }

    func pause(for duration: Duration) async { await carrier.pause(for: duration) }
}
