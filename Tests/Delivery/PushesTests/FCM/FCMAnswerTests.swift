import DeliveryOutcomes
import HTTP
import JSON
import Testing
import World

@testable import Pushes

/// The table of FCM's answers, as values: what each one means for the push, the token and the credential.
@Suite struct FCMAnswerTests {
    private static let sentAt = Timestamp(milliseconds: 1_700_000_000_000)

    private static func answer(
        _ status: Int, _ code: String?, _ canonical: String = "", field: String? = nil, message: String = "",
        retryAfter: String? = nil
    ) -> FCMAnswer {
        var details: [JSONValue] = []
        if let field {
            details.append([
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [["field": .string(field), "description": "wrong"]],
            ])
        }
        if let code {
            details.append([
                "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": .string(code),
            ])
        }
        let error: JSONObject = [
            "code": .integer(Int64(status)), "message": .string(message), "status": .string(canonical),
            "details": .array(details),
        ]
        var fields = Fields()
        if let retryAfter { fields.add("retry-after", retryAfter) }
        let body = JSONWriter.write(["error": .object(error)] as JSONObject)
        return FCMAnswer(Response(status: status, fields: fields, body: body), at: sentAt)
    }

    private static func refused(_ reason: String) -> PushVerdict {
        PushVerdict(push: .settle(.misconfigured(.message, reason: reason)), alarm: true)
    }

    private static func later(_ seconds: Int, _ reason: String) -> PushVerdict {
        PushVerdict(push: .settle(.retry(after: .seconds(seconds), reason: reason)))
    }

    /// No push to anybody gets through.
    private static func down(_ seconds: Int, _ reason: String) -> PushVerdict {
        PushVerdict(push: .settle(.unavailable(after: .seconds(seconds), reason: reason)))
    }

    private static func dead(_ reason: String) -> PushVerdict {
        PushVerdict(push: .settle(.unregistered(since: sentAt, reason: reason)))
    }

    static let rows: [(FCMAnswer, PushVerdict)] = [
        (FCMAnswer(Response(status: 200), at: sentAt), PushVerdict(push: .settle(.accepted(by: nil)))),
        (answer(404, "UNREGISTERED", "NOT_FOUND"), dead("UNREGISTERED")),
        (answer(404, nil, "NOT_FOUND"), refused("NOT_FOUND")),
        // A bad token and a bad request have one code.
        (
            answer(400, "INVALID_ARGUMENT", message: "The registration token is not a valid FCM registration token"),
            dead("INVALID_ARGUMENT")
        ),
        (answer(400, "INVALID_ARGUMENT", field: "message.token"), dead("INVALID_ARGUMENT")),
        (answer(400, nil, "INVALID_ARGUMENT", field: "message.data[0].value"), refused("INVALID_ARGUMENT")),
        (
            answer(
                400, nil, "INVALID_ARGUMENT", field: "message.android.ttl",
                message: "not a valid FCM registration token"),
            refused("INVALID_ARGUMENT")
        ),
        (answer(400, "INVALID_ARGUMENT", message: "Android message is too big"), refused("INVALID_ARGUMENT")),
        (answer(403, "SENDER_ID_MISMATCH", "PERMISSION_DENIED"), refused("SENDER_ID_MISMATCH")),
        (answer(401, "THIRD_PARTY_AUTH_ERROR", "UNAUTHENTICATED"), refused("THIRD_PARTY_AUTH_ERROR")),
        (
            answer(401, nil, "UNAUTHENTICATED"),
            PushVerdict(push: .repeatElsewhere, credential: .renew)
        ),
        (
            answer(403, nil, "PERMISSION_DENIED"),
            PushVerdict(
                push: .settle(.misconfigured(.service, reason: "PERMISSION_DENIED")), credential: .distrust,
                alarm: true)
        ),
        (answer(429, "QUOTA_EXCEEDED", "RESOURCE_EXHAUSTED"), later(60, "QUOTA_EXCEEDED")),
        (answer(429, "QUOTA_EXCEEDED", retryAfter: "7"), later(7, "QUOTA_EXCEEDED")),
        (answer(503, "UNAVAILABLE"), down(10, "UNAVAILABLE")),
        (answer(503, "UNAVAILABLE", retryAfter: "3"), down(3, "UNAVAILABLE")),
        // A date is allowed, too: here 20 s after the answer.
        (answer(503, "UNAVAILABLE", retryAfter: "Tue, 14 Nov 2023 22:13:40 GMT"), down(20, "UNAVAILABLE")),
        (answer(500, "INTERNAL"), down(10, "INTERNAL")),
        // Proxies in between have no body, or another one.
        (FCMAnswer(Response(status: 502, body: Array("<html>".utf8)), at: sentAt), down(10, "502")),
        (FCMAnswer(Response(status: 301), at: sentAt), refused("301")),
        (answer(400, "NOVELTY"), refused("NOVELTY")),
    ]

    @Test(arguments: rows) func everyAnswerHasItsConsequence(_ answer: FCMAnswer, _ verdict: PushVerdict) {
        #expect(answer.verdict(PushRequestState(sentAt: Self.sentAt)) == verdict, "\(answer)")
    }

    /// Every name that FCM documents has a row.
    @Test func tableCoversEveryReason() {
        let seen = Set(Self.rows.compactMap(\.0.reason))
        #expect(FCMAnswer.reasons.subtracting(seen) == ["UNSPECIFIED_ERROR", "RESOURCE_EXHAUSTED"])
    }

    @Test func secondRefusalOfAnAccessTokenOpensTheCircuit() {
        let state = PushRequestState(sentAt: Self.sentAt, repeatedFor: [.expiredAccessToken])
        let verdict = Self.answer(401, nil, "UNAUTHENTICATED").verdict(state)
        #expect(verdict.credential == .distrust && verdict.alarm)
        #expect(verdict.push == .settle(.misconfigured(.service, reason: "UNAUTHENTICATED")))
    }

    @Test func pauseDoublesWithEachAttemptAndVaries() {
        func pause(_ attempts: Int, _ jitter: Double) -> Duration? {
            var state = PushRequestState(sentAt: Self.sentAt)
            (state.attempts, state.jitter) = (attempts, jitter)
            guard case .settle(.unavailable(let pause, _)) = Self.answer(503, "UNAVAILABLE").verdict(state).push else {
                return nil
            }
            return pause
        }
        #expect([0, 1, 2, 5, 90].map { pause($0, 0) } == [10, 20, 40, 320, 320].map { .seconds($0) })
        #expect(pause(0, 1) == .seconds(15))
        #expect(pause(1, 0.5) == .seconds(25))
    }

    /// After five bad tokens in a row, the tokens are kept: the project is wrong.
    @Test func badTokensAreKeptIfAllAreBad() {
        var state = PushRequestState(sentAt: Self.sentAt)
        state.suspectsEnvironment = true
        let verdict = Self.answer(400, nil, "INVALID_ARGUMENT", field: "message.token").verdict(state)
        #expect(verdict == Self.refused("INVALID_ARGUMENT"))
    }

    @Test func unknownReasonsHaveOneLabel() {
        #expect(FCMAnswer(status: 200).label == "Success")
        #expect(FCMAnswer(status: 404, reason: "UNREGISTERED").label == "UNREGISTERED")
        #expect(FCMAnswer(status: 404, reason: "NOVELTY").label == "Other")
        #expect(FCMAnswer(status: 404).label == "Other")
    }
}
