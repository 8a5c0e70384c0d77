import Domain
import Relay
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// New recovery codes that count only when one of them, named by its position, was typed back.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RecoveryCheckTests {
    private func person(_ kind: StoreKind, _ check: String = "on") async throws -> Person {
        let rig = try await RelayRig(kind)
        return try await Person.registered("ada", at: try await rig.shop("shop", ["recovery-check": check]), rig)
    }

    private func new(_ ada: Person, as operation: Domain.Operation? = nil) async throws -> (
        codes: [String], asked: String, other: String
    ) {
        let operation = operation ?? ada.rig.relay.operations.new()
        let new = try await ada.rig.on { relay in
            try await relay.addRecoveryCodes(username: "ada", approval: nil, by: ada.website, as: operation)
        }
        let position = try #require(new.position)
        try #require((1...10).contains(position))
        return (new.codes, new.codes[position - 1], new.codes[position % 10])
    }

    private func confirm(_ ada: Person, _ code: String, as operation: Domain.Operation? = nil) async throws -> Bool {
        let operation = operation ?? ada.rig.relay.operations.new()
        return try await ada.rig.on { relay in
            try await relay.confirmRecoveryCodes(username: "ada", code: code, by: ada.website, as: operation)
        }
    }

    private func freeze(_ ada: Person) throws {
        try ada.rig.execute("UPDATE user SET state = 'frozen', stopped_by = 'phone'")
    }

    @Test(arguments: StoreKind.all) func codesCountAfterTheAskedOneWasTyped(kind: StoreKind) async throws {
        let ada = try await person(kind)
        let new = try await new(ada)
        #expect(try await ada.login().missing == [.factor, .recovery])
        #expect(try await ada.factors().map(\.state) == [.waiting])
        // Not confirmed, they unlock nobody.
        try freeze(ada)
        #expect(await refusal { try await ada.unlock(by: new.asked) } != nil)
        try ada.rig.execute("UPDATE user SET state = 'active', stopped_by = NULL")
        // Another code of the same list is wrong, and counts.
        #expect(try await !confirm(ada, new.other))
        #expect(try ada.rig.count("SELECT code_failures FROM user") == 1)
        #expect(await refusal { try await confirm(ada, new.asked) } == .limited(retryAfter: .seconds(5)))
        ada.rig.time.advance(by: .seconds(5))
        let operation = ada.rig.relay.operations.new(isRepeatable: true)
        #expect(try await confirm(ada, new.asked.uppercased(), as: operation))
        #expect(try await confirm(ada, new.asked, as: ada.rig.relay.operations.again(operation.id)))
        #expect(try await ada.login().missing == [.factor])
        #expect(try await ada.factors().map(\.state) == [.active])
        // The code was not used up, and a confirmed list cannot be confirmed again.
        #expect(try ada.rig.count("SELECT count(*) FROM recovery_code WHERE used_at IS NULL") == 10)
        #expect(await refusal { try await confirm(ada, new.asked) } != nil)
        try freeze(ada)
        #expect(try await ada.unlock(by: new.asked))
    }

    /// A customer who saved nothing keeps the codes that they have.
    @Test(arguments: StoreKind.all) func earlierCodesCountUntilTheNewOnesDo(kind: StoreKind) async throws {
        let ada = try await person(kind)
        let first = try await new(ada)
        #expect(try await confirm(ada, first.asked))
        let second = try await new(ada)
        #expect(try ada.rig.count("SELECT count(*) FROM recovery_code") == 20)
        #expect(try await ada.login().missing.contains(.recovery))
        try freeze(ada)
        #expect(try await !ada.unlock(by: second.asked))
        ada.rig.time.advance(by: .seconds(5))
        #expect(try await ada.unlock(by: first.codes[0]))
        // A list that was never confirmed is replaced by the next one.
        let third = try await new(ada)
        #expect(try ada.rig.count("SELECT count(*) FROM recovery_code") == 20)
        #expect(try await !confirm(ada, second.asked))
        ada.rig.time.advance(by: .seconds(5))
        #expect(try await confirm(ada, third.asked))
        #expect(try ada.rig.count("SELECT count(*) FROM recovery_code") == 10)
        try freeze(ada)
        #expect(try await !ada.unlock(by: first.codes[1]))
        ada.rig.time.advance(by: .seconds(5))
        #expect(try await ada.unlock(by: third.codes[0]))
        try await ada.drop(.recovery)
        #expect(try ada.rig.count("SELECT count(*) FROM recovery_code") == 0)
    }

    /// After the check was switched off, a list that waited must not replace a newer one.
    @Test(arguments: StoreKind.all) func codesThatCountAtOnceReplaceAWaitingList(kind: StoreKind) async throws {
        let ada = try await person(kind)
        let first = try await new(ada)
        #expect(try await confirm(ada, first.asked))
        let second = try await new(ada)
        #expect(try await !confirm(ada, second.other))
        ada.rig.time.advance(by: .seconds(5))
        let website = Website(id: ada.website.id, name: "shop", displayName: "Shop", policy: Policy())
        let unchecked = Person(rig: ada.rig, website: website, username: "ada", token: ada.token, code: "")
        let third = try await unchecked.addRecoveryCodes()
        #expect(try await ada.factors().map(\.state) == [.active])
        #expect(try ada.rig.count("SELECT count(*) FROM recovery_code") == 10)
        // The wrong code stays counted.
        #expect(try ada.rig.count("SELECT code_failures FROM user") == 1)
        #expect(await refusal { try await confirm(ada, second.asked) } != nil)
        try freeze(ada)
        #expect(try await ada.unlock(by: third[0]))
    }

    @Test(arguments: StoreKind.all) func withoutTheCheckCodesCountAtOnce(kind: StoreKind) async throws {
        let ada = try await person(kind, "off")
        let codes = try await ada.addRecoveryCodes()
        #expect(try await ada.login().missing == [.factor])
        #expect(await refusal { try await confirm(ada, codes[0]) } != nil)
        try freeze(ada)
        #expect(try await ada.unlock(by: codes[0]))
    }

    /// Somebody who can write to the database cannot confirm a list, or move a code to another one.
    @Test(arguments: StoreKind.all) func forgedListIsRefused(kind: StoreKind) async throws {
        let ada = try await person(kind)
        let new = try await new(ada)
        try ada.rig.forge("UPDATE recovery_code SET position = 11 - position")
        #expect(await refusal { try await confirm(ada, new.codes[0]) } == .broken)
        let other = try await person(kind)
        let codes = try await self.new(other)
        try freeze(other)
        try other.rig.forge("UPDATE factor SET state = 'active'")
        #expect(await refusal { try await other.unlock(by: codes.asked) } == .broken)
        #expect(try other.rig.count("SELECT count(*) FROM user WHERE state = 'active'") == 0)
    }

    /// Wrong codes are guesses: they lock codes like any other.
    @Test(arguments: StoreKind.all) func wrongCodesLock(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop", ["recovery-check": "on", "guesses": "2"])
        let ada = try await Person.registered("ada", at: shop, rig)
        let new = try await new(ada)
        for pause in [5, 10] {
            #expect(try await !confirm(ada, new.other))
            rig.time.advance(by: .seconds(pause))
        }
        #expect(await refusal { try await confirm(ada, new.asked) } == .codesLocked)
    }
}
