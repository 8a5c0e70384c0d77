import Bytes
import Crypto
import Domain
import TestSupport
import Testing
import World

@testable import Relay

/// The sealed secret of an operation. It opens only for the same operation, verb, user and website.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct SealedSecretTests {
    /// Two verbs never run under one operation. If the store contains such a case, the secret of one verb does not
    /// answer the other.
    @Test(arguments: StoreKind.all, SecretVerb.allCases)
    func theSecretOfAnotherVerbIsNotOpened(kind: StoreKind, verb: SecretVerb) async throws {
        let fixture = try await StoredSecretFixture(try await RelayRig(kind))
        let operation = fixture.rig.relay.operations.new(isRepeatable: true)
        let given = try await fixture.run(verb, as: operation)
        let again = fixture.rig.relay.operations.again(operation.id)
        for other in SecretVerb.allCases where other != verb && other != .register {
            #expect(await refusal { try await fixture.run(other, as: again) } == .broken, "\(other)")
            #expect(fixture.sealedElsewhere(operation) == 1, "\(other)")
        }
        #expect(try await fixture.run(verb, as: again) == given)
    }

    /// The same for two users, of one website and of different websites.
    @Test(arguments: StoreKind.all, [SecretVerb.activate, .totp, .recovery])
    func theSecretOfAnotherUserIsNotOpened(kind: StoreKind, verb: SecretVerb) async throws {
        let fixture = try await StoredSecretFixture(try await RelayRig(kind))
        _ = try await Person.registered("bob", at: fixture.shop, fixture.rig)
        let bank = try await fixture.rig.shop("bank", ["further-factors": "website"])
        _ = try await Person.registered("ada", at: bank, fixture.rig)
        let operation = fixture.rig.relay.operations.new(isRepeatable: true)
        let given = try await fixture.run(verb, as: operation)
        for (username, website) in [("bob", fixture.shop), ("ada", bank)] {
            let refused = await refusal {
                try await fixture.rig.on {
                    try await verb.run(
                        at: $0, website, as: $0.operations.again(operation.id), username: username)
                }
            }
            #expect(refused == .broken, "\(username) of \(website.name)")
            #expect(fixture.sealedElsewhere(operation) == 1)
        }
        #expect(try await fixture.run(verb, as: fixture.rig.relay.operations.again(operation.id)) == given)
    }

    /// Two sealed values that were exchanged between their rows open in neither.
    @Test(arguments: StoreKind.all, SecretVerb.allCases)
    func exchangedSecretsAreNotOpened(kind: StoreKind, verb: SecretVerb) async throws {
        let fixture = try await StoredSecretFixture(try await RelayRig(kind))
        let other: SecretVerb = verb == .totp ? .recovery : .totp
        let (one, two) = (
            fixture.rig.relay.operations.new(isRepeatable: true), fixture.rig.relay.operations.new(isRepeatable: true)
        )
        _ = try await fixture.run(verb, as: one)
        _ = try await fixture.run(other, as: two)
        try fixture.exchange()
        for (verb, operation) in [(verb, one), (other, two)] {
            let again = fixture.rig.relay.operations.again(operation.id)
            #expect(await refusal { try await fixture.run(verb, as: again) } == .broken)
            #expect(fixture.sealedElsewhere(operation) == 1)
        }
    }

    /// The secret of one phone's revocation code does not open for another phone, and a row that no binding wrote
    /// does not open at all.
    @Test(arguments: StoreKind.all) func theSecretOfAnotherPhoneIsNotOpened(kind: StoreKind) async throws {
        let fixture = try await StoredSecretFixture(try await RelayRig(kind))
        let bob = try await Person.registered("bob", at: fixture.shop, fixture.rig)
        let (phone, other) = (try TestPhone(pushToken: "one"), try TestPhone(pushToken: "two"))
        _ = try #require(await fixture.ada.bind(phone, fixture.ada.code).bound)
        _ = try #require(await bob.bind(other, bob.code).bound)
        try fixture.exchange()
        #expect(await fixture.ada.bind(phone, fixture.ada.code).refusal == .broken)
        #expect(await bob.bind(other, bob.code).refusal == .broken)
    }

    /// A relay with a newer master key opens a secret that was sealed under an older one.
    @Test(arguments: StoreKind.all, SecretVerb.allCases)
    func theSecretOutlivesARekey(kind: StoreKind, verb: SecretVerb) async throws {
        let fixture = try await StoredSecretFixture(try await RelayRig(kind))
        let operation = fixture.rig.relay.operations.new(isRepeatable: true)
        let given = try await fixture.run(verb, as: operation)
        let (old, new) = (
            Sealer.Key(id: "1", key: Secret(Array(repeating: 7, count: 32))),
            Sealer.Key(id: "2", key: Secret(Array(repeating: 8, count: 32)))
        )
        fixture.rig.relay.replace(try Sealer(keys: [new, old]))
        try await fixture.rig.on { await $0.reseal() }
        #expect(try await fixture.run(verb, as: fixture.rig.relay.operations.again(operation.id)) == given)
    }
}
