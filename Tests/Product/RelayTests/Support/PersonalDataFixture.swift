import Bytes
import DeliveryOutcomes
import Domain
import Log
import TestSupport
import World

@testable import Relay
@testable import Storage

/// A shop with two users, of whom one has every kind of personal value.
struct PersonalDataFixture: Sendable {
    static let mail = "ada@example.com"
    static let otherMail = "ada@example.org"
    static let number = "+4366012345678"
    static let pushToken = "push-token-of-ada"
    static let address = "203.0.113.7"
    static let payee = "Coffee and cake"
    static let reason = "Ada has lost her bag"
    static let values = [mail, otherMail, number, pushToken, address, payee, reason]

    let rig: RelayRig
    let shop: Website
    let ada: Person
    let bob: Person

    init(_ kind: StoreKind, seals: Bool) async throws {
        try await self.init(over: try await kind.lent(), seals: seals)
    }

    init(over place: FreshStore, seals: Bool) async throws {
        let rig = try await RelayRig(over: place, time: TestTime(), seals: seals)
        let shop = try await rig.shop("shop", ["answers": "signed", "further-factors": "website"])
        self.rig = rig
        self.shop = shop
        ada = try await Self.register("ada", email: Self.mail, phone: Self.number, at: shop, rig)
        bob = try await Self.register("bob", email: "bob@example.net", phone: nil, at: shop, rig)
    }

    private static func register(
        _ username: String, email: String?, phone: String?, at shop: Website, _ rig: RelayRig
    ) async throws -> Person {
        let (token, activation) = try await rig.on { relay in
            try await relay.register(
                Registration(username: username, email: email, phone: phone, displayName: nil, language: nil),
                by: shop, as: relay.operations.new())
        }
        return Person(rig: rig, website: shop, username: username, token: token, code: try activation.code)
    }

    func register(_ username: String, email: String?, phone: String?) async throws -> Person {
        try await Self.register(username, email: email, phone: phone, at: shop, rig)
    }

    /// Puts every personal value of Ada into the store: a phone with its push token, a login with
    /// its context, a waiting address, a mail that waits in the outbox, and words of an operator.
    func useEveryValue() async throws {
        let (store, time) = (rig.store, rig.time)
        try await rig.on { relay in
            try await store.run(
                ProgramEvents.record("test", note: Self.reason, at: time.now(), as: relay.operations.new()))
        }
        rig.mails.answerOtherwise { _ in .retry(after: nil, reason: "busy") }
        let phone = try TestPhone(pushToken: Self.pushToken)
        let credential = try await ada.bound(phone, ada.code)
        _ = try await ada.change { $0.addresses.updateValue(Self.otherMail, forKey: .mail) }
        let token = ada.token
        let asked = try await rig.on { relay in
            try await relay.login(
                LoginRequest(
                    subject: .token(token), ip: Self.address,
                    details: [Context.Detail(label: "For", value: Self.payee)]),
                by: shop, as: relay.operations.new())
        }
        await rig.settled()
        let shown = try await rig.shown(asked.challenge, to: credential)
        let text = String(decoding: shown.context, as: UTF8.self)
        guard text.contains(Self.address), text.contains(Self.payee) else { throw RigFailure("the phone saw \(text)") }
        guard rig.pushes.sent.last?.deviceToken == Self.pushToken else { throw RigFailure("the push went elsewhere") }
    }

    /// Whether website and relay still see Ada's values.
    func seesItsValues() async throws -> Bool {
        let user = try await rig.on { relay in try await relay.user(named: ada.username, of: shop) }
        let factors = try await ada.factors().map(\.address)
        let devices = try await ada.devices().map(\.pushToken)
        return user.email == Self.mail && user.phone == Self.number && factors.contains(Self.otherMail)
            && factors.contains(Self.number) && devices == [Self.pushToken]
    }

    /// Whether Bob is told that another user has the address.
    func isRefusedToBob(_ address: String) async throws -> Bool {
        let bob = bob
        let refused = await refusal { try await bob.change { $0.addresses.updateValue(address, forKey: .mail) } }
        if case .conflict = refused { return true }
        return false
    }

    func use(seals: Bool) throws { rig.store.use(PersonalSealer(try RelayRig.sealer(), seals: seals)) }

    /// Changes the setting, and lets the relay rewrite all rows.
    @discardableResult func seal(_ seals: Bool) async throws -> PersonalSealingRun {
        try use(seals: seals)
        let store = rig.store
        return try await rig.on { relay in
            await relay.sealPersonalValues()
            guard let run = try await store.run(PersonalSealingRuns.last) else { throw RigFailure("no run") }
            return run
        }
    }

    /// The personal values that a copy of the store shows.
    func shownByStore() throws -> Set<String> {
        let shown = try rig.shownByStore()
        return Set(Self.values.filter { wanted in shown.contains { $0.contains(Array(wanted.utf8)) } })
    }

    /// The personal values that the log shows.
    var shownByLog: [String] {
        Self.values.filter { value in rig.sink.lines.contains { $0.contains(value) } }
    }

    /// The rows with personal values, with their MACs.
    func contents() throws -> Set<[SQLValue]> {
        var all: Set<[SQLValue]> = []
        for sql in [
            "SELECT id, email, phone, former_email, mac FROM user", "SELECT id, address, mac FROM factor",
            "SELECT digest, address, mac FROM activation", "SELECT id, address, mac FROM outbox",
            "SELECT id, push_token, mac FROM device", "SELECT id, context, receipt, mac FROM challenge",
            "SELECT id, address, mac FROM recovery", "SELECT operation, note, changes, reason FROM audit_detail",
        ] {
            for row in try rig.store.runBlocking(Script("test", reads: [Statement(sql)()]))[0] {
                all.insert(try (0..<row.count).map { try row.value(at: $0) })
            }
        }
        return all
    }
}

extension RelayRig {
    /// All bytes that a copy of the store shows: the values of all tables, and the content of the
    /// signed statements among them.
    func shownByStore() throws -> [[UInt8]] {
        var shown: [[UInt8]] = []
        for piece in SchemaText.sql.split(separator: "CREATE TABLE IF NOT EXISTS ").dropFirst() {
            let table = piece.prefix { $0 != " " }
            let read = Statement("SELECT * FROM \(table)")
            for row in try store.runBlocking(Script("test", reads: [read()]))[0] {
                for column in 0..<row.count { shown += try row.value(at: column).shown }
            }
        }
        return shown
    }
}

extension SQLValue {
    /// The bytes of the value, and those of each part of a JWS.
    fileprivate var shown: [[UInt8]] {
        switch self {
        case .text(let text): [Array(text.utf8)] + text.split(separator: ".").compactMap { Base64URL.decode($0) }
        case .blob(let bytes): [bytes]
        case .null, .integer, .personal: []
        }
    }
}
