import Bytes
import Domain
import TestSupport
import Testing
import Webhooks
import World

@testable import Relay
@testable import Storage

/// Two operators, or an operator and a relay, change one webhook endpoint. The later change fails, and its author
/// gets an error.
struct WebhookEndpointGuardTests {
    private let website: WebsiteID = Sample.id(3)
    private let operations = Operations(
        masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SystemRandomness())
    private let now = Sample.now

    private func secrets(_ byte: UInt8) -> WebhookEndpoints.Secrets {
        WebhookEndpoints.Secrets(sealed: [byte], sealedBy: "key")
    }
    private func traits(_ webhook: String?) -> Websites.Traits {
        Websites.Traits(displayName: "Club", policy: "{}", webhook: webhook)
    }

    private func withClub(_ engine: Engine, _ body: (Store) async throws -> Void) async throws {
        let database = try engine.database(Migration.all)
        defer { withExtendedLifetime(database) {} }
        let store = try database.open()
        defer { store.close() }
        let club = Websites.New(
            id: website, name: "club", displayName: "Club", policy: "{}",
            webhook: WebhookEndpoints.New(url: "https://club.example/", secrets: secrets(1)), keyThumbprint: [3],
            createdAt: now)
        #expect(try await store.run(Websites.add(club, as: operations.new())))
        try await body(store)
    }

    private func health(_ store: Store) async throws -> WebhookHealth.State? {
        try await store.run(WebhookEndpoints.find(website))?.health.state
    }

    private func changes(_ store: Store) async throws -> Int64 {
        try await store.run(Script("count", reads: [Self.countChanges()])).row(0).integer("count")
    }

    private static let countChanges = Statement("SELECT count(*) AS count FROM audit WHERE event <> 'website.added'")

    @Test(arguments: Engine.allCases) func concurrentSecretRotationsCountOnce(_ engine: Engine) async throws {
        try await withClub(engine) { store in
            for (byte, isFirst) in [(2, true), (3, false)] as [(UInt8, Bool)] {
                let rotated = try await store.run(
                    WebhookEndpoints.rotate(
                        website, from: [1], to: secrets(byte), previousUntil: now + .seconds(byte == 2 ? 60 : 90),
                        at: now,
                        as: operations.new()))
                #expect(rotated == isFirst)
            }
            let view = try #require(try await store.run(WebhookEndpoints.find(website)))
            #expect(view.sealed == [2] && view.previousUntil == now + .seconds(60))
            #expect(try await changes(store) == 1)
        }
    }

    @Test(arguments: Engine.allCases) func outdatedEditLeavesTheWebhookURL(_ engine: Engine) async throws {
        try await withClub(engine) { store in
            let stale = traits("https://elsewhere.example/")
            for new in [traits(nil), traits("https://club.example/hook")] {
                let isEdited = try await store.run(
                    Websites.edit(website, from: stale, to: new, secrets: secrets(9), at: now, as: operations.new()))
                #expect(!isEdited)
            }
            let kept = try await store.run(WebhookEndpoints.find(website))
            #expect(kept?.sealed == [1])
            #expect(try await changes(store) == 0)

            // If the endpoint is as it was read, its secret is deleted with the webhook URL, and a new URL brings a
            // new secret.
            let own = traits("https://club.example/")
            #expect(
                try await store.run(Websites.edit(website, from: own, to: traits(nil), at: now, as: operations.new())))
            #expect(try await store.run(WebhookEndpoints.find(website)) == nil)
            let again = operations.new()
            for _ in 0..<2 {
                #expect(
                    try await store.run(
                        Websites.edit(website, from: traits(nil), to: own, secrets: secrets(2), at: now, as: again)))
            }
            #expect(try await store.run(WebhookEndpoints.find(website))?.sealed == [2])
        }
    }

    @Test(arguments: Engine.allCases) func endpointIsDisabledAndEnabledOnce(_ engine: Engine) async throws {
        try await withClub(engine) { store in
            let later = now + .seconds(5)
            #expect(try await store.run(WebhookEndpoints.disable(website, at: now, as: operations.new())))
            #expect(try await !store.run(WebhookEndpoints.disable(website, at: later, as: operations.new())))
            let disabled = try await health(store)
            #expect(disabled == .disabled(.operator, since: now))
            #expect(try await store.run(WebhookEndpoints.enable(website, at: later, as: operations.new())))
            #expect(try await !store.run(WebhookEndpoints.enable(website, at: later, as: operations.new())))
            let enabled = try await health(store)
            #expect(enabled == .working)
            let changed = try await changes(store)
            #expect(changed == 2)
        }
    }

    @Test(arguments: Engine.allCases) func webhooksOfALiveEndpointAreNotDropped(_ engine: Engine) async throws {
        try await withClub(engine) { store in
            let row = Statement(
                """
                INSERT INTO outbox (id, kind, event, website_id, created_at, webhook_due_at, attempts)
                VALUES (:entry, 'webhook', 'user.locked', :website, :now, :now, 0)
                """)
            let calls = [Sample.id(70), Sample.id(71)] as [OutboxEntryID]
            _ = try await store.run(
                Script(
                    "calls",
                    writes: calls.map { row(entry: .id($0), website: .id(website), now: .timestamp(now)) }))
            func waiting() async throws -> Int64? { try await store.run(WebhookEndpoints.find(website))?.waiting }
            #expect(try await !store.run(WebhookEndpoints.drop(website)))
            #expect(try await waiting() == 2)
        }
    }
}
