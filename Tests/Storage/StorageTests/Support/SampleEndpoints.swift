import Domain

@testable import Relay
@testable import Storage

extension Sample {
    /// Changes a website's webhook endpoint, as the operator's tool does.
    static func runEndpoints(on store: Store, _ operation: () -> Domain.Operation) async throws {
        // A website other than the one with all the webhooks: a statement that reads all rows would not use an
        // index.
        let website: WebsiteID = id(4)
        func secrets(_ byte: UInt8) -> WebhookEndpoints.Secrets {
            WebhookEndpoints.Secrets(sealed: [byte], sealedBy: "key")
        }
        let new = Websites.New(
            id: website, name: "club", displayName: "Club", policy: "{}",
            webhook: WebhookEndpoints.New(url: "https://club.example/", secrets: secrets(1)), keyThumbprint: [4],
            createdAt: now)
        _ = try await store.run(Websites.add(new, as: operation()))
        _ = try await store.run(WebhookEndpoints.find(caller))
        _ = try await store.run(
            WebhookEndpoints.rotate(caller, from: [1], to: secrets(2), previousUntil: now, at: now, as: operation()))
        _ = try await store.run(WebhookSecretAge.all)
        if let secrets = try await store.webhookSecrets(of: caller) {
            _ = try await store.recordFetch(of: secrets, previousUntil: now, at: now, as: operation())
            for last in [nil, secrets] {
                _ = try await store.agedWebhookSecrets(after: last, madeBefore: now, at: now)
            }
            _ = try await store.roll(secrets, to: [3], sealedBy: "key", at: now, as: operation())
        }
        _ = try await store.run(WebhookEndpoints.disable(caller, at: now, as: operation()))
        _ = try await store.run(WebhookEndpoints.enable(caller, at: now, as: operation()))
        _ = try await store.run(WebhookEndpoints.makeDue(caller, at: now, upTo: WebhookEndpoints.farthest))
        _ = try await store.run(WebhookEndpoints.countDead(caller, since: nil, until: now))
        _ = try await store.run(WebhookEndpoints.replay(caller, at: now, as: operation()))
        _ = try await store.run(WebhookEndpoints.replayDead(caller, since: now, at: now))
        func traits(_ webhook: String?) -> Websites.Traits {
            Websites.Traits(displayName: "Club", policy: "{}", webhook: webhook)
        }
        let places = ["https://club.example/", "https://club.example/hook", nil]
        for (old, new) in zip(places, places.dropFirst()) {
            _ = try await store.run(
                Websites.edit(website, from: traits(old), to: traits(new), at: now, as: operation()))
        }
        _ = try await store.run(WebhookEndpoints.drop(website))
    }
}
