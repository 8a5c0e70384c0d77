import Crypto
import HTTP
import JSON
import TestSupport
import Testing

/// The same protocol with phones that authenticate by a certificate from the relay.
@Suite("The protocol of a phone", .timeLimit(.minutes(15)), .mayBlock) struct PhoneProtocolTests {
    static let stores: [StoreKind] = [.file, .mariadb]

    @Test(arguments: stores) func phoneIsBoundAndAnswersWithItsCertificate(_ kind: StoreKind) async throws {
        try await Fixture.run(kind) { fixture in
            let shop = try await fixture.website("shop")
            let (token, code) = try await shop.register("bob.phone")
            let phone = try await Phone(in: fixture, token: token, code: code)
            let verified = try await Child.run(
                "openssl",
                [
                    "verify", "-purpose", "sslclient", "-CAfile", fixture.relay.file("device-ca.pem"),
                    phone.certificatePath,
                ])
            #expect(verified.status == 0, "\(verified.output)\(verified.errors)")
            let shown = try await Child.run(
                "openssl", ["x509", "-in", phone.certificatePath, "-noout", "-ext", "subjectAltName,extendedKeyUsage"])
            #expect(shown.output.contains("URI:twoefay:device:\(phone.device)\n"))
            #expect(shown.output.contains("TLS Web Client Authentication\n"))

            let user = try await shop.curl("GET", "/user/bob.phone")
            // This relay has no push service.
            #expect(user["factors"] == [["kind": "pull", "state": "active"]])
            let device = try #require(user["devices"]?.array?.first?.object)
            #expect(device["device"]?.string == phone.device)
            #expect(device["jwk"]?.object == phone.key.key.publicKey.jwk)

            for (path, word, reason) in [("/success", "success", nil), ("/failure", "failure", "denied")] {
                let asked = try await shop.curl("POST", "/login", ["username": "bob.phone", "request": "4711"])
                #expect(asked["login"] == "verified")
                let number = try #require(asked["number"])
                let challenge = try #require(asked["challenge"])
                let held = try shop.begin("POST", "/auth", ["challenge": challenge], fields: ["prefer": "wait=30"])
                try await fixture.relay.logged("event=request.held", number: path == "/success" ? 1 : 2)
                let answered = try await phone.client.curl("POST", path, ["challenge": challenge, "number": number])
                #expect(answered.text == #"{"login":"\#(word)"}"#)
                let result = try await shop.end(held)
                #expect(result["login"]?.string == word)
                #expect(result["proof"] == "certificate")
                #expect(result["reason"]?.string == reason)
                #expect(result["device"]?.string == phone.device)
            }
            // The code is used up.
            let again = try await fixture.nobody.curl(
                "POST", "/verify",
                [
                    "id_token": .string(token), "dev_token": "ab", "activation_code": .string(code),
                    "proof": "eyJ.eyJ.AAAA",
                ])
            #expect(again.status == 401)
        }
    }

    @Test func wrongNumberEndsTheLogin() async throws {
        try await Fixture.run { fixture in
            let shop = try await fixture.website("shop")
            let (token, code) = try await shop.register("bob.number")
            let phone = try await Phone(in: fixture, token: token, code: code)
            let asked = try await shop.curl("POST", "/login", ["username": "bob.number", "number": "42"])
            #expect(asked["number"] == "42")
            let challenge = try #require(asked["challenge"])
            let answered = try await phone.client.curl("POST", "/success", ["challenge": challenge, "number": "43"])
            #expect(answered.text == #"{"login":"failure"}"#)
            let result = try await shop.curl("POST", "/auth", ["challenge": challenge])
            #expect(result["reason"] == "wrong_number")
        }
    }

    /// Also on connections that were opened earlier.
    @Test(arguments: stores) func revokedPhoneStopsWorkingAtOnce(_ kind: StoreKind) async throws {
        try await Fixture.run(kind) { fixture in
            let relay = fixture.relay
            let shop = try await fixture.website("shop")
            let (token, code) = try await shop.register("bob.revoked")
            let phone = try await Phone(in: fixture, token: token, code: code)
            let asked = try await shop.curl("POST", "/login", ["username": "bob.revoked"])
            let answer: JSONObject = [
                "challenge": try #require(asked["challenge"]), "number": try #require(asked["number"]),
            ]
            let unknown: JSONObject = ["challenge": "00000000000000000000000000000000"]
            let connection = try await Connection(phone.client)
            #expect(try await connection.send("POST", "/failure", unknown).status == 404)
            for state in ["suspended", "revoked"] {
                try relay.execute("UPDATE device SET state = '\(state)'")
                let refused = try await connection.send("POST", "/success", answer)
                #expect(refused.status == 401, "\(state)")
                #expect(refused["code"] == "unauthenticated")
                #expect(try await phone.client.curl("POST", "/success", answer).status == 401)
            }
            // The same holds for a website, even while its request is held.
            let website = try await Connection(shop)
            let held = try shop.begin(
                "POST", "/auth", ["challenge": answer["challenge"] ?? .null], fields: ["prefer": "wait=2"])
            try await relay.logged("event=request.held")
            try relay.execute("UPDATE website SET state = 'disabled'")
            #expect(try await website.send("GET", "/user/bob.revoked").status == 401)
            #expect(try await shop.end(held).status == 401)
        }
    }
}
