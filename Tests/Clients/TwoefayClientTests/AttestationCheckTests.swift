import Attestation
import Bytes
import Crypto
import JSON
import SimulatedAttestation
import TestSupport
import Testing
import World

@testable import TwoefayClient

/// The check of a phone's attestation by a website, against a relay that lies.
@Suite struct AttestationCheckTests {
    private static let origin = "https://login.example.com:8080"
    private static let now = SimulatedCertificate.start

    private let authorities: SimulatedAuthorities
    private let iPhone: SimulatedIPhone
    private let key: P256PrivateKey
    private let phone: PinnedPhone

    init() throws {
        authorities = try SimulatedAuthorities()
        iPhone = try SimulatedIPhone(root: authorities.root)
        key = try P256PrivateKey.generate()
        phone = PinnedPhone(device: "d1", key: key.publicKey)
    }

    private func subject(
        audience: String = "\(origin)#shop", user: String = "token", code: String = "code", key: P256PublicKey? = nil
    ) -> AttestationSubject {
        AttestationSubject(audience: audience, user: user, activationCode: code, key: key ?? self.key.publicKey)
    }

    private func android(
        _ subject: AttestationSubject, key: P256PrivateKey? = nil,
        _ change: (inout SimulatedAndroid) -> Void = { _ in }
    ) throws -> AttestationStatement {
        var android = SimulatedAndroid()
        change(&android)
        return .android(
            chain: try authorities.chain(
                android, key: key ?? self.key, challenge: AttestationChallenge.android(subject)))
    }

    private func apple(_ subject: AttestationSubject) throws -> AttestationStatement {
        .apple(
            keyID: iPhone.keyID, object: try iPhone.object(SHA256.hash(AttestationChallenge.clientData(subject))))
    }

    /// The evidence as a relay shows it.
    private func shown(
        _ statement: AttestationStatement, code: String = "code", assertion: String? = nil
    ) throws -> PhoneAttestation {
        var json: JSONObject = [
            "verdict": "valid", "faults": [], "facts": ["platform": "ios"],
            "evidence": [
                "statement": .object(statement.json), "activation_code": .string(code),
                "judged_at": .string(Self.now.rfc3339),
            ],
        ]
        json.set("assertion", assertion.map { .string($0) })
        return try #require(try PhoneAttestation(.object(json)))
    }

    private func check(listAge: Duration? = .zero) throws -> AttestationCheck {
        let list = try listAge.map { age in
            try RevocationList(json: Array(#"{"entries":{}}"#.utf8), fetchedAt: Self.now - age)
        }
        return AttestationCheck(
            origin: Self.origin, website: "shop",
            by: AttestationVerifier(
                roots: AttestationRoots(apple: authorities.roots, android: authorities.roots),
                appleApps: [SimulatedIPhone.app], androidApps: [SimulatedAndroid.app], revocationList: list))
    }

    private func verified(
        _ attestation: PhoneAttestation?, code: String? = "code", at now: Timestamp = now, listAge: Duration? = .zero
    ) throws -> Result<AttestedDevice, AttestationCheckFault> {
        let check = try check(listAge: listAge)
        do throws(AttestationCheckFault) {
            return .success(try check.verified(attestation, of: phone, token: "token", code: code, at: now))
        } catch {
            return .failure(error)
        }
    }

    @Test func genuineAttestationsAreAccepted() throws {
        #expect(try verified(try shown(try android(subject()))).get().platform == .android)
        #expect(try verified(try shown(try apple(subject()))).get().hardware == .secureEnclave)
        #expect(try verified(try shown(try apple(subject())), code: nil).get().appAttest != nil)
    }

    /// Each of these the relay could show as `valid`.
    @Test func lyingRelayIsFound() throws {
        let other = try P256PrivateKey.generate()
        let lies: [(PhoneAttestation, AttestationCheckFault)] = [
            (try shown(try android(subject(audience: "\(Self.origin)#bank"))), .invalid(.challenge)),
            (try shown(try android(subject(user: "eve"))), .invalid(.challenge)),
            (try shown(try android(subject(code: "old"))), .invalid(.challenge)),
            (try shown(try android(subject(code: "old")), code: "old"), .activationCode),
            (try shown(try android(subject(key: other.publicKey), key: other)), .invalid(.key)),
            (try shown(try apple(subject(key: other.publicKey))), .invalid(.challenge)),
            (try shown(try android(subject()) { $0.package = "com.example.other" }), .invalid(.app)),
            (try shown(try android(subject()) { $0.keyLevel = 0 }), .invalid(.securityLevel)),
            (try shown(try android(subject()) { $0.isLocked = false }), .flawed([.unlocked])),
        ]
        for (lie, fault) in lies { #expect(try verified(lie) == .failure(fault)) }
        #expect(try verified(nil) == .failure(.noEvidence))
        #expect(try verified(try PhoneAttestation(["verdict": "valid", "faults": []])) == .failure(.noEvidence))
        let genuine = try shown(try android(subject()))
        #expect(try verified(genuine, at: Self.now + .seconds(31 * 86_400)) == .failure(.invalid(.validity)))
        #expect(try verified(genuine, listAge: nil) == .failure(.flawed([.revocationListMissing])))
        #expect(try verified(genuine, listAge: .seconds(8 * 86_400)) == .failure(.flawed([.revocationListStale])))
    }

    @Test func assertionMustBeOverTheReceipt() throws {
        let receipt = "the.signed.decision"
        func assertion(_ text: String, by iPhone: SimulatedIPhone) throws -> String {
            Base64URL.encode(try iPhone.assertion(SHA256.hash(Array(text.utf8)), counter: 7))
        }
        let statement = try apple(subject())
        let right = try shown(statement, assertion: try assertion(receipt, by: iPhone))
        let device = try verified(right).get()
        let check = try check()
        try check.verify(right, over: receipt, by: device)
        let other = try SimulatedIPhone(root: authorities.root)
        let wrongs = [
            try shown(statement, assertion: try assertion("another", by: iPhone)),
            try shown(statement, assertion: try assertion(receipt, by: other)),
        ]
        for wrong in wrongs {
            #expect(throws: AttestationCheckFault.invalid(.signature)) {
                try check.verify(wrong, over: receipt, by: device)
            }
        }
        #expect(throws: AttestationCheckFault.noAssertion) {
            try check.verify(try shown(statement), over: receipt, by: device)
        }
    }

    /// The page shows the code that this test compiles and runs.
    @Test func pageShowsThisCode() throws {
        let code = try TextFile.read("\(GuidePage.root)/Tests/Clients/TwoefayClientTests/Guide/AttestedPhone.swift")
        let page = try TextFile.read("\(GuidePage.root)/docs/websites/receipts.md")
        #expect(page.contains("```swift attestation\n\(code)```\n"))
        let receipt = "the.signed.decision"
        let assertion = Base64URL.encode(try iPhone.assertion(SHA256.hash(Array(receipt.utf8)), counter: 1))
        let attested = try attestedPhone()
        let device = try self.device(try apple(subject()), assertion)
        let facts = try attested.facts(device, token: "token", code: "code", now: Self.now)
        let (outcome, evidence) = try login(receipt, device)
        try attested.requireApp(outcome, evidence, of: facts)
        #expect(throws: AttestationCheckFault.activationCode) {
            try attested.facts(device, token: "token", code: "other", now: Self.now)
        }
        // An iPhone without an assertion is refused.
        let silent = try self.device(try apple(subject()), nil)
        let (unsigned, receiptOnly) = try login(receipt, silent)
        #expect(throws: AttestationCheckFault.noAssertion) {
            try attested.requireApp(unsigned, receiptOnly, of: facts)
        }
    }

    /// The code of the page admits phones with Android, which make no assertions.
    @Test func pageAdmitsAndroid() throws {
        let attested = try attestedPhone()
        let device = try self.device(try android(subject()), nil)
        let facts = try attested.facts(device, token: "token", code: "code", now: Self.now)
        let (outcome, evidence) = try login("the.signed.decision", device)
        try attested.requireApp(outcome, evidence, of: facts)
        let other = try self.device(try android(subject()) { $0.signature = [1] }, nil)
        #expect(throws: AttestationCheckFault.invalid(.app)) {
            try attested.facts(other, token: "token", code: "code", now: Self.now)
        }
    }

    private func attestedPhone() throws -> AttestedPhone {
        AttestedPhone(
            origin: Self.origin, website: "shop", phone: phone,
            roots: AttestationRoots(apple: authorities.roots, android: authorities.roots),
            signer: SimulatedAndroid().signature,
            revoked: try RevocationList(json: Array(#"{"entries":{}}"#.utf8), fetchedAt: Self.now))
    }

    /// The phone, as the relay shows it.
    private func device(_ statement: AttestationStatement, _ assertion: String?) throws -> Device {
        let shown = try shown(statement, assertion: assertion)
        return try Device(["device": "d1", "attestation": .object(try json(shown, assertion))])
    }

    /// A login with this receipt, by this phone.
    private func login(_ receipt: String, _ device: Device) throws -> (LoginOutcome, LoginEvidence) {
        let attestation = try #require(device.attestation)
        let assertion = attestation.assertion.map { Base64URL.encode($0) }
        let outcome = try LoginOutcome([
            "login": "success", "proof": "signed", "device": "d1", "receipt": .string(receipt), "context": "e30",
            "steps": [], "attestation": .object(try json(attestation, assertion)),
        ])
        return (outcome, try LoginEvidence(outcome))
    }

    private func json(_ shown: PhoneAttestation, _ assertion: String?) throws -> JSONObject {
        let evidence = try #require(shown.evidence)
        var json: JSONObject = [
            "verdict": "valid", "faults": [],
            "evidence": [
                "statement": .object(evidence.statement), "activation_code": .string(evidence.activationCode),
                "judged_at": .string(evidence.judgedAt.rfc3339),
            ],
        ]
        json.set("assertion", assertion.map { .string($0) })
        return json
    }
}
