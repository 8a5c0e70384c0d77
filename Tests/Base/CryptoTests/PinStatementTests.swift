import Bytes
import Crypto
import JSON
import Testing
import World

/// The statement of the server's authority about pins, and what a phone refuses.
struct PinStatementTests {
    private let key: P256PrivateKey
    private let next = [UInt8](repeating: 2, count: 32)
    private let now = Timestamp(seconds: 1_800_000_000)
    private let origin = "https://login.example.com:8080"
    private var pin: [UInt8] { key.publicKey.spkiThumbprint }

    init() throws { key = try P256PrivateKey.generate(SystemRandomness()) }

    private func text(
        _ pins: [[UInt8]], sequence: Int64 = 5, audience: String? = nil, by signer: P256PrivateKey? = nil,
        life: Duration = .seconds(60)
    ) throws -> String {
        try PinStatement.sign(
            pins, sequence: sequence, audience: audience ?? origin, expiresAt: now + life, by: signer ?? key, at: now)
    }

    private func fault(_ text: String) -> String? {
        do throws(PinStatement.Malformed) {
            _ = try PinStatement(text)
            return nil
        } catch {
            return error.description
        }
    }

    private func refusal(
        _ text: String, pinned: [[UInt8]]? = nil, last: Int64 = 0, at moment: Timestamp? = nil
    ) throws -> String? {
        try PinStatement(text).refusal(by: origin, pinned: pinned ?? [pin], last: last, at: moment ?? now)?.description
    }

    @Test func statementOfAPinnedKeyIsTaken() throws {
        let statement = try PinStatement(try text([pin, next]))
        #expect(statement.signer == pin && statement.pins == [pin, next])
        #expect(statement.sequence == 5 && statement.audience == origin)
        #expect(statement.signedAt == now && statement.expiresAt == now + .seconds(60))
        #expect(try refusal(text([pin, next]), last: 4) == nil)
        #expect(try refusal(text([pin]), pinned: [next, pin]) == nil)
    }

    @Test func replayedAndForeignStatementsAreRefused() throws {
        let stranger = try P256PrivateKey.generate(SystemRandomness())
        let theirs = stranger.publicKey.spkiThumbprint
        #expect(try refusal(text([pin, next]), last: 5) == "it is older than the one before")
        #expect(try refusal(text([pin, next], sequence: 4), last: 5) == "it is older than the one before")
        #expect(try refusal(text([pin, next]), at: now + .seconds(60)) == "it has expired")
        #expect(try refusal(text([pin, next], audience: "https://other.example:8080")) == "it is for another relay")
        // Another key may state what it likes about itself.
        #expect(try refusal(text([theirs, next], by: stranger)) == "its signer is not pinned")
        #expect(try refusal(text([theirs, pin], by: stranger)) == "its signer is not pinned")
    }

    @Test func wrongNumbersOfPinsAreRefused() throws {
        let third = [UInt8](repeating: 3, count: 32)
        for pins in [[], [pin, next, third], [pin, pin], [pin, [1, 2]]] {
            #expect(fault(try text(pins)) == "it must name one or two pins")
        }
        #expect(fault(try text([next, third])) == "its signer is not among the pins")
    }

    @Test func changedStatementIsRefused() throws {
        let good = try text([pin, next])
        let parts = good.split(separator: ".").map(String.init)
        let claims = try #require(Base64URL.decode(parts[1]))
        var members = try #require(try JSONReader.read(claims).object)
        members["seq"] = 6
        let changed = Base64URL.encode(JSONWriter.write(members))
        #expect(fault([parts[0], changed, parts[2]].joined(separator: ".")) == "its signature is wrong")
        // A signature of another kind of statement counts for nothing here.
        let other = try JWS.sign(
            header: ["typ": "twoefay-time+jwt", "jwk": .object(key.publicKey.jwk)], payload: claims, key: key)
        #expect(fault(other) == "it is another kind of statement")
        for (name, value) in [("v", 2), ("seq", 0), ("seq", -1)] as [(String, JSONValue)] {
            var members = try #require(try JSONReader.read(claims).object)
            members[name] = value
            let text = try JWS.sign(
                header: ["typ": "twoefay-pins+jwt", "jwk": .object(key.publicKey.jwk)],
                payload: JSONWriter.write(members), key: key)
            #expect(fault(text) == "its claims are incomplete", "\(name)")
        }
        #expect(fault("x") != nil)
    }

    @Test func crossCertificateLeadsFromTheNextAuthorityToTheFormer() throws {
        let former = try CertificateAuthority.create(commonName: "Authority", days: 100, at: now)
        let next = try former.successor(days: 100, at: now)
        #expect(next.certificate.subject == former.certificate.subject)
        #expect(next.keyThumbprint != former.keyThumbprint)
        let cross = try former.crossCertificate(of: next.certificate, at: now)
        #expect(cross.spkiThumbprint == next.keyThumbprint)
        let server = try next.issueServer(names: ["localhost"], days: 10, at: now).certificate
        let chain = [server, cross, former.certificate]
        for root in [former.certificate, next.certificate, cross] {
            #expect(CertificatePath.serverFault(chain, authority: root, at: now) == nil)
        }
        let stranger = try CertificateAuthority.create(commonName: "Authority", days: 100, at: now)
        #expect(CertificatePath.serverFault(chain, authority: stranger.certificate, at: now) != nil)
        // The authority of another name would make the path too long for the former one.
        let other = try CertificateAuthority.create(commonName: "Other", days: 100, at: now)
        #expect(throws: CryptoFailure.self) { try former.crossCertificate(of: other.certificate, at: now) }
    }

    @Test func hostsOfACertificateAreReadInOrder() throws {
        let authority = try CertificateAuthority.create(commonName: "Authority", days: 100, at: now)
        let server = try authority.issueServer(names: ["a.example", "127.0.0.1", "::1"], days: 10, at: now)
        #expect(
            server.certificate.hosts == [
                .dns("a.example"), .ip([127, 0, 0, 1]), .ip([UInt8](repeating: 0, count: 15) + [1]),
            ])
    }

    @Test func entriesOfARevocationListAreRead() throws {
        let authority = try CertificateAuthority.create(commonName: "Authority", days: 100, at: now)
        for revoked in [[], [("0a0b", now), ("7f", now - .seconds(60))]] as [[(serial: String, at: Timestamp)]] {
            let list = try #require(
                try CertificateRevocationList.all(pem: try authority.makeCRL(revoked: revoked, days: 3, at: now)).first)
            #expect(try list.entries() == revoked.map { RevokedCertificate(serial: $0.serial, at: $0.at) })
            let copy = try CertificateRevocationList.all(pem: try list.pem()).first
            #expect(copy?.isSigned(by: authority.certificate) == true)
        }
    }
}
