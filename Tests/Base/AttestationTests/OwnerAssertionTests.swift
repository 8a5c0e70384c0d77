import Bytes
import Crypto
import JSON
import Testing

@testable import Attestation

/// Assertions of WebAuthn. The published ones are test vectors of Web Authentication Level 3 (W3C),
/// section 16, with the key of the registration beside them.
@Suite struct OwnerAssertionTests {
    private func verify(_ published: Published, rp: String = "example.org", app: String = "https://example.org") throws
    {
        let passkey = Passkey(
            rp: rp, id: "AA", key: try P256PublicKey(x963: try #require(Hex.decode(published.key))))
        try published.assertion.verify(
            challenge: try #require(Hex.decode(published.challenge)), by: passkey, of: app)
    }

    @Test func publishedAssertionsAreAccepted() throws {
        try verify(.verified)
        try verify(.withFurtherMembers)
    }

    @Test func publishedAssertionsOfAnotherKindAreRefused() throws {
        #expect(throws: OwnerAssertion.Fault.verification) { try verify(.unverified) }
        #expect(throws: OwnerAssertion.Fault.frame) { try verify(.inAFrame) }
        #expect(throws: OwnerAssertion.Fault.frame) { try verify(.belowAnotherPage) }
        #expect(throws: OwnerAssertion.Fault.rp) { try verify(.verified, rp: "example.com") }
        #expect(throws: OwnerAssertion.Fault.origin) { try verify(.verified, app: "https://www.example.org") }
        var other = Published.verified
        other.challenge = Published.unverified.challenge
        #expect(throws: OwnerAssertion.Fault.challenge) { try verify(other) }
    }

    @Test func eachChangedBitIsRefused() throws {
        let right = Published.verified.assertion
        func refuses(_ data: [UInt8], _ client: [UInt8], _ signature: [UInt8]) -> Bool {
            var changed = Published.verified
            changed.made = OwnerAssertion(authenticatorData: data, clientData: client, signature: signature)
            do {
                try verify(changed)
                return false
            } catch {
                return true
            }
        }
        func flipped(_ bytes: [UInt8], _ bit: Int) -> [UInt8] {
            var bytes = bytes
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            return bytes
        }
        let (data, client, signature) = (right.authenticatorData, right.clientData, right.signature)
        for bit in 0..<(data.count * 8) { #expect(refuses(flipped(data, bit), client, signature)) }
        for bit in 0..<(client.count * 8) { #expect(refuses(data, flipped(client, bit), signature)) }
        for bit in 0..<(signature.count * 8) { #expect(refuses(data, client, flipped(signature, bit))) }
        for count in 0..<data.count { #expect(refuses(Array(data.prefix(count)), client, signature)) }
        #expect(refuses(data + [0], client, signature) && refuses(data, client + [0x20], signature))
        #expect(!refuses(data, client, signature))
    }

    @Test func formIsRead() {
        let right = Published.verified.assertion
        #expect(OwnerAssertion(json: .object(right.json)) == right)
        let changes: [(String, JSONValue?)] = [
            ("signature", nil), ("client_data", 7), ("authenticator_data", "AA"), ("signature", ""),
            ("signature", "A="),
            ("client_data", .string(String(repeating: "A", count: 5464))),
            ("authenticator_data", .string(String(repeating: "A", count: 1368))),
            ("signature", .string(String(repeating: "A", count: 344))),
        ]
        for (name, value) in changes {
            var object = right.json
            object.set(name, value)
            #expect(OwnerAssertion(json: .object(object)) == nil, "\(name): \(String(describing: value))")
        }
        #expect(OwnerAssertion(json: "x") == nil && OwnerAssertion(json: []) == nil)
    }

    /// The challenge covers header and claims, and nothing of the signature.
    @Test func challengeIsTheDigestOfTheSigningInput() {
        #expect(OwnerAssertion.challenge(of: "ab.c.d") == SHA256.hash(Array("ab.c".utf8)))
        #expect(OwnerAssertion.challenge(of: "ab.c.e") == SHA256.hash(Array("ab.c".utf8)))
        for text in ["", "a", "a.b", "a.b.c.d", ".."] {
            #expect((OwnerAssertion.challenge(of: text) == nil) == (text != ".."), "\(text)")
        }
    }

    @Test func hostOfAnOriginIsReadInOneFormOnly() {
        #expect(WebPhone.host(of: "https://phone.example.com") == "phone.example.com")
        #expect(WebPhone.host(of: "https://phone.example.com:8444") == "phone.example.com")
        for origin in [
            "", "https://", "https://:1", "http://a", "https://a/", "https://A", "https://a:", "https://a:123456",
            "https://a:1:2", "https://[::1]", "https://ä", "https://a?", "https://a b",
        ] {
            #expect(WebPhone.host(of: origin) == nil, "\(origin)")
        }
    }
}

/// A published assertion, in hexadecimal, and its client data as text.
private struct Published {
    var challenge: String
    let key: String
    let data: String
    let client: String
    let signature: String
    /// An assertion in place of the published one.
    var made: OwnerAssertion?

    var assertion: OwnerAssertion {
        made
            ?? OwnerAssertion(
                authenticatorData: Hex.decode(data) ?? [], clientData: Array(client.utf8),
                signature: Hex.decode(signature) ?? [])
    }

    static let unverified = Published(
        challenge: "39c0e7521417ba54d43e8dc95174f423dee9bf3cd804ff6d65c857c9abf4d408",
        key: "04afefa16f97ca9b2d23eb86ccb64098d20db90856062eb249c33a9b672f26df61930a56b87a2fca66334b03458abf879717"
            + "c12cc68ed73290af2e2664796b9220",
        data: "bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b51900000000",
        client: #"{"type":"webauthn.get","challenge":"OcDnUhQXulTUPo3JUXT0I97pvzzYBP9tZchXyav01Ag","origin":"https"#
            + #"://example.org","crossOrigin":false}"#,
        signature:
            "3046022100f50a4e2e4409249c4a853ba361282f09841df4dd4547a13a87780218deffcd380221008480ac0f0b93538174f5"
            + "75bf11a1dd5d78c6e486013f937295ea13653e331e87")
    static let withFurtherMembers = Published(
        challenge: "b1106fa46a57bef1781511c0557dc898a03413d5f0f17d244630c194c7e1adb5",
        key: "041cf27f25da591208a4239c2e324f104f585525479a29edeedd830f48e77aeae559e4b7da6c0106e206ce390c93ab98a15a"
            + "5ec3887e57f0cc2bece803b920c423",
        data: "bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b50d00000000",
        client: #"{"type":"webauthn.get","challenge":"sRBvpGpXvvF4FRHAVX3ImKA0E9Xw8X0kRjDBlMfhrbU","origin":"https"#
            + #"://example.org","crossOrigin":false,"extraData":"clientDataJSON may be extended with additional "#
            + #"fields in the future, such as this: AZMwyMxIbD8-uguFNp6r8Q"}"#,
        signature:
            "30450220694969d3ee928de6f02ef23a9c644d7d779916451734a94b432542f498a1ebe90221008b0819c824218a97152cd0"
            + "99c55bfb1477b29d900a49a64018314f9bfccda163")
    static let verified = Published(
        challenge: "00093b66c21d5b5e89f7a07082118907ea3e502d343b314b8c5a54d62db202fb",
        key: "0441202698c9d9753fb4bb3f27cd09fe6b8afdb76438ee2ae54d7c9dade10d864bd8735115cdb330a63ea1d6e43d5000f4bd"
            + "56f99bce83ee1d73301fc270116d07",
        data: "bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b50d00000000",
        client: #"{"type":"webauthn.get","challenge":"AAk7ZsIdW16J96BwghGJB-o-UC00OzFLjFpU1i2yAvs","origin":"https"#
            + #"://example.org","crossOrigin":false}"#,
        signature:
            "3045022060dc76b1607ec716c6e5eba8d056695ed6bc47b2e3d7a729c34e759e3ab66aa0022100d010a9e8fddcb64c439dfd"
            + "ca628ddb33cf245d567d157d9f66f942601bed9b38")
    static let inAFrame = Published(
        challenge: "876aa517ba83fdee65fcffdbca4c84eeae5d54f8041a1fc85c991e5bbb273137",
        key: "0422200a473f90b11078851550d03b4e44a2279f8c4eca27b3153dedfe03e4e97dcbd0be95e746ad6f5a8191be11756e4c04"
            + "20e72f65b466d39bc56b8b123a9c6e",
        data: "bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b50500000000",
        client: #"{"type":"webauthn.get","challenge":"h2qlF7qD_e5l_P_bykyE7q5dVPgEGh_IXJkeW7snMTc","origin":"https"#
            + #"://example.org","crossOrigin":true,"extraData":"clientDataJSON may be extended with additional f"#
            + #"ields in the future, such as this: 92pcTVD0Aby-q4dtmj6efg"}"#,
        signature:
            "3046022100eb12fcf23b12764c0f122e22371fab92e283879fd798f38ee1841c951b6e40e7022100c76237ff9db77b3c56f3"
            + "0837cda6a09acfa2e915544e609c0733b1184036d1cf")
    static let belowAnotherPage = Published(
        challenge: "d54a5c8ca4b62a8e3bb321e3b2bc73856f85a10150db2939ac195739eb1ea066",
        key: "04a1c47c1d82da4ebe82cd72207102b380670701993bc35398ae2e5726427fe01d86c1080d82987028c7f54ecb1b01185de2"
            + "43b359294a0ed210cd47480f0adc88",
        data: "bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b50500000000",
        client: #"{"type":"webauthn.get","challenge":"1UpcjKS2Ko47syHjsrxzhW-FoQFQ2yk5rBlXOeseoGY","origin":"https"#
            + #"://example.org","crossOrigin":true,"topOrigin":"https://example.com","extraData":"clientDataJSON"#
            + #" may be extended with additional fields in the future, such as this: UiFoJMVRQHDAFWFi4vxUpQ"}"#,
        signature:
            "3045022100b5a70c81780d5fcc9a4f2ae9caae99058f8accaf58b91fb59329646c28ac6ffc022012e101c165db3c8e9957f0"
            + "c54dd6ca9b56bc3bd2f280bd2faa6c1d02c6e5c171")
}
