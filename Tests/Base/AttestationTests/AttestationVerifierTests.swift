import Attestation
import Bytes
import Crypto
import JSON
import SimulatedAttestation
import TestSupport
import Testing
import World

@Suite struct AttestationVerifierTests {
    private static let now = SimulatedCertificate.start
    private let authorities: SimulatedAuthorities
    private let apple: SimulatedIPhone
    private let key: P256PrivateKey
    private let subject: AttestationSubject

    init() throws {
        authorities = try SimulatedAuthorities()
        apple = try SimulatedIPhone()
        key = try P256PrivateKey.generate()
        subject = AttestationSubject(
            audience: "https://login.example.com#shop", user: "token", activationCode: "code", key: key.publicKey)
    }

    private func list(age: Duration) throws -> RevocationList {
        try RevocationList(json: Array(#"{"entries":{}}"#.utf8), fetchedAt: Self.now - age)
    }

    private func verifier(
        list: RevocationList? = nil, acceptsDevelopment: Bool = false
    ) -> AttestationVerifier {
        AttestationVerifier(
            roots: AttestationRoots(apple: [apple.root.certificate], android: authorities.roots),
            appleApps: [SimulatedIPhone.app], androidApps: [SimulatedAndroid.app], revocationList: list,
            maxListAge: .seconds(86_400), acceptsDevelopment: acceptsDevelopment)
    }

    private func android(_ change: (inout SimulatedAndroid) -> Void = { _ in }) throws -> AttestationStatement {
        var android = SimulatedAndroid()
        change(&android)
        return .android(
            chain: try authorities.chain(android, key: key, challenge: AttestationChallenge.android(subject)))
    }

    private func apple(
        _ change: (inout SimulatedIPhone) -> Void = { _ in }, for subject: AttestationSubject? = nil
    ) throws -> AttestationStatement {
        var apple = apple
        change(&apple)
        let clientData = AttestationChallenge.clientData(subject ?? self.subject)
        return .apple(keyID: apple.keyID, object: try apple.object(SHA256.hash(clientData)))
    }

    private func judge(
        _ statement: AttestationStatement?, _ requirement: AttestationRequirement = .required,
        by verifier: AttestationVerifier
    ) -> AttestationOutcome {
        judge(statement, .all(requirement), by: verifier)
    }

    private func judge(
        _ statement: AttestationStatement?, _ requirements: AttestationRequirements, by verifier: AttestationVerifier
    ) -> AttestationOutcome {
        verifier.judge(statement, for: subject, requirements: requirements, at: Self.now)
    }

    @Test func faultlessAttestationsAreAdmitted() throws {
        let verifier = verifier(list: try list(age: .seconds(86_400)))
        for statement in [try android(), try apple()] {
            let outcome = judge(statement, by: verifier)
            #expect(outcome.faults == [])
            #expect(outcome.device?.platform == statement.platform)
            #expect(outcome.admits)
        }
    }

    @Test func factsAreWrittenAsThePageListsThem() throws {
        let verifier = verifier(list: try list(age: .zero))
        let android = try #require(judge(try android(), by: verifier).device)
        #expect(
            android.json == [
                "platform": "android", "hardware": "tee", "app": "com.example.app", "app_version": "42",
                "os_version": "15.0.1", "patch_level": 202_607, "boot_state": "verified", "locked": true,
                "user_authentication": "none",
                "root": .string(Base64URL.encode(authorities.root.certificate.spkiThumbprint)),
            ])
        let ios = try #require(judge(try apple(), by: verifier).device)
        #expect(
            ios.json == [
                "platform": "ios", "hardware": "secure_enclave", "app": "TEAM123456.com.example.app",
                "environment": "production", "root": .string(Base64URL.encode(apple.root.certificate.spkiThumbprint)),
            ])
        let page = try TextFile.read("\(Vectors.project)/docs/phones/attestation.md")
        for name in Set(android.json.names + ios.json.names) { #expect(page.contains("`\(name)`"), "\(name)") }
    }

    @Test func missingAttestationIsRefusedOnlyIfRequired() {
        #expect(!judge(nil, .required, by: verifier()).admits)
        #expect(judge(nil, .required, by: verifier()).faults == [.missing])
        #expect(judge(nil, .recorded, by: verifier()).admits)
        #expect(judge(nil, .recorded, by: verifier()).faults == [.missing])
        #expect(judge(nil, .none, by: verifier()).admits)
        #expect(judge(nil, .none, by: verifier()).faults == [])
    }

    @Test func provenPlatformSelectsTheRequirement() throws {
        let fresh = verifier(list: try list(age: .zero))
        let unlocked = try android { $0.isLocked = false }
        let development = try apple { $0.aaguid = Array("appattestdevelop".utf8) }
        for (weaker, isRecorded) in [(AttestationRequirement.recorded, true), (.none, false)] {
            let laxForAndroid = AttestationRequirements(ios: .required, android: weaker)
            let phone = judge(unlocked, laxForAndroid, by: fresh)
            #expect(phone.requirement == weaker && phone.admits)
            #expect(phone.faults == (isRecorded ? [.unlocked] : []))
            // The platform is proved in any case.
            #expect(phone.device?.platform == .android)
            #expect(!judge(development, laxForAndroid, by: fresh).admits)

            let laxForIOS = AttestationRequirements(ios: weaker, android: .required)
            #expect(judge(development, laxForIOS, by: fresh).admits)
            let refused = judge(unlocked, laxForIOS, by: fresh)
            #expect(refused.requirement == .required && refused.faults == [.unlocked] && !refused.admits)
        }
    }

    @Test func phoneThatProvesNoPlatformMeetsTheStricterRequirement() throws {
        let fresh = verifier(list: try list(age: .zero))
        let forged = AttestationStatement.android(
            chain: try SimulatedAuthorities("another").chain(
                SimulatedAndroid(), key: key, challenge: AttestationChallenge.android(subject)))
        let cases: [(AttestationStatement?, AttestationFault)] = [
            (nil, .missing), (.android(chain: []), .malformed), (.apple(keyID: [], object: []), .malformed),
            (forged, .root),
        ]
        for (statement, fault) in cases {
            for weaker in [AttestationRequirement.recorded, .none] {
                for requirements in [
                    AttestationRequirements(ios: .required, android: weaker),
                    AttestationRequirements(ios: weaker, android: .required),
                ] {
                    let outcome = judge(statement, requirements, by: fresh)
                    #expect(outcome.requirement == .required && outcome.faults == [fault] && !outcome.admits)
                }
            }
            let recorded = judge(statement, AttestationRequirements(ios: .none, android: .recorded), by: fresh)
            #expect(recorded.requirement == .recorded && recorded.faults == [fault] && recorded.admits)
        }
    }

    @Test func forgedAttestationIsRecordedWithoutFacts() throws {
        let statement = AttestationStatement.android(
            chain: try SimulatedAuthorities("another").chain(
                SimulatedAndroid(), key: key, challenge: AttestationChallenge.android(subject)))
        let recorded = judge(statement, .recorded, by: verifier())
        #expect(recorded.admits && recorded.device == nil && recorded.faults == [.root])
        #expect(!judge(statement, .required, by: verifier()).admits)
        #expect(judge(statement, .none, by: verifier()).faults == [])
    }

    @Test func attestationForAnotherEnrolmentIsRefused() throws {
        let fresh = verifier(list: try list(age: .zero))
        // A stale challenge: the same phone and key, with an earlier activation code.
        let earlier = AttestationSubject(
            audience: subject.audience, user: subject.user, activationCode: "earlier", key: subject.key)
        #expect(judge(try apple(for: earlier), by: fresh).faults == [.challenge])
        let chain = try authorities.chain(
            SimulatedAndroid(), key: key, challenge: AttestationChallenge.android(earlier))
        #expect(judge(.android(chain: chain), by: fresh).faults == [.challenge])
        // A changed key: the attestation was made for another phone's key.
        let other = AttestationSubject(
            audience: subject.audience, user: subject.user, activationCode: subject.activationCode,
            key: try P256PrivateKey.generate().publicKey)
        #expect(judge(try apple(for: other), by: fresh).faults == [.challenge])
        #expect(fresh.judge(try android(), for: other, requirements: .all(.required), at: Self.now).faults == [.key])
    }

    @Test func developmentIsAcceptedOnlyIfAllowed() throws {
        let statement = try apple { $0.aaguid = Array("appattestdevelop".utf8) }
        let outcome = judge(statement, by: verifier())
        #expect(outcome.faults == [.development] && !outcome.admits)
        #expect(outcome.device?.environment == .development)
        #expect(judge(statement, by: verifier(acceptsDevelopment: true)).admits)
    }

    @Test func bootStateKeepsAPhoneOut() throws {
        let fresh = verifier(list: try list(age: .zero))
        #expect(judge(try android { $0.bootState = 1 }, by: fresh).faults == [.bootState])
        #expect(judge(try android { $0.isLocked = false }, by: fresh).faults == [.unlocked])
        #expect(judge(try android { $0.bootState = nil }, by: fresh).faults == [.bootState, .unlocked])
        let outcome = judge(try android { $0.bootState = 2 }, .recorded, by: fresh)
        #expect(outcome.admits && outcome.device?.boot == .unverified)
    }

    @Test func listMustExistAndBeFresh() throws {
        #expect(judge(try android(), by: verifier()).faults == [.revocationListMissing])
        let stale = verifier(list: try list(age: .seconds(86_401)))
        #expect(judge(try android(), by: stale).faults == [.revocationListStale])
        #expect(judge(try android(), .recorded, by: stale).admits)
        // A list that was dated while the clock was wrong would otherwise stay fresh for years.
        let nearlyNow = verifier(list: try list(age: .seconds(-600)))
        #expect(judge(try android(), by: nearlyNow).faults == [])
        let future = verifier(list: try list(age: .seconds(-601)))
        #expect(judge(try android(), by: future).faults == [.revocationListStale])
        // Apple's attestations need no list.
        #expect(judge(try apple(), by: verifier()).admits)
    }

    @Test func statementsAreReadAsTheyWereWritten() throws {
        for statement in [try android(), try apple()] {
            #expect(try AttestationStatement(json: .object(statement.json)) == statement)
        }
    }

    @Test(
        "Statements of another form are refused",
        arguments: [
            ("[]", .malformed), ("{}", .malformed), (#"{"format":1}"#, .malformed), (#"{"format":"packed"}"#, .format),
            (#"{"format":"android-key"}"#, .malformed), (#"{"format":"android-key","chain":[1]}"#, .malformed),
            (#"{"format":"android-key","chain":["AA=="]}"#, .malformed),
            (#"{"format":"android-key","chain":[],"more":1}"#, .malformed),
            (#"{"format":"android-key","chain":["","","","","","",""]}"#, .size),
            (#"{"format":"apple-appattest","key_id":"AA"}"#, .malformed),
            (#"{"format":"apple-appattest","key_id":"AA","object":1}"#, .malformed),
            (#"{"format":"apple-appattest","key_id":"\#(String(repeating: "A", count: 44))","object":""}"#, .size),
            (
                #"{"format":"android-key","chain":["\#(String(repeating: "A", count: 5463))"]}"#, .size
            ),
        ] as [(String, AttestationFault)])
    func otherFormsAreRefused(json: String, fault: AttestationFault) throws {
        let value = try JSONReader.read(Array(json.utf8))
        #expect(throws: fault) { try AttestationStatement(json: value) }
    }

    @Test func pinnedRootsAreThePublishedOnes() throws {
        let roots = try AttestationRoots.pinned()
        // The fingerprints as `openssl x509 -fingerprint -sha256` prints them for the published
        // files.
        #expect(
            roots.apple.map { Hex.encode(SHA256.hash($0.der)) }
                == ["1cb9823ba28ba6ad2d33a006941de2ae4f513ef1d4e831b9f7e0fa7b6242c932"])
        #expect(
            roots.android.map { Hex.encode(SHA256.hash($0.der)) }
                == [
                    "cedb1cb6dc896ae5ec797348bce9286753c2b38ee71ce0fbe34a9a1248800dfc",
                    "6d9db4ce6c5c0b293166d08986e05774a8776ceb525d9e4329520de12ba4bcc0",
                ])
    }

    @Test func furtherRootsAreForTheirPlatformOnly() throws {
        let pem = try authorities.root.certificate.pem()
        let roots = try AttestationRoots.pinned(furtherAndroid: pem)
        #expect(roots.android.last == authorities.root.certificate && roots.android.count == 3)
        #expect(roots.apple.count == 1)
        #expect(try AttestationRoots.pinned(furtherApple: pem).apple.count == 2)
        #expect(throws: CryptoFailure.self) { try AttestationRoots.pinned(furtherApple: Array(pem.prefix(100))) }
    }

    @Test func everyFaultHasItsOwnNameAndMessage() {
        #expect(Set(AttestationFault.allCases.map(\.message)).count == AttestationFault.allCases.count)
        for fault in AttestationFault.allCases {
            #expect(fault.rawValue.utf8.allSatisfy { $0 == UInt8(ascii: "_") || (0x61...0x7a).contains($0) })
        }
    }
}
