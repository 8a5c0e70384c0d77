import Bytes
import Crypto
import Domain
import Log
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// A verb that returns a secret to its website once.
enum SecretVerb: CaseIterable {
    case register, activate, totp, recovery

    /// Runs the verb, and returns the texts that the website gets.
    func run(
        at relay: Relay, _ website: Website, as operation: Domain.Operation, username: String = "ada"
    ) async throws -> [String] {
        switch self {
        case .register:
            let given = try await relay.register(
                Registration(
                    username: "bob", email: "bob@example.com", phone: nil, displayName: nil, language: nil),
                by: website, as: operation)
            return [given.token.text, try given.activation.code]
        case .activate:
            return [try await relay.activate(username: username, by: website, as: operation).code]
        case .totp:
            return [
                try await relay.addTOTP(
                    username: username, shape: CodeShape(), approval: nil, by: website, as: operation
                ).secret
            ]
        case .recovery:
            return try await relay.addRecoveryCodes(
                username: username, approval: nil, by: website, as: operation
            ).codes
        }
    }
}

/// A user, Ada, at a shop that needs no approval.
struct StoredSecretFixture {
    let rig: RelayRig
    let ada: Person
    var shop: Website { ada.website }

    init(_ rig: RelayRig) async throws {
        self.rig = rig
        let shop = try await rig.shop("shop", ["further-factors": "website"])
        ada = try await Person.registered("ada", at: shop, rig)
    }

    func run(
        _ verb: SecretVerb, as operation: Domain.Operation, at relay: Relay? = nil
    ) async throws -> [String] {
        let shop = shop
        return try await rig.on { try await verb.run(at: relay ?? $0, shop, as: operation) }
    }

    /// Checks that the given codes are the ones that the store accepts, and that it accepts no
    /// others.
    func check(_ given: [String], of verb: SecretVerb) async throws {
        let count = try rig.count("SELECT count(*) FROM \(verb == .recovery ? "recovery_code" : "activation")")
        switch verb {
        case .register, .activate:
            let digest = Hex.encode(SHA256.hash(Array((given.last ?? "").utf8)))
            #expect(try rig.count("SELECT count(*) FROM activation WHERE digest = x'\(digest)'") == 1)
            #expect(count == 2)
            if verb == .register {
                #expect(try rig.count("SELECT count(*) FROM user WHERE token = x'\(given[0])'") == 1)
            }
        case .totp:
            let code = try ada.code(given[0])
            #expect(try await ada.confirm(code))
        case .recovery:
            #expect(count == 10)
            let user = try await rig.on { [shop] in try await $0.user(named: "ada", of: shop).id }
            for code in given {
                let digest = Hex.encode(try #require(RecoveryCode.digest(code, user: user)))
                #expect(try rig.count("SELECT count(*) FROM recovery_code WHERE digest = x'\(digest)'") == 1)
            }
        }
    }

    var kept: Int64 {
        get throws { try rig.count("SELECT count(*) FROM operation_secret") }
    }

    /// Exchanges the sealed values of the two existing rows.
    func exchange() throws {
        let rows = try ["min", "max"].map { end in
            let row = "operation = (SELECT \(end)(operation) FROM operation_secret)"
            return (
                id: try rig.text("SELECT hex(operation) FROM operation_secret WHERE \(row)"),
                sealed: try rig.text("SELECT hex(sealed) FROM operation_secret WHERE \(row)")
            )
        }
        for (row, other) in zip(rows, rows.reversed()) {
            try rig.forge("UPDATE operation_secret SET sealed = x'\(other.sealed)' WHERE operation = x'\(row.id)'")
        }
    }

    /// Returns how many new log lines say that the secret of this operation does not open.
    func sealedElsewhere(_ operation: Domain.Operation) -> Int {
        rig.sink.drain().count { $0.contains("event=operation.sealed ") && $0.contains(operation.id.text) }
    }
}
