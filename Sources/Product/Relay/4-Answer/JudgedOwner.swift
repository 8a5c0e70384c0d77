import Attestation
import Domain
import JSON
import Log

/// The facts about a page that approves, and its owner's proof, as they are stored with the login.
public struct WebAnswer: Sendable, Equatable {
    /// The origin of the page; nil if the phone has named none.
    public let app: String?
    /// Whether the page comes from a host that the relay does not serve, now and when the phone was
    /// bound. False if the page has named no origin.
    public let isApart: Bool
    /// The accepted assertion over the receipt; nil if there is none.
    public let assertion: OwnerAssertion?

    public init(app: String?, isApart: Bool, assertion: OwnerAssertion?) {
        self.app = app
        self.isApart = isApart
        self.assertion = assertion
    }

    /// Reads the stored text; nil if it is that of another kind of assertion.
    public init?(stored text: String) {
        guard text.hasPrefix("{"), let object = (try? JSONReader.read(Array(text.utf8)))?.object else { return nil }
        self.init(
            app: object["app"]?.string, isApart: object["apart"] == true,
            assertion: object["webauthn"].flatMap { OwnerAssertion(json: $0) })
    }

    /// The text for the store.
    public var stored: String {
        var object: JSONObject = ["apart": .bool(isApart)]
        show(in: &object)
        return JSONWriter.text(.object(object))
    }

    /// Adds what the website needs to verify the owner's check itself.
    func show(in result: inout JSONObject) {
        result.set("app", app.map { .string($0) })
        result.set("webauthn", assertion.map { .object($0.json) })
    }

    /// The assurance of an answer by this page. A page that the relay serves can be another one for
    /// each visitor, so the relay would have to be trusted: it never gives `high`.
    func limit(_ assurance: Assurance) -> Assurance { isApart ? assurance : min(assurance, .substantial) }
}

/// The owner of a page that approves.
///
/// The phone's word that it has verified its user (`uv`) is worth as much as its app. A native app
/// binds the check to the key. A page cannot do this, so its word counts only with an assertion of
/// the authenticator over the same decision. It then counts as `passcode`, because WebAuthn does
/// not say which check it was.
///
/// The platform decides that a phone is a page, and not its claims: the row of a phone is signed,
/// and a missing row of claims must give no right.
///
/// Tests: `RelayTests/WebAnswerTests.swift`.
extension Relay {
    /// - Parameter assertion: the object that the phone sent; nil if it sent none.
    /// - Returns: nil if the phone is not a page.
    func judgeOwner(
        receipt: String?, assertion: JSONValue?, of row: ChallengeRow, by phone: PhoneCredential
    ) async throws(Refusal) -> WebAnswer? {
        guard phone.platform == .web else { return nil }
        let page = try await withStore("web phone") { () async throws(StoreFailure) in
            try await store.webPhone(phone.id)
        }
        var accepted: OwnerAssertion?
        if let assertion, let receipt {
            do throws(OwnerAssertion.Fault) {
                guard let read = OwnerAssertion(json: assertion) else { throw .malformed }
                guard let claims = page?.claims, let passkey = claims.passkey else { throw .credential }
                try read.verify(over: receipt, by: passkey, of: claims.app)
                accepted = read
            } catch {
                log.notice(
                    "owner.refused",
                    [
                        .reason: error.rawValue, .website: phone.website.name, .user: phone.user.text,
                        .device: phone.id.text, .challenge: row.id.text,
                    ])
            }
        }
        let isApart = page.map { $0.isApart && !$0.claims.isServed(by: ownHosts) } ?? false
        return WebAnswer(app: page?.claims.app, isApart: isApart, assertion: accepted)
    }
}

extension UserVerification {
    /// The verification that counts for an answer.
    ///
    /// - Parameter web: what the answer says about its page; nil for a native phone.
    func counted(_ web: WebAnswer?) -> UserVerification {
        guard let web else { return self }
        return web.assertion == nil ? .none : min(self, .passcode)
    }
}
