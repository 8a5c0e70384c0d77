import Bytes
import Crypto
import Domain
import Log
import TestSupport
import Testing
import Webhooks
import World

@testable import Relay
@testable import Storage

/// The master key was leaked and is rotated. An attacker holds the old key, and a copy of the whole store after the
/// rotation.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct KeyRotationTests {
    private static let old = Sealer.Key(id: "1", key: RelayRig.masterKey)
    private static let new = Sealer.Key(id: "2", key: Secret(Array(repeating: 9, count: 32)))

    @Test(arguments: StoreKind.all) func oldMasterKeyAndStoreRevealNoSecret(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let given = try await fixture.secretsOfEveryKind()
        #expect(given.count == 20 && Set(given.map(\.name)).count == 20)
        try await fixture.rotate(from: Self.old, to: Self.new)

        let stolen = try Stolen(fixture.rig.store)
        #expect(stolen.values.count > 100)
        #expect(stolen.operations.count > 5)
        // A check of the search itself: it finds secrets that are derived in the old way.
        let controls = try stolen.oldConstruction(with: Self.old.key)
        #expect(stolen.derived(with: Self.old.key, among: controls) == Set(controls.map(\.name)))
        for name in stolen.derived(with: Self.old.key, among: given) {
            Issue.record("\(name) follows from the old key and an id in the store")
        }
        for name in stolen.shown(among: given) { Issue.record("\(name) stands in the store") }
        #expect(stolen.sealed(under: Self.old.id) == 0)
        #expect(stolen.sealed(under: Self.new.id) >= 4)
        for line in fixture.rig.sink.lines {
            for secret in given where secret.texts.contains(where: { line.contains($0) }) {
                Issue.record("\(secret.name) stands in the log")
            }
        }
        // Sealed values open under the new key alone, even if their header names the old one.
        let pretended = Sealer.Key(id: Self.new.id, key: Self.old.key)
        for (sealed, associated) in try fixture.sealedRows() {
            #expect(try !Sealer(keys: [Self.new]).open(sealed, associated: associated).isEmpty)
            for key in [Self.old, pretended] {
                #expect(throws: SealFailure.self) { try Sealer(keys: [key]).open(sealed, associated: associated) }
            }
        }
        // The secrets from before the rotation still work.
        try fixture.rig.execute("UPDATE user SET state = 'frozen', stopped_by = 'phone'")
        #expect(try await fixture.ada.unlock(by: fixture.recoveryCode))
    }

    /// A secret that the relay has issued, as bytes and as the texts that were shown.
    private struct Given {
        let name: String
        let bytes: [UInt8]
        var texts: [String] = []
        /// Whether the store must hold it: one is shown again, another is sent by its owner.
        var isStored = false
    }

    private struct Fixture {
        let rig: RelayRig
        let shop: Website
        let ada: Person
        let activation: String
        let recoveryCode: String
        private let first: [Given]

        init(_ kind: StoreKind) async throws {
            rig = try await RelayRig(kind)
            shop = try await rig.shop(
                "shop", ["number": "6", "further-factors": "website"], webhook: "https://shop.example/twoefay")
            let shop = shop
            let (token, code) = try await rig.on { relay in
                let registered = try await relay.register(
                    Registration(
                        username: "ada", email: "ada@example.com", phone: "+4915112345678", displayName: nil,
                        language: nil), by: shop, as: repeatable(at: relay))
                return (registered.token, try registered.activation.code)
            }
            ada = Person(rig: rig, website: shop, username: "ada", token: token, code: code)
            activation = code
            let codes = try await ada.addRecoveryCodes(as: repeatable(at: rig.relay))
            recoveryCode = codes[0]
            var first = [
                Given(name: "token", bytes: token.bytes, isStored: true),
                Given(name: "activation", bytes: try #require(Base64URL.decode(code)), texts: [code]),
            ]
            for (number, code) in codes.enumerated() {
                let bytes = try #require(Base32.decode(code.filter { $0 != "-" }))
                first.append(Given(name: "recovery code \(number)", bytes: bytes, texts: [code]))
            }
            self.first = first
        }

        /// Creates every kind of secret that the relay makes, for websites, users and phones.
        func secretsOfEveryKind() async throws -> [Given] {
            var given = first
            let phone = try TestPhone(pushToken: "push")
            guard let bound = await ada.bind(phone, activation).bound else { throw RigFailure("not bound") }
            given.append(try Self.text("revocation", bound.revocationCode))
            given.append(
                try Self.text("further activation", try await ada.furtherCode(as: repeatable(at: rig.relay))))
            let setup = try await ada.addTOTP(as: repeatable(at: rig.relay))
            #expect(try await ada.confirm(try ada.code(setup.secret)))
            let totp = try #require(Base32.decode(setup.secret))
            given.append(Given(name: "totp", bytes: totp, texts: [setup.secret, Hex.encode(totp)]))
            for kind in ["mail", "sms"] {
                let row = try #require(try rows("WHERE kind = '\(kind)'").first)
                let secret = try RelayRig.sealer().open(row.sealed, associated: row.associated)
                given.append(Given(name: kind, bytes: secret, texts: [Hex.encode(secret)]))
            }
            let earlier = try #require(try await ada.login().number)
            let asked = try await ada.login()
            let credential = try await ada.credential(phone, bound.device)
            let shown = try await rig.shown(asked.challenge, to: credential)
            let number = try #require(asked.number)
            given.append(Given(name: "number", bytes: Array((earlier + number).utf8), isStored: true))
            given.append(Given(name: "nonce", bytes: try #require(Base64URL.decode(shown.nonce)), isStored: true))
            let webhook = RelayRig.webhookSecret
            given.append(Given(name: "webhook", bytes: webhook.key.reveal(), texts: []))
            // An answer that is stored for an Idempotency-Key.
            let request = IdempotentRequest(website: shop.id, route: "r", key: "k", content: [])
            try await rig.on { relay in
                guard case .run(let operation) = try await relay.begin(request) else { throw RigFailure("kept") }
                try await relay.finish(request, operation, status: 201, body: [1, 2, 3], holdsSecret: false)
            }
            return given
        }

        private static func text(_ name: String, _ text: String) throws -> Given {
            Given(name: name, bytes: try #require(Base64URL.decode(text)), texts: [text])
        }

        /// Runs the steps of `twoefay rekey`: add the key, use it, and drop the old key when nothing is sealed
        /// under it.
        func rotate(from old: Sealer.Key, to new: Sealer.Key) async throws {
            rig.relay.replace(try Sealer(keys: [Sealer.Key(id: new.id, key: new.key, isNext: true), old]))
            rig.relay.replace(try Sealer(keys: [new, old]))
            let rows = try RowAuthenticator(
                keys: [new, old].map { RowAuthenticator.Key(id: $0.id, secret: $0.key) })
            rig.store.use(rows)
            rig.time.advance(by: Relay.keptFor + .seconds(1))
            let store = rig.store
            let left = try await rig.on { relay in
                await relay.reseal()
                await relay.deleteExpiredRows()
                // Counts the same rows as `rekey --finish`.
                var left = try await store.run(KeyUse.answers(sealedBy: old.id))
                for use in [KeyUse.factors, KeyUse.webhooks, KeyUse.operations] {
                    left += try await store.run(use)[old.id] ?? 0
                }
                left += try await store.run(RowQueries.counts(of: rows))[old.id] ?? 0
                return left
            }
            try #require(left == 0)
            rig.relay.replace(try Sealer(keys: [new]))
        }

        /// The sealed secrets of factors.
        private func rows(_ condition: String) throws -> [(sealed: [UInt8], associated: [UInt8])] {
            let read = Statement("SELECT id, kind, user_id, secret FROM factor \(condition)")
            return try rig.store.runBlocking(Script("test", reads: [read()]))[0].map { row in
                let (id, user): (FactorID, UserID) = (try row.id("id"), try row.id("user_id"))
                let associated = FactorSeal.associated(
                    website: shop.id, user: user, kind: try row.word("kind"), row: id)
                return (try row.blob("secret"), associated)
            }
        }

        func sealedRows() throws -> [(sealed: [UInt8], associated: [UInt8])] {
            let secrets = Statement("SELECT secrets FROM webhook_endpoint")
            let webhooks = try rig.store.runBlocking(Script("test", reads: [secrets()]))[0].map { row in
                (sealed: try row.blob("secrets"), associated: WebhookSecretSeal.associated(website: shop.id))
            }
            return try rows("WHERE secret IS NOT NULL") + webhooks
        }
    }

    /// The values of all tables.
    private struct Stolen {
        let values: [SQLValue]
        private let ids: [[UInt8]]
        private let digests: [[UInt8]]
        let operations: Set<[UInt8]>

        init(_ store: Store) throws {
            var values: [SQLValue] = []
            for piece in SchemaText.sql.split(separator: "CREATE TABLE IF NOT EXISTS ").dropFirst() {
                let table = piece.prefix { $0 != " " }
                let read = Statement("SELECT * FROM \(table)")
                values += try store.runBlocking(Script("test", reads: [read()]))[0].values
            }
            self.values = values
            let blobs = values.compactMap { if case .blob(let bytes) = $0 { bytes } else { nil } }
            ids = Array(Set(blobs.filter { $0.count == 16 }))
            digests = Array(Set(blobs.filter { $0.count == 32 }))
            let read = Statement("SELECT operation FROM audit")
            let audit = try store.runBlocking(Script("test", reads: [read()]))[0]
            operations = Set(try audit.map { try $0.blob("operation") })
        }

        private static let labels =
            ["totp secret", "sms secret", "mail secret", "activation", "revocation", "nonce", "token", "number"]
            + (0..<10).map { "recovery code \($0)" }

        /// Finds secrets that derive from the key. Secrets were once HMAC(HMAC(master key, "twoefay operations"),
        /// operation's id and a label). The ids of some operations were HMAC(that key, a label and their subject).
        func derived(with key: Secret, among given: [Given]) -> Set<String> {
            let key = Secret(HMAC.sha256(key: key, Array("twoefay operations".utf8)))
            var known: [[UInt8]: String] = [:]
            for secret in given where secret.bytes.count >= 8 { known[Array(secret.bytes.prefix(8))] = secret.name }
            // Two numbers, because one number of six digits can match by chance.
            let numbers = given.first { $0.name == "number" }.map { number in
                [Array(number.bytes.prefix(6)), Array(number.bytes.suffix(6))]
            }
            var met: Set<[UInt8]> = []
            var found: Set<String> = []
            // The id of the phone with this user and this key.
            for user in ids {
                for digest in digests {
                    let phone = Array(HMAC.sha256(key: key, Array("device".utf8) + [0] + user + digest).prefix(16))
                    let start = Array(HMAC.sha256(key: key, phone + Array("revocation".utf8)).prefix(8))
                    if let name = known[start] { found.insert(name) }
                }
            }
            for operation in ids {
                for label in Self.labels {
                    let start = Array(HMAC.sha256(key: key, operation + Array(label.utf8)).prefix(8))
                    if let name = known[start] { found.insert(name) }
                    let value = start.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } % 1_000_000
                    let digits = String(repeating: "0", count: 6 - String(value).count) + String(value)
                    if label == "number" { met.insert(Array(digits.utf8)) }
                }
            }
            if let numbers, met.isSuperset(of: numbers) { found.insert("number") }
            return found
        }

        /// Derives secrets in the old way, which the search must find: the secret of an operation in the audit, and
        /// the revocation code of a phone.
        func oldConstruction(with key: Secret) throws -> [Given] {
            let key = Secret(HMAC.sha256(key: key, Array("twoefay operations".utf8)))
            let operation = try #require(operations.first)
            let (user, thumbprint) = (try #require(ids.first), try #require(digests.first))
            let phone = Array(HMAC.sha256(key: key, Array("device".utf8) + [0] + user + thumbprint).prefix(16))
            let totp = HMAC.sha256(key: key, operation + Array("totp secret".utf8)).prefix(20)
            let revocation = HMAC.sha256(key: key, phone + Array("revocation".utf8)).prefix(15)
            return [Given(name: "totp", bytes: Array(totp)), Given(name: "revocation", bytes: Array(revocation))]
        }

        func shown(among given: [Given]) -> [String] {
            given.filter { secret in
                !secret.isStored
                    && values.contains { value in
                        switch value {
                        case .blob(let bytes): bytes.contains(secret.bytes)
                        case .text(let text): secret.texts.contains { text.contains($0) }
                        case .integer, .null, .personal: false
                        }
                    }
            }.map(\.name)
        }

        func sealed(under id: String) -> Int {
            values.count { value in
                if case .blob(let bytes) = value { bytes.starts(with: Sealer.beginning(underKey: id)) } else { false }
            }
        }
    }
}

/// Returns an operation as a request under an Idempotency-Key has it.
private func repeatable(at relay: Relay) -> Domain.Operation { relay.operations.new(isRepeatable: true) }
