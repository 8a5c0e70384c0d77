import Domain
import JSON
import Relay

/// Enrol: the end of an enrolment, which the phone and the relay sign.
enum Goodbyes {
    typealias P = Parameters

    static let routes = [
        Route(
            "sayGoodbye", "POST", "/device/goodbye",
            "Unbinds the phone that signed it, or tells it that it was unbound",
            Form(
                .anyone(say), [P.goodbye.required],
                answers: [
                    Answer(
                        200, "Either farewell, once the phone is unbound, or bound",
                        .object([
                            "device": .id, "farewell?": .jws.about("A twoefay-farewell+jwt"), "bound?": .mark,
                        ]).showing(without: "bound"))
                ],
                problems: [
                    .unauthenticated: "not signed by the key of such a phone, or the phone is suspended",
                    .limited: "this address asked too often",
                ]))
    ]

    @Sendable static func say(_ call: VerbCall) async throws(Refusal) -> VerbOutcome {
        let (device, farewell) = try await call.relay.goodbye(try call.required(P.goodbye), from: call.remote)
        var body: JSONObject = ["device": .string(device.text)]
        switch farewell {
        case .signed(let statement): body.set("farewell", .string(statement))
        case .bound: body.set("bound", true)
        }
        return .answer(APIResponse(200, body))
    }
}
