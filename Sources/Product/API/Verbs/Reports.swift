import Domain
import JSON
import Relay
import World

/// Enrol: the report of a phone about itself.
enum Reports {
    typealias P = Parameters

    static let routes = [
        Route(
            "reportStatus", "POST", "/device/status", "Reports the system, the app and the state of the calling phone",
            Form(
                .phone(report), [P.status.required],
                answers: [Answer(200, "The stored report", .object(["device": .id, "report": .report]))],
                problems: [.limited: "more than ten reports in a minute"]))
    ]

    @Sendable static func report(_ call: VerbCall, _ phone: PhoneCredential) async throws(Refusal) -> VerbOutcome {
        let stored = try await call.relay.report(try call.required(P.status), by: phone)
        return .answer(
            APIResponse(
                200, ["device": .string(phone.id.text), "report": .object(stored.json(at: call.api.time.now()))]))
    }
}

extension DeviceReport {
    /// The JSON of a report. A value that the phone did not report is null; `age` is in seconds.
    func json(at now: Timestamp) -> JSONObject {
        [
            "os": .text(os), "os_version": .text(osVersion), "patch_level": .integer(patchLevel),
            "app_version": .text(appVersion), "model": .text(model), "battery": .integer(battery),
            "screen_lock": .flag(hasScreenLock), "rooted": .flag(isRooted),
            "reported_at": .timestamp(reportedAt), "received_at": .timestamp(receivedAt),
            "age": .integer(max(0, (now - receivedAt).components.seconds)),
        ]
    }
}

extension JSONValue {
    fileprivate static func integer(_ number: Int?) -> JSONValue { number.map { .integer(Int64($0)) } ?? .null }
    fileprivate static func flag(_ flag: Bool?) -> JSONValue { flag.map { .bool($0) } ?? .null }
}
