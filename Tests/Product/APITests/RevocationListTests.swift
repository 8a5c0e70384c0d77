import Bytes
import Crypto
import Domain
import HTTP
import JSON
import Relay
import TestSupport
import Testing
import World

@testable import API

/// `GET /crl`, over the wire.
struct RevocationListTests {
    @Test func listIsForAnybodyAndCanBeStored() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "certificate"])
        let (_, phone) = try await shop.enrol("bob")
        let first = await rig.stranger.send("GET", "/crl")
        #expect(first.status == 200 && first.fields["content-type"] == "application/pkix-crl")
        #expect(first.fields["cache-control"] == nil)
        let end = rig.relay.time.now() + .seconds(86_400)
        #expect(first.fields["expires"] == end.httpDate)
        let tag = try #require(first.fields["etag"])
        for caller in [shop, phone] {
            let same = await caller.send("GET", "/crl")
            #expect(same.status == 200 && same.body == first.body && same.fields["etag"] == tag)
        }
        for known in [tag, "W/\(tag)", "\"x\" ,\(tag)", "*"] {
            let unchanged = await rig.stranger.send("GET", "/crl", fields: [("if-none-match", known)])
            #expect(unchanged.status == 304 && unchanged.body.isEmpty && unchanged.fields["etag"] == tag, "\(known)")
            #expect(unchanged.fields["expires"] == end.httpDate)
        }
        #expect(await phone.send("DELETE", "/device").status == 204)
        rig.relay.time.advance(by: .seconds(10))
        for known in [tag, "\"x\"", ""] {
            let changed = await rig.stranger.send("GET", "/crl", fields: [("if-none-match", known)])
            #expect(changed.status == 200 && changed.body != first.body && changed.fields["etag"] != tag)
        }
    }

    /// The list for another program: it is signed, and refuses the certificate of the phone.
    @Test func opensslRefusesTheCertificateOfAnUnboundPhone() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "certificate"])
        let (token, code) = try await shop.register("bob")
        let key = try TestPhone(pushToken: "push")
        let verified = try await shop.verify(key, token: token, code: code)
        let directory = try TemporaryDirectory()
        try TextFile.write(try #require(verified["certificate"]?.string), to: directory("phone.pem"))
        try TextFile.write(try rig.relay.phones.certificatePEM(), to: directory("ca.pem"))
        func openssl(_ arguments: String...) async throws -> Child.Ended {
            try await Child("openssl", arguments).ended()
        }
        func verdict() async throws -> Child.Ended {
            let list = await rig.stranger.send("GET", "/crl").body
            try TextFile.write(list, to: directory("crl.der"))
            let text = try await openssl(
                "crl", "-inform", "DER", "-in", directory("crl.der"), "-CAfile", directory("ca.pem"), "-verify", "-out",
                directory("crl.pem"))
            #expect(text.errors.contains("verify OK"), "\(text)")
            return try await openssl(
                "verify", "-attime", "\(rig.relay.time.now().seconds)", "-x509_strict", "-crl_check", "-CAfile",
                directory("ca.pem"), "-CRLfile", directory("crl.pem"), directory("phone.pem"))
        }
        #expect(try await verdict().status == 0)
        let text = try await openssl("x509", "-in", directory("phone.pem"), "-noout", "-text")
        #expect(text.output.contains("URI:\(RelayRig.origin)/crl"))
        let device = try #require(verified["device"]?.string.flatMap { DeviceID($0) })
        let phone = Site(rig: rig, certificate: key.certificate(device: device))
        #expect(await phone.send("DELETE", "/device").status == 204)
        rig.relay.time.advance(by: .seconds(10))
        let refused = try await verdict()
        #expect(refused.status != 0 && refused.errors.contains("certificate revoked"), "\(refused)")
    }
}
