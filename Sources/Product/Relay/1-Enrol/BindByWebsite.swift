import Domain
import Log
import World

/// Binding by the website, as the original product does it.
extension Relay {
    /// Binds the device token of a user's phone for its website. The website's policy must be
    /// `answers: website`.
    public func bind(
        token: UserToken, pushToken: String, by website: Website, as operation: Operation
    ) async throws(Refusal) -> DeviceID {
        guard website.policy.answers == .website else {
            let answers = website.policy.answers.rawValue
            throw .forbidden(
                LocalizedText(
                    "This website's policy is answers: \(answers)",
                    de: "Die Richtlinie dieser Website ist answers: \(answers)"))
        }
        let user = try await withStore("verify") { () async throws(StoreFailure) in
            try await store.user(token: token, of: website.id, at: time.now())
        }
        guard let user else { throw .notFound }
        guard user.state != .disabled, user.state != .expired else { throw Self.barred(user.state) }
        try requireIdentity(of: user, website)
        try requireUsable(pushToken, of: .other)
        let device = NewDevice(
            id: operations.fixed("website phone", user.id.bytes).identifier("device"), user: user.id, name: nil,
            platform: .other, environment: .production, pushToken: pushToken, publicKey: nil, thumbprint: nil,
            revocation: nil, binding: nil, at: time.now())
        let bound = try await withStore("verify") { () async throws(StoreFailure) in
            try await store.bindByWebsite(device, website: website.id, as: operation)
        }
        switch bound {
        case .done: break
        case .gone: throw .notFound
        case .blockedByOperator: throw .stopped("device resume \(device.id.text)")
        }
        log.info("device.bound", [.website: website.name, .user: user.id.text, .device: device.id.text])
        scheduleWebhooks()
        return device.id
    }
}
