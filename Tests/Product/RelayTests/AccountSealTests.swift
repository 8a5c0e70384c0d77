import Bytes
import Domain
import JSON
import TestSupport
import Testing
import World

@testable import Relay

/// Accounts in a store that seals personal values.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AccountSealTests {
    @Test(arguments: StoreKind.all, [true, false]) func contextsAndAddressesAreOpened(
        kind: StoreKind, seals: Bool
    ) async throws {
        let page = "https://phone.example.com/phone/"
        let rig = try await RelayRig(
            kind, seals: seals, browsers: BrowserAccess(origin: "https://phone.example.com", app: page))
        let shop = try await rig.shop(
            "shop", ["answers": "signed", "account-links": "mail", "factors": "push,mail"])
        let ada = try await Person.registered("ada", at: shop, rig, email: "ada@example.com")
        let phone = try await ada.bound(try TestPhone(pushToken: "first"), ada.code)
        let asked = try await rig.on { relay in
            try await relay.login(
                LoginRequest(subject: .token(ada.token), service: "Web shop"), by: shop, as: relay.operations.new())
        }
        let account = try await rig.on { try await $0.account(for: phone) }
        #expect(account.logins.map(\.login.challenge) == [asked.challenge])
        let context = try #require(account.logins.first?.login.context)
        #expect(try JSONReader.read(context).object?["service"] == "Web shop")
        #expect(account.factors.map(\.maskedAddress) == ["a…@example.com"])
        // The notice about the phone goes to the address of the factor.
        try await rig.round(after: .seconds(1))
        let address = try #require(rig.mails.sent.last?.accountAddress)
        #expect(String(decoding: address.reveal(), as: UTF8.self).hasPrefix("\(page)#account="))
    }
}
