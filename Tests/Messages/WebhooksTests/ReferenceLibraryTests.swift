import Bytes
import TestSupport
import Testing
import Webhooks
import World

@Suite(
    "The reference library for Python", .timeLimit(.minutes(5)), .mayBlock,
    .enabled(if: ReferenceLibrary.isInstalled, "standardwebhooks is not installed; run: dev/need test"))
struct ReferenceLibraryTests {
    private let bodies = [
        #"{"type":"login.decided","timestamp":"2026-11-22T05:00:00.000Z","data":{"login":"success"}}"#, "{}", "",
        #"{"name":"Zoë 😀 \" \\ ."}"#,
    ]
    private let now = SystemTime().now()
    private let secret = WebhookSecret.make(SystemRandomness())
    private let former = WebhookSecret.make(SystemRandomness())

    private func plain(_ secret: WebhookSecret) -> String { String(decoding: secret.text.reveal(), as: UTF8.self) }

    private func webhook(
        _ body: String, for secret: WebhookSecret, by secrets: [WebhookSecret], at sent: Timestamp
    ) throws -> [String] {
        let head = WebhookHeaders(
            id: try #require(WebhookID("0123456789abcdef0123456789abcdef")), body: Array(body.utf8), at: sent,
            secrets: secrets)
        return [plain(secret)] + head.fields.map(\.value) + [body]
    }

    @Test func referenceLibraryAcceptsOurWebhooks() async throws {
        var given = try bodies.map { try webhook($0, for: secret, by: [secret], at: now) }
        given.append(try webhook("{}", for: secret, by: [secret, former], at: now))
        given.append(try webhook("{}", for: former, by: [secret, former], at: now))
        #expect(try await ReferenceLibrary.verdicts(given) == given.map { _ in "accepted" })
    }

    @Test func referenceLibraryRefusesTheSameWebhooks() async throws {
        var changed = try webhook("{}", for: secret, by: [secret], at: now)
        changed[4] = "{ }"
        let given = [
            changed, try webhook("{}", for: former, by: [secret], at: now),
            try webhook("{}", for: secret, by: [secret], at: now - .seconds(600)),
            try webhook("{}", for: secret, by: [secret], at: now + .seconds(600)),
        ]
        #expect(
            try await ReferenceLibrary.verdicts(given) == [
                "refused: No matching signature found", "refused: No matching signature found",
                "refused: Message timestamp too old", "refused: Message timestamp too new",
            ])
        let faults: [WebhookFault] = [.signature, .signature, .tooOld, .tooNew]
        for (webhook, fault) in zip(given, faults) {
            let fields = zip(WebhookHeaders.Field.allCases.map(\.rawValue), webhook[1...3]).map {
                (name: $0, value: $1)
            }
            #expect(
                Published.fault(of: fields, body: Array(webhook[4].utf8), secrets: [webhook[0]], at: now) == fault)
        }
    }

    @Test func webhookOfTheReferenceLibraryIsAccepted() async throws {
        let signed = try await ReferenceLibrary.signed(bodies.enumerated().map { [plain(secret), "msg_\($0)", $1] })
        try #require(signed.count == bodies.count)
        for (fields, body) in zip(signed, bodies) {
            let named = zip(WebhookHeaders.Field.allCases.map(\.rawValue), fields).map { (name: $0, value: $1) }
            let check = WebhookCheck(secrets: [former, secret])
            try check.verify(named, body: Array(body.utf8), at: SystemTime().now())
        }
    }
}
