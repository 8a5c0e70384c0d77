import Bytes
import TwoefayClient
import Webhooks
import World

/// A website that keeps its data in dictionaries instead of a database.
actor Shop {
    private let relay: RelayClient
    private let bindings: BindingCheck
    private let receipts: ReceiptCheck
    private let inbox: WebhookReceiver

    private var tokens: [String: String] = [:]
    private var secrets: [String: Secret] = [:]
    private var phones: [String: [PinnedPhone]] = [:]
    private var openRequests: Set<String> = []
    private var seenWebhooks: Set<String> = []

    /// - Parameters:
    ///   - origin: `https://login.example.com:8080`
    ///   - authority: the bytes of `ca.pem`; `certificate` and `key` those of `shop.pem` and `shop.key`.
    ///   - secrets: `WebhookSecret(text)` of `shop.secret` and, if it is there, of `shop.secret.new`.
    init(
        origin: String, authority: [UInt8], certificate: [UInt8], key: Secret, secrets: [WebhookSecret]
    ) throws {
        relay = try RelayClient(origin: origin, authority: authority, certificate: certificate, key: key)
        bindings = BindingCheck(origin: origin, website: "shop")
        receipts = ReceiptCheck(origin: origin, website: "shop", leastDigits: 2)
        inbox = WebhookReceiver(secrets: secrets)
    }

    /// Returns the URI that the new user's phone scans as a QR code; nil if the relay mails it.
    func register(_ username: String) async throws -> String? {
        let registered = try await relay.register(username, email: "\(username)@example.com")
        let k = Secret(SystemRandomness().bytes(32))  // the relay never sees it
        (tokens[username], secrets[username]) = (registered.token, k)
        return registered.activation?.uri(with: k)
    }

    /// Pins the keys of the user's phones. Call it once after the phone has scanned the code.
    func pinPhones(of username: String) async throws {
        guard let token = tokens[username], let k = secrets[username] else { return }
        phones[username] = try await relay.user(username).devices.map { device in
            try bindings.pinned(device, token: token, k: k)
        }
    }

    /// Opens a login. Keep the result in the visitor's session and show its number.
    func ask(_ username: String, ip: String) async throws -> OpenLogin {
        let login = try await relay.ask(LoginRequest(username: username, ip: ip, service: "members"))
        openRequests.insert(login.asked.request)
        return login
    }

    /// Waits for the decision. Returns true if the user's own phone approved exactly this login,
    /// and throws if the receipt is forged. Cancel the task when the visitor leaves.
    func isLetIn(_ login: OpenLogin) async throws -> Bool {
        let outcome = try await relay.wait(for: login)
        guard outcome.isSuccess else { return false }
        _ = try await receipts.approval(
            try LoginEvidence(outcome), to: login.asked, from: phones[login.asked.username] ?? [],
            at: SystemTime().now().seconds
        ) { openRequests.remove($0) != nil }  // a receipt is accepted once
        return true
    }

    /// Returns the HTTP status with which to answer a webhook.
    func receive(fields: [(name: String, value: String)], body: [UInt8]) async -> Int {
        do {
            let event = try await inbox.event(fields: fields, body: body) { seenWebhooks.insert($0).inserted }
            if case .loginDecided(let token, let outcome)? = event?.what { print(token, outcome.login) }
            return 204
        } catch is WebhookFault {
            return 400
        } catch {
            return 500
        }
    }
}
