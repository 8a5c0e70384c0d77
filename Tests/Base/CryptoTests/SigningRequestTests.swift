import Bytes
import Crypto
import Testing
import World

@Suite struct SigningRequestTests {
    private static let curve = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem"

    /// Returns the PEM text of a request that `openssl req` makes.
    private func made(_ shell: Shell, _ options: String) throws -> [UInt8] {
        let made = try shell.openssl("req -new \(options) -out request.pem", making: "key.pem", "request.pem")
        #expect(made.status == 0, "\(made.output)")
        return try shell.read("request.pem")
    }

    @Test(
        "Requests of openssl are read, whatever names and attributes they have",
        arguments: [
            "-subj /CN=phone", "-subj /", "-subj '/C=DE/O=Example GmbH/OU=Phones/CN=Bücher' -utf8",
            "-subj '/CN=a+OU=b' -addext subjectAltName=URI:twoefay:device:1 -addext keyUsage=digitalSignature",
            "-subj /CN=phone -sha256",
        ])
    func requestsOfOpenSSLAreRead(_ options: String) throws {
        let shell = try Shell()
        let request = try SigningRequest(pem: try made(shell, "\(Self.curve) \(options)"))
        try shell.openssl("pkey -in key.pem -pubout -outform DER -out spki.der", making: "spki.der")
        #expect(request.key.spki == (try shell.read("spki.der")))
        try shell.openssl("req -in request.pem -outform DER -out request.der", making: "request.der")
        #expect(request.der == (try shell.read("request.der")))
        #expect(try SigningRequest(der: request.der) == request)
        #expect(try SigningRequest(pem: try request.pem()) == request)
    }

    @Test(
        "Requests for other keys, or with other hashes, are refused",
        arguments: [
            "-newkey rsa:2048 -nodes -keyout key.pem -subj /CN=phone",
            "-newkey ec -pkeyopt ec_paramgen_curve:secp384r1 -nodes -keyout key.pem -subj /CN=phone",
            "-newkey ed25519 -nodes -keyout key.pem -subj /CN=phone",
            "\(Self.curve) -subj /CN=phone -sha384", "\(Self.curve) -subj /CN=phone -sha1",
            "\(Self.curve) -subj /CN=phone -pkeyopt ec_param_enc:explicit",
        ])
    func otherKeysAreRefused(_ options: String) throws {
        let pem = try made(try Shell(), options)
        #expect(throws: CryptoFailure.self) { try SigningRequest(pem: pem) }
    }

    @Test func ownRequestIsOneForOpenSSL() throws {
        let shell = try Shell()
        let key = try P256PrivateKey.generate()
        let request = try SigningRequest(commonName: "phone 1", key: key)
        try shell.write("own.pem", try request.pem())
        let text = try shell.openssl("req -in own.pem -noout -text -verify").output
        #expect(text.contains("verify OK") && text.contains("Subject: CN = phone 1"), "\(text)")
        #expect(try SigningRequest(der: request.der) == request)
        #expect(request.key == key.publicKey)
    }

    /// Every byte of a request is part of its one encoding or of what is signed.
    @Test func requestWithAnyChangedByteIsRefused() throws {
        let request = try SigningRequest(commonName: "phone", key: try P256PrivateKey.generate())
        for index in request.der.indices {
            var changed = request.der
            changed[index] ^= 1
            #expect(throws: CryptoFailure.self, "byte \(index)") { try SigningRequest(der: changed) }
        }
        for count in 0..<request.der.count {
            #expect(throws: CryptoFailure.self) { try SigningRequest(der: Array(request.der.prefix(count))) }
        }
        #expect(throws: CryptoFailure.self) { try SigningRequest(der: request.der + [0]) }
    }

    /// The key of the request is another one than that of its signature.
    @Test func requestForSomebodyElsesKeyIsRefused() throws {
        let (own, other) = (try P256PrivateKey.generate(), try P256PrivateKey.generate())
        let request = try SigningRequest(commonName: "phone", key: own)
        let (from, to) = (own.publicKey.spki, other.publicKey.spki)
        let at = try #require(
            request.der.indices.first { request.der[$0...].starts(with: from) })
        var forged = request.der
        forged.replaceSubrange(at..<at + from.count, with: to)
        #expect(throws: CryptoFailure.self) { try SigningRequest(der: forged) }
    }

    /// The length of the whole in two bytes where one is enough, or without an end (BER).
    @Test(arguments: [[0x30, 0x82, 0x00], [0x30, 0x80]] as [[UInt8]])
    func otherEncodingsAreRefused(_ head: [UInt8]) throws {
        let request = try SigningRequest(commonName: "phone", key: try P256PrivateKey.generate())
        // The request has 128 to 255 bytes, so its length is in one byte after 0x81.
        try #require(request.der[1] == 0x81)
        let length = head.count == 3 ? [request.der[2]] : []
        let end: [UInt8] = head.count == 3 ? [] : [0, 0]
        let der = head + length + request.der.dropFirst(3) + end
        #expect(throws: CryptoFailure.self) { try SigningRequest(der: der) }
    }

    @Test func textMustBeExactlyOneRequest() throws {
        let pem = try SigningRequest(commonName: "phone", key: try P256PrivateKey.generate()).pem()
        #expect(throws: CryptoFailure.self) { try SigningRequest(pem: pem + pem) }
        #expect(throws: CryptoFailure.self) { try SigningRequest(pem: []) }
        #expect(throws: CryptoFailure.self) { try SigningRequest(pem: Array("not PEM".utf8)) }
        let long = Array(repeating: UInt8(ascii: "\n"), count: SigningRequest.maxBytes) + pem
        #expect(throws: CryptoFailure.self) { try SigningRequest(pem: long) }
        let authority = try CertificateAuthority.create(commonName: "phones", days: 1, at: SystemTime().now())
        #expect(throws: CryptoFailure.self) { try SigningRequest(pem: try authority.certificatePEM()) }
    }
}
