import DeliveryOutcomes
import FakePushServices
import HTTP
import JSON
import Testing
import World

@testable import Pushes

/// The table of answers, row by row: the effects on the push, the connection and the credential.
@Suite struct AnswerTableTests {
    private static let sentAt = Timestamp(milliseconds: 1_700_000_000_000)
    private static let deadSince = Timestamp(milliseconds: 1_600_000_000_123)

    private static func verdict(
        _ status: Int, _ reason: String?, _ state: PushRequestState = PushRequestState(sentAt: sentAt)
    ) -> PushVerdict {
        APNsAnswer(status: status, reason: reason).verdict(state)
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let status: Int
        let reason: String?
        let verdict: PushVerdict
        var testDescription: String { "\(status) \(reason ?? "")" }

        init(_ status: Int, _ reason: String?, _ verdict: PushVerdict) {
            self.status = status
            self.reason = reason
            self.verdict = verdict
        }
    }

    private static let ourMistakes = [
        (400, "BadCollapseId"), (400, "BadExpirationDate"), (400, "BadMessageId"), (400, "BadPriority"),
        (400, "BadTopic"), (400, "DuplicateHeaders"), (400, "InvalidPushType"), (400, "MissingDeviceToken"),
        (400, "MissingTopic"), (400, "PayloadEmpty"), (404, "BadPath"), (405, "MethodNotAllowed"),
        (413, "PayloadTooLarge"),
    ].map { (status: Int, reason: String) in
        Row(status, reason, PushVerdict(push: .settle(.misconfigured(.message, reason: reason)), alarm: true))
    }

    private static let refusedCredentials = [
        (400, "TopicDisallowed"), (403, "BadCertificate"), (403, "BadCertificateEnvironment"), (403, "Forbidden"),
        (403, "InvalidProviderToken"), (403, "MissingProviderToken"), (403, "BadEnvironmentKeyIdInToken"),
        (403, "BadEnvironmentKeyInToken"),
    ].map { (status: Int, reason: String) in
        Row(
            status, reason,
            PushVerdict(
                push: .settle(.misconfigured(.service, reason: reason)), credential: .distrust, alarm: true))
    }

    private static let others: [Row] = [
        Row(200, nil, PushVerdict(push: .settle(.accepted(by: nil)))),
        Row(
            400, "BadDeviceToken",
            PushVerdict(push: .settle(.unregistered(since: sentAt, reason: "BadDeviceToken")))),
        Row(
            400, "DeviceTokenNotForTopic",
            PushVerdict(push: .settle(.unregistered(since: sentAt, reason: "DeviceTokenNotForTopic")), alarm: true)),
        Row(400, "IdleTimeout", PushVerdict(push: .repeatElsewhere, connection: .replace)),
        Row(
            403, "ExpiredProviderToken",
            PushVerdict(push: .repeatElsewhere, connection: .replace, credential: .renew)),
        Row(403, "UnrelatedKeyIdInToken", PushVerdict(push: .repeatElsewhere, connection: .replace)),
        Row(
            410, "Unregistered", PushVerdict(push: .settle(.unregistered(since: sentAt, reason: "Unregistered")))),
        Row(
            410, "ExpiredToken", PushVerdict(push: .settle(.unregistered(since: sentAt, reason: "ExpiredToken")))),
        Row(
            429, "TooManyRequests",
            PushVerdict(push: .settle(.retry(after: .seconds(20), reason: "TooManyRequests")))),
        Row(
            429, "TooManyProviderTokenUpdates",
            PushVerdict(
                push: .settle(.retry(after: .seconds(30), reason: "TooManyProviderTokenUpdates")),
                credential: .holdRenewal, alarm: true)),
        Row(500, "InternalServerError", PushVerdict(push: .repeatElsewhere, connection: .replace)),
        Row(503, "ServiceUnavailable", PushVerdict(push: .repeatElsewhere, connection: .replace)),
        Row(503, "Shutdown", PushVerdict(push: .repeatElsewhere, connection: .replace)),
        // Reasons that are not in the table are handled by their status.
        Row(400, "Novelty", PushVerdict(push: .settle(.misconfigured(.message, reason: "Novelty")), alarm: true)),
        Row(400, nil, PushVerdict(push: .settle(.misconfigured(.message, reason: "400")), alarm: true)),
        Row(418, nil, PushVerdict(push: .settle(.misconfigured(.message, reason: "418")), alarm: true)),
        Row(301, nil, PushVerdict(push: .settle(.misconfigured(.message, reason: "301")), alarm: true)),
        Row(
            403, "Novelty",
            PushVerdict(push: .settle(.misconfigured(.service, reason: "Novelty")), credential: .distrust, alarm: true)),
        Row(410, nil, PushVerdict(push: .settle(.unregistered(since: sentAt, reason: "410")))),
        Row(429, "Novelty", PushVerdict(push: .settle(.retry(after: .seconds(20), reason: "Novelty")))),
        Row(500, nil, PushVerdict(push: .repeatElsewhere, connection: .replace)),
        Row(502, nil, PushVerdict(push: .repeatElsewhere, connection: .replace)),
        Row(503, nil, PushVerdict(push: .repeatElsewhere, connection: .replace)),
    ]

    static let rows = ourMistakes + refusedCredentials + others

    @Test(arguments: rows) func firstAnswerHasTheVerdictOfTheTable(row: Row) {
        #expect(Self.verdict(row.status, row.reason) == row.verdict)
    }

    @Test func tableCoversEveryAppleReason() {
        let reasons = Set(Self.rows.compactMap(\.reason))
        #expect(RefusalReason.apple.filter { !reasons.contains($0.rawValue) }.isEmpty)
        for reason in RefusalReason.apple {
            #expect(Self.rows.contains { $0.reason == reason.rawValue && $0.status == reason.status })
        }
    }

    @Test(arguments: [(400, "IdleTimeout"), (500, "InternalServerError"), (503, "ServiceUnavailable")])
    func serverErrorIsRetriedOnce(status: Int, reason: String) {
        let meaning = APNsAnswer(status: status, reason: reason).meaning
        let again = Self.verdict(status, reason, PushRequestState(sentAt: Self.sentAt, repeatedFor: [meaning]))
        // A server in trouble serves nobody; an idle connection says nothing about other pushes.
        let outcome: DeliveryOutcome =
            status == 400
            ? .retry(after: .seconds(5), reason: reason) : .unavailable(after: .seconds(5), reason: reason)
        #expect(again.push == .settle(outcome))
        #expect(again.connection == .replace)
    }

    @Test func retriesAreCountedPerKindOfFailure() {
        let state = PushRequestState(sentAt: Self.sentAt, repeatedFor: [.serverTrouble])
        #expect(Self.verdict(403, "ExpiredProviderToken", state).push == .repeatElsewhere)
        #expect(Self.verdict(503, "Shutdown", state).push != .repeatElsewhere)
    }

    @Test func expiredAnswerToAYoungTokenBlamesTheClock() {
        for state in [
            PushRequestState(sentAt: Self.sentAt, mayRenew: false),
            PushRequestState(sentAt: Self.sentAt, repeatedFor: [.expiredCredential]),
        ] {
            let verdict = Self.verdict(403, "ExpiredProviderToken", state)
            #expect(
                verdict
                    == PushVerdict(
                        push: .settle(.misconfigured(.service, reason: "ExpiredProviderToken: check the clock")),
                        connection: .replace, credential: .distrust, alarm: true))
        }
    }

    @Test func unrelatedKeyAnswerIsRetriedOnce() {
        let verdict = Self.verdict(
            403, "UnrelatedKeyIdInToken", PushRequestState(sentAt: Self.sentAt, repeatedFor: [.unrelatedKey]))
        #expect(verdict.push == .settle(.misconfigured(.service, reason: "UnrelatedKeyIdInToken")))
        #expect(verdict.credential == .distrust)
    }

    @Test func badTokenIsKeptWhenTheEnvironmentIsInDoubt() {
        let doubtful = PushRequestState(sentAt: Self.sentAt, suspectsEnvironment: true)
        let verdict = Self.verdict(400, "BadDeviceToken", doubtful)
        #expect(verdict == PushVerdict(push: .settle(.misconfigured(.message, reason: "BadDeviceToken")), alarm: true))
        // An app that was removed is removed in every environment.
        #expect(
            Self.verdict(410, "Unregistered", doubtful).push
                == .settle(.unregistered(since: Self.sentAt, reason: "Unregistered")))
    }

    @Test func unregisteredTimestampIsInMilliseconds() {
        let body = JSONWriter.write(["reason": "Unregistered", "timestamp": 1_600_000_000_123] as JSONObject)
        let answer = APNsAnswer(Response(status: 410, body: body))
        #expect(
            answer.verdict(PushRequestState(sentAt: Self.sentAt)).push
                == .settle(.unregistered(since: Self.deadSince, reason: "Unregistered")))
    }

    /// The time must fit into the database, and must not be later than the use of the token.
    @Test(arguments: [Int64.min, -1, Int64.max]) func impossibleTimestampIsIgnored(milliseconds: Int64) {
        let body = JSONWriter.write(["reason": "Unregistered", "timestamp": .integer(milliseconds)] as JSONObject)
        #expect(
            APNsAnswer(Response(status: 410, body: body)).verdict(PushRequestState(sentAt: Self.sentAt)).push
                == .settle(.unregistered(since: Self.sentAt, reason: "Unregistered")))
    }

    @Test func retryAfterOfTheAnswerIsUsed() {
        func pause(_ text: String) -> PushVerdict.Next {
            let fields = Fields([Fields.Field("retry-after", text)])
            let body = JSONWriter.write(["reason": "TooManyRequests"] as JSONObject)
            return APNsAnswer(Response(status: 429, fields: fields, body: body))
                .verdict(PushRequestState(sentAt: Self.sentAt)).push
        }
        #expect(pause("45") == .settle(.retry(after: .seconds(45), reason: "TooManyRequests")))
        #expect(pause("0") == .settle(.retry(after: .seconds(1), reason: "TooManyRequests")))
        #expect(pause("86400") == .settle(.retry(after: .seconds(600), reason: "TooManyRequests")))
        #expect(pause("soon") == .settle(.retry(after: .seconds(20), reason: "TooManyRequests")))
    }

    @Test(arguments: ["", "two\nlines", "schön", String(repeating: "x", count: 65)])
    func unprintableReasonIsOmitted(reason: String) {
        let body = JSONWriter.write(["reason": .string(reason)] as JSONObject)
        #expect(APNsAnswer(Response(status: 400, body: body)) == APNsAnswer(status: 400))
    }

    @Test func metricLabelsAreBounded() {
        #expect(APNsAnswer(status: 200).label == "Success")
        #expect(APNsAnswer(status: 400, reason: "Novelty").label == "Other")
        #expect(APNsAnswer(status: 503).label == "Other")
        for reason in RefusalReason.apple {
            #expect(APNsAnswer(status: reason.status, reason: reason.rawValue).label == reason.rawValue)
        }
    }

    @Test(arguments: ["", "<html>", "[]", "{\"reason\": 5}", "{\"reason\""])
    func unreadableBodyKeepsTheStatus(body: String) {
        let answer = APNsAnswer(Response(status: 503, body: Array(body.utf8)))
        #expect(answer == APNsAnswer(status: 503))
    }
}
