import Domain
import TestSupport
import Testing
import World

@testable import Relay

/// The languages of codes: the person's own choice, then the language that the website stored for
/// the user, then what the browser or phone prefers.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct MessageLanguageTests {
    struct Sample: Sendable {
        let stored: String?
        let requested: RequestedLanguages
        let language: String?
    }

    static let samples = [
        Sample(stored: nil, requested: .none, language: nil),
        Sample(stored: nil, requested: RequestedLanguages(accepted: "en;q=0.5, de-AT"), language: "de-at,de,en"),
        Sample(stored: "en", requested: RequestedLanguages(accepted: "de"), language: "en,de"),
        Sample(stored: "en", requested: RequestedLanguages(chosen: "de", accepted: "fr"), language: "de,en,fr"),
        // A choice that names no language leaves the others as they are.
        Sample(stored: "de", requested: RequestedLanguages(chosen: "*", accepted: "de;q=0"), language: "de"),
    ]

    private static let address = "ada@example.com"

    @Test(arguments: StoreKind.all, samples)
    func codesAreInTheLanguageOfTheRequest(kind: StoreKind, sample: Sample) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop", ["addresses": "confirmed", "factors": "push,totp,mail"])
        @Sendable func operation() -> Operation { rig.relay.operations.new().speaking(sample.requested) }
        let (token, activation) = try await rig.on { relay in
            try await relay.register(
                Registration(
                    username: "ada", email: Self.address, phone: nil, displayName: nil, language: sample.stored),
                by: shop, as: operation())
        }
        let ada = Person(rig: rig, website: shop, username: "ada", token: token, code: try activation.code)
        let first = await rig.mails.next()
        #expect(first.language == sample.language)
        #expect(try await ada.confirm(Self.address, try addressCode(first)))

        _ = try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .token(token)), by: shop, as: operation())
        }
        #expect(await rig.mails.next().language == sample.language)

        // The user had an app, so the user must approve, and has only the mailbox left for that.
        _ = try await ada.withTOTP()
        try await ada.drop(.totp)

        // The approval of a change, which the website requests.
        guard case .approvalRequired? = await ada.refusedCode(as: operation()) else { throw RigFailure("not asked") }
        #expect(await rig.mails.next().language == sample.language)

        // The approval of a phone, which the phone requests.
        let waiting = try await rig.bind(
            try TestPhone(pushToken: "first"), user: token, code: ada.code, website: shop.name,
            languages: sample.requested)
        guard case .waiting = waiting else { throw RigFailure("\(waiting)") }
        #expect(await rig.mails.next().language == sample.language)
    }

    /// Somebody else may have caused the event, so the language of the request counts only if the
    /// website has stored none.
    @Test(arguments: StoreKind.all, [nil, "en"])
    func accountMailIsInTheStoredLanguageOrThatOfTheRequest(kind: StoreKind, stored: String?) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop")
        let (token, activation) = try await rig.on { relay in
            try await relay.register(
                Registration(username: "ada", email: Self.address, phone: nil, displayName: nil, language: stored),
                by: shop, as: relay.operations.new())
        }
        _ = try await rig.bind(
            try TestPhone(pushToken: "first"), user: token, code: try activation.code, website: shop.name,
            languages: RequestedLanguages(chosen: "de"))
        try await rig.round(after: .seconds(1))
        let bound = rig.mails.sent.filter {
            if case .announcement(.deviceBound, _, _) = $0.content { true } else { false }
        }
        #expect(bound.map(\.language) == [stored ?? "de"])
    }

    /// A phone that is to be bound has not proved whose it is.
    @Test func languagesWithoutProofComeAfterTheStoredOne() {
        let requested = RequestedLanguages(chosen: "fr", accepted: "de")
        #expect(requested.message(stored: "en") == "fr,en,de")
        #expect(requested.unproved.message(stored: "en") == "en,fr")
        #expect(requested.unproved.message(stored: nil) == "fr")
        #expect(RequestedLanguages(accepted: "de").unproved.message(stored: nil) == "de")
        let many = (0..<16).map { "aaaaaaaa-aaaaaa\(Character(UnicodeScalar(UInt8(97 + $0))))" }
        let longest = RequestedLanguages(chosen: many.joined(separator: ",")).message(stored: "de")
        #expect(longest?.utf8.count ?? 0 <= 256 && longest?.hasPrefix(many[0]) == true, "the store has 256 bytes")
    }

    /// The new language of a user counts for the code that the same request sends.
    @Test(arguments: StoreKind.all) func changedLanguageCountsAtOnce(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop")
        let ada = try await Person.registered("ada", at: shop, rig)
        _ = try await ada.change {
            $0.language = "de"
            $0.addresses.updateValue(Self.address, forKey: .mail)
        }
        #expect(await rig.mails.next().language == "de")
    }
}
