import JSON
import Relay

/// The relay's signed time, for phones whose clock is wrong.
enum Clock {
    typealias P = Parameters

    static let routes = [
        Route(
            "showTime", "GET", "/time", "Returns a signed statement of the relay's time",
            Form(
                .anyone(show), [P.nonce.required],
                answers: [Answer(200, "The time", .object(["time": .jws.about("A twoefay-time+jwt")]))],
                problems: [.limited: "this address asked too often"]))
    ]

    @Sendable static func show(_ call: VerbCall) async throws(Refusal) -> VerbOutcome {
        let statement = try call.relay.signedTime(nonce: try call.required(P.nonce), for: call.remote)
        return .answer(APIResponse(200, ["time": .string(statement)]))
    }
}
