import Domain
import JSON
import Relay

/// Enrol: the end of an enrolment, which the phone and the relay sign.
enum Goodbyes {
    typealias P = Parameters

    static let routes = [
        Route(
            "POST", "/device/goodbye", "Unbinds the phone that signed it, or tells it that it was unbound",
            Form(
                .anyone(say), [P.goodbye.required],
                answers: [
                    (200, "device, and either farewell: a twoefay-farewell+jwt, or bound: true"),
                    (401, "not signed by the key of such a phone, or the phone is suspended"),
                    (429, "this address asked too often"),
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
