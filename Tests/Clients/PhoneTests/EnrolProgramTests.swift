import Bytes
import Crypto
import EventLoop
import HTTP
import JSON
import TestSupport
import Testing
import World

@testable import Phone

/// The commands for the phone itself, with a scripted relay.
@Suite("twoefay phone: enrolment", .timeLimit(.minutes(15))) struct EnrolProgramTests {
    private let owner: Owner
    private let relay: FakeRelay

    init() throws {
        owner = try Owner()
        relay = try FakeRelay()
    }

    private func uri(_ address: WebAddress) -> String {
        "twoefay://enrol?relay=\(address.text)&website=shop&token=ab12&code=f91r8F9C"
            + "&pin=\(Base64URL.encode(relay.authority.keyThumbprint))"
    }

    /// Answers the next /verify for any key.
    private func verify(_ revocation: String = "revocation-1") {
        let relay = relay
        relay.answer { asked in
            let proof = try JWS.parse(asked.body["proof"]?.string ?? "")
            let key = try P256PublicKey(jwk: proof.header["jwk"] ?? .null)
            return [
                "login": "verified", "device": "d1", "certificate": try relay.certificate("d1", key),
                "revocation_code": .string(revocation),
            ]
        }
    }

    @Test func keyFileIsPrivate() async throws {
        verify()
        let bound = try await relay.run { _, address in
            try await owner.phone("enrol", uri(address), "--name", "Alice's", "--json")
        }
        try #require(bound.status == 0, "\(bound.errors)")
        let event = try #require(try bound.events.first)
        #expect(event["event"] == "verified" && event["device"] == "d1")
        #expect(event["revocation_code"] == "revocation-1")
        #expect(TemporaryDirectory.mode(of: owner.keys) == 0o700)
        let path = try #require(event["path"]?.string)
        #expect(TemporaryDirectory.mode(of: path) == 0o600)
        let text = try TextFile.read(path)
        #expect(!text.contains("revocation-1") && !text.contains("f91r8F9C"))
        let kept = try owner.kept()
        #expect(relay.asked[0].body["dev_token"] == nil && kept.pushToken == nil)
        #expect(kept.device == "d1" && kept.name == "Alice's" && kept.thumbprint == event["thumbprint"]?.string)

        let listed = try await owner.phone("list", "--json")
        let phones = try #require(try listed.events.first?["phones"]?.array)
        #expect(phones.count == 1 && phones[0].object?["device"] == "d1")
        let shown = try await owner.phone("show")
        #expect(shown.output.contains("device: d1\nstate: bound\nwebsite: shop\n"))
        #expect(!shown.output.contains("PRIVATE"))

        // Another user who reads the file could act as the phone.
        _ = try await Child.run("chmod", ["644", path])
        for command in ["list", "show", "watch", "approve"] {
            let more = ["watch": ["--auto", "deny"], "approve": ["--challenge", "c1"]][command] ?? []
            let ended = try await owner.begin([command, "--json", "--keys", owner.keys] + more).ended()
            #expect(ended.status == 1)
            #expect(ended.failure?.contains("can be read by others") == true, "\(ended.errors)")
        }
    }

    @Test func enrolWaitsForApproval() async throws {
        relay.answer(200, ["login": "wait", "device": "d1", "number": "47"])
        verify()
        let bound = try await relay.run { _, address in try await owner.phone("enrol", uri(address), "--json") }
        try #require(bound.status == 0, "\(bound.errors)")
        let events = try bound.events
        #expect(events.map { $0["event"] } == ["wait", "verified"])
        #expect(events[0]["number"] == "47")
        #expect(try events[0]["thumbprint"]?.string == owner.kept().thumbprint)
        #expect(relay.asked[0].body == relay.asked[1].body)
    }

    @Test func interruptedEnrolmentIsResumed() async throws {
        relay.answer(500, [:])
        relay.answer(200, ["login": "wait", "device": "d1"])
        verify()
        let (first, second, third) = try await relay.run { _, address in
            (
                try await owner.phone("enrol", uri(address)),
                try await owner.phone("enrol", uri(address), "--wait", "0"),
                try await owner.phone("enrol", "-", input: uri(address) + "\n")
            )
        }
        #expect(first.status == 5 && second.status == 1 && third.status == 0, "\(third.errors)")
        let keys = try relay.asked.map { try JWS.parse($0.body["proof"]?.string ?? "").header["jwk"] }
        #expect(keys[0] == keys[1] && keys[1] == keys[2])
        #expect(owner.names.count == 1)
    }

    /// More than ten minutes after the binding, /verify answers as it does to a stranger.
    @Test func lostBindingAnswerIsDetected() async throws {
        let relay = relay
        relay.answer(500, [:])
        relay.answer(401, ["code": "unauthenticated", "detail": "no"])
        relay.answer(401, ["code": "unauthenticated"], fields: [.init("dpop-nonce", "n1")])
        relay.answer { asked in
            let proof = try JWS.parse(asked.fields["dpop"] ?? "")
            let key = try P256PublicKey(jwk: proof.header["jwk"] ?? .null)
            return ["device": "d1", "certificate": try relay.certificate("d1", key)]
        }
        let (cut, found) = try await relay.run { _, address in
            (try await owner.phone("enrol", uri(address)), try await owner.phone("enrol", uri(address), "--json"))
        }
        #expect(cut.status == 5, "\(cut.errors)")
        try #require(found.status == 0, "\(found.errors)")
        let event = try #require(try found.events.last)
        #expect(event["event"] == "verified" && event["device"] == "d1" && event["revocation_code"] == .null)
        let kept = try owner.kept()
        #expect(kept.device == "d1" && kept.certificate != nil && kept.thumbprint == event["thumbprint"]?.string)

        try #require(relay.asked.map(\.path) == ["/verify", "/verify", "/device", "/device"])
        let last = relay.asked[3]
        #expect(last.body.names == ["certificate", "csr"] && last.body["certificate"] == true)
        #expect(last.certificate == nil)
        let request = try SigningRequest(pem: Array(try #require(last.body["csr"]?.string).utf8))
        #expect(request.key.spkiThumbprint == kept.certificate?.spkiThumbprint)
        let proof = try JWS.parse(relay.asked[3].fields["dpop"] ?? "")
        #expect(try JSONReader.read(proof.payload).object?["nonce"] == "n1")
        // The request has the same key as the first one.
        #expect(try proof.header["jwk"] == JWS.parse(relay.asked[0].body["proof"]?.string ?? "").header["jwk"])
    }

    /// The key may be bound as long as no relay has denied it.
    @Test func keyIsKeptWhileTheBindingIsUncertain() async throws {
        relay.answer(401, ["code": "unauthenticated", "detail": "no"])
        relay.answer(503, ["code": "unavailable"])
        verify()
        let (refused, bound) = try await relay.run { _, address in
            (try await owner.phone("enrol", uri(address)), try await owner.phone("enrol", uri(address)))
        }
        #expect(refused.status == 5, "\(refused.errors)")
        #expect(bound.status == 0, "\(bound.errors)")
        let keys = try [0, 2].map { try JWS.parse(relay.asked[$0].body["proof"]?.string ?? "").header["jwk"] }
        #expect(keys[0] != nil && keys[0] == keys[1])
    }

    /// A relay that has just started accepts no nonce of another relay. A relay without free
    /// capacity may have some later.
    @Test func keyIsKeptWhileItMayStillBeBound() async throws {
        relay.answer(401, ["code": "unauthenticated", "detail": "no"])
        for nonce in ["n1", "n2"] {
            relay.answer(
                401, ["code": "unauthenticated"],
                fields: [
                    .init("dpop-nonce", nonce),
                    .init("www-authenticate", "DPoP error=\"use_dpop_nonce\", algs=\"ES256\""),
                ])
        }
        relay.answer(409, ["code": "conflict", "detail": "no room"])
        verify()
        let ended = try await relay.run { _, address in
            [
                try await owner.phone("enrol", uri(address)), try await owner.phone("enrol", uri(address)),
                try await owner.phone("enrol", uri(address)),
            ]
        }
        #expect(ended.map(\.status) == [1, 4, 0], "\(ended)")
        #expect(relay.asked.map(\.path) == ["/verify", "/device", "/device", "/verify", "/verify"])
        let keys = try [0, 3, 4].map { try JWS.parse(relay.asked[$0].body["proof"]?.string ?? "").header["jwk"] }
        #expect(keys[0] != nil && keys[0] == keys[1] && keys[1] == keys[2])
    }

    @Test func refusedCodeLeavesNoKey() async throws {
        relay.answer(401, ["code": "unauthenticated", "detail": "no"])
        relay.answer(401, ["code": "unauthenticated"])
        let refused = try await relay.run { _, address in try await owner.phone("enrol", uri(address), "--json") }
        #expect(refused.status == 1)
        #expect(refused.failure == "the relay answered 401, unauthenticated: no")
        #expect(owner.names == [])
        let nonsense = try await owner.phone("enrol", "twoefay://enrol?website=shop")
        #expect(nonsense.status == 2 && nonsense.errors.contains("the activation URI is not valid: relay must be"))
        let none = try await owner.phone("show")
        #expect(none.status == 3 && none.errors.contains("there is no phone in \(owner.keys)"))
    }

    @Test func phoneIsChangedAndUnbound() async throws {
        relay.answer(200, [:])
        relay.answer(200, [:])
        relay.answer(401, ["code": "unauthenticated"])
        try await relay.run { _, address in
            let enrolment = try relay.bound(address)
            relay.answer { try relay.signedFarewell(for: $0, of: enrolment, device: "d1") }
            try owner.save(enrolment)
            let changed = try await owner.phone("change", "--name", "Old", "--dev-token", "efgh", "--json")
            #expect(changed.status == 0, "\(changed.errors)")
            let kept = try owner.kept()
            #expect(kept.name == "Old" && kept.pushToken == "efgh")
            let silent = try await owner.phone("change", "--no-dev-token", "--json")
            #expect(silent.status == 0, "\(silent.errors)")
            #expect(try owner.kept().pushToken == nil)
            let both = try await owner.phone("change", "--no-dev-token", "--dev-token", "efgh")
            #expect(both.status == 2 && both.errors.contains("exclude each other"), "\(both.errors)")
            #expect(try silent.events.first?["dev_token"] == .null)
            let refused = try await owner.phone("unbind")
            #expect(refused.status == 1 && refused.errors.contains("unbind --forget"))
            #expect(owner.names.count == 1)
            let gone = try await owner.phone("unbind")
            #expect(gone.status == 0, "\(gone.errors)")
            #expect(owner.names == [])
            try owner.save(try relay.bound(address))
            #expect(try await owner.phone("unbind", "--forget").status == 0)
            #expect(owner.names == [])
        }
        #expect(
            relay.asked.map { "\($0.method) \($0.path)" }
                == ["POST /device", "POST /device", "POST /device/goodbye", "POST /device/goodbye"])
        let given = try JWS.parse(relay.asked[1].body["dev_token"]?.string ?? "")
        #expect(try JSONReader.read(given.payload).object?["dev_token"] == "")
        #expect(relay.asked.allSatisfy { $0.certificate?.uris == ["twoefay:device:d1"] })
    }

    /// A code or pin starts with a dash in one of sixty-four cases.
    @Test func printedRevokeCommandWorksForAnyCode() async throws {
        verify("-r_c")
        relay.answer(204, [:])
        let revoked = try await relay.run { _, address in
            let bound = try await owner.phone("enrol", uri(address))
            try #require(bound.status == 0, "\(bound.errors)")
            let command = try #require(bound.output.split(separator: "\n").last { $0.contains("phone revoke") })
            return try await owner.begin(command.split(separator: " ").dropFirst(2).map(String.init)).ended()
        }
        #expect(revoked.status == 0, "\(revoked.errors)")
        #expect(relay.asked.last?.body == ["revocation_code": "-r_c"])
    }

    @Test func expiringCertificateIsRenewed() async throws {
        let relay = relay
        try await relay.run { _, address in
            let old = try relay.bound(address, days: 29)
            try owner.save(old)
            relay.answer(200, ["certificate": try relay.certificate("d1", old.key.publicKey)])
            relay.answer(200, Listed.answer([]))
            #expect(try await owner.phone("deny").status == 3)
            let kept = try owner.kept()
            #expect(kept.certificate != old.certificate && kept.thumbprint == old.thumbprint)
        }
        #expect(relay.asked.map(\.path) == ["/device", "/pending"])
    }

    @Test func revokeNeedsOnlyTheCode() async throws {
        relay.answer(200, [:])
        let pin = Base64URL.encode(relay.authority.keyThumbprint)
        let (revoked, distrusted) = try await relay.run { _, address in
            (
                try await owner.begin(["revoke", "revocation-1", "--relay", address.text, "--pin", pin]).ended(),
                try await owner.begin(["revoke", "revocation-1", "--relay", address.text]).ended()
            )
        }
        #expect(revoked.status == 0, "\(revoked.errors)")
        #expect(distrusted.status == 5 && distrusted.errors.contains("certificate verify failed"))
        #expect(relay.asked.map(\.body) == [["revocation_code": "revocation-1"]])
        let nowhere = try await owner.begin(["revoke", "revocation-1"]).ended()
        #expect(nowhere.status == 2 && nowhere.errors.contains("--relay must be"))
    }
}
