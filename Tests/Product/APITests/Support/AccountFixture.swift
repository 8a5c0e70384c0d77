import Bytes
import Domain
import HTTP
import JSON
import Relay
import TestSupport
import Testing
import World

@testable import API

/// Bob at the shop, with a phone that signs and a mail address to which codes go.
struct AccountFixture {
    static let page = "\(APIRig.browserOrigin)/phone/"

    let rig: APIRig
    let shop: Site
    let token: String
    let phone: TestPhone
    let device: String
    /// The phone as a caller.
    let site: Site

    init(
        _ kind: StoreKind = .memory, _ policies: [String: String] = [:], hasApp: Bool = true
    ) async throws {
        rig = try await APIRig(
            kind, browsers: BrowserAccess(origin: APIRig.browserOrigin, app: hasApp ? Self.page : nil))
        let usual = [
            "answers": "signed", "number": "0", "factors": "push,mail,recovery", "account-links": "mail",
            "further-factors": "website", "login-limit": "1000",
        ]
        shop = try await rig.site("shop", usual.merging(policies) { $1 })
        let answer = await shop.send("POST", "/register", ["username": "bob", "email": "bob@example.com"])
        token = try #require(answer["token"]?.string, "\(answer.text)")
        let code = try #require(answer["activation"]?.object?["code"]?.string, "\(answer.text)")
        phone = try TestPhone(pushToken: "push-of-bob")
        let bound = try await shop.verify(phone, token: token, code: code)
        device = try #require(bound["device"]?.string, "\(bound.text)")
        site = Site(rig: rig, certificate: phone.certificate(device: try #require(DeviceID(device))))
    }

    /// Opens a login of Bob.
    func login(_ change: (inout JSONObject) -> Void = { _ in }) async throws -> String {
        var body: JSONObject = ["username": "bob"]
        change(&body)
        let answer = await shop.send("POST", "/login", body)
        return try #require(answer["challenge"]?.string, "\(answer.text)")
    }

    /// Sends the phone's signed decision about a login, with the nonce and context that the phone got.
    func decide(_ decision: String, _ challenge: String, _ shown: JSONObject) async throws -> Response {
        let answer = try phone.decision(
            decision,
            about: TestPhone.Shown(
                challenge: challenge, nonce: try #require(shown["nonce"]?.string),
                context: try #require(shown["context"]?.string.flatMap { Base64URL.decode($0) })),
            device: device, origin: RelayRig.origin, at: rig.relay.time.now())
        return await site.send(
            "POST", decision == "approve" ? "/success" : "/failure",
            ["challenge": .string(challenge), "answer": .string(answer)])
    }

    /// Decides the pending login.
    func decide(_ decision: String, _ challenge: String) async throws -> Response {
        let pending = await site.send("POST", "/pending", [:])
        let shown = pending["pending"]?.array?.compactMap(\.object).first { $0["challenge"]?.string == challenge }
        return try await decide(decision, challenge, try #require(shown, "\(pending.text)"))
    }

    func state() throws -> String { try rig.relay.text("SELECT state FROM user WHERE username = 'bob'") }

    /// Gives the shop webhooks that stay in the outbox, because nobody knows their secret.
    func addWebhook() throws {
        try rig.relay.execute("UPDATE website SET webhook_url = 'https://shop.example.com/hook' WHERE name = 'shop'")
    }

    /// Lifts a freeze.
    func unlock() async throws {
        let answer = await shop.send("POST", "/user/bob/unlock", [:])
        try #require(answer.status == 204, "\(answer.text)")
        #expect(try state() == "active")
    }

    /// Sends the mails that are due. Returns all mails so far.
    func mails() async throws -> [Message] {
        rig.relay.time.advance(by: .seconds(1))
        try await rig.relay.on { relay in await relay.processDueEntries() }
        await rig.relay.settled()
        return rig.relay.mails.sent
    }

    /// Returns the text of the link in a mail.
    static func link(in mail: Message?) throws -> String {
        let address = try #require(mail?.accountAddress).reveal()
        let text = String(decoding: address, as: UTF8.self)
        let beginning = page + "#account="
        try #require(text.hasPrefix(beginning), "\(text)")
        return String(text.dropFirst(beginning.count))
    }

    /// Returns the text of the link in the newest mail.
    func link() async throws -> String { try Self.link(in: try await mails().last) }

    func open(_ link: String) async -> Response {
        await rig.stranger.send("POST", "/account", ["link": .string(link)])
    }

    func report(_ challenge: String, _ link: String) async -> Response {
        await rig.stranger.send("POST", "/account/report", ["link": .string(link), "challenge": .string(challenge)])
    }
}

extension Response {
    /// The logins of an account, the newest first.
    var logins: [JSONObject] { (self["logins"]?.array ?? []).compactMap(\.object) }

    /// A login of an account.
    func login(_ challenge: String) -> JSONObject? { logins.first { $0["challenge"]?.string == challenge } }
}
