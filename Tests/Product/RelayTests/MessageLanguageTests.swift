import Domain
import TestSupport
import Testing
import World

@testable import Relay

/// The language of codes: the person's own choice, or else the language that the website stored for
/// the user, or else what the browser or phone prefers.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct MessageLanguageTests {
    struct Sample: Sendable {
        let stored: String?
        let requested: RequestedLanguages
        let language: String?
    }

    static let samples = [
        Sample(stored: nil, requested: .none, language: nil),
        Sample(stored: nil, requested: RequestedLanguages(accepted: "de-AT, en;q=0.5"), language: "de-AT, en;q=0.5"),
        Sample(stored: "en", requested: RequestedLanguages(accepted: "de"), language: "en"),
        Sample(stored: "en", requested: RequestedLanguages(chosen: "de", accepted: "fr"), language: "de"),
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
