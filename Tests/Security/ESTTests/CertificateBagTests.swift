import Bytes
import Crypto
import Testing
import World

/// Certificates without signatures around them, in which EST returns certificates.
struct CertificateBagTests {
    private func message() throws -> [UInt8] {
        try #require(Base64.decode(ESTExamples.certificate.filter { $0 != "\n" }))
    }

    @Test func exampleOfTheRFCIsRead() throws {
        let all = try CertificateBag.certificates(try message())
        let certificate = try #require(all.first)
        #expect(all.count == 1 && certificate.serial == "15")
        #expect(certificate.notBefore == Timestamp(rfc3339: "2013-05-09T23:15:53.000Z"))
        #expect(certificate.notAfter == Timestamp(rfc3339: "2014-05-09T23:15:53.000Z"))
        #expect(String(decoding: certificate.subject, as: UTF8.self).contains("demostep4 1368141352"))
        #expect(String(decoding: certificate.issuer, as: UTF8.self).contains("estExampleCA NwN"))
    }

    @Test func everythingElseIsRefused() throws {
        let whole = try message()
        for count in 0..<whole.count {
            #expect(throws: CryptoFailure.self) { try CertificateBag.certificates(Array(whole.prefix(count))) }
        }
        #expect(throws: CryptoFailure.self) { try CertificateBag.certificates(whole + [0]) }
        // A certificate alone, and a message without certificates.
        let certificate = try #require(try CertificateBag.certificates(whole).first)
        #expect(throws: CryptoFailure.self) { try CertificateBag.certificates(certificate.der) }
        let empty = "MCcGCSqGSIb3DQEHAqAaMBgCAQExADALBgkqhkiG9w0BBwGgAKEAMQA="
        #expect(throws: CryptoFailure.self) { try CertificateBag.certificates(try #require(Base64.decode(empty))) }
    }

    /// CMS is BER. Bouncy Castle's servers write the outer values with indefinite lengths.
    @Test func indefiniteLengthsAreRead() throws {
        let certificate = try #require(try CertificateBag.certificates(try message()).first)
        let oid: [UInt8] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07]
        func open(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] { [tag, 0x80] + content + [0, 0] }
        func bag(_ certificates: [UInt8]) -> [UInt8] {
            let signed = [0x02, 1, 1, 0x31, 0] + open(0x30, oid + [1]) + open(0xa0, certificates) + [0x31, 0]
            return open(0x30, oid + [2] + open(0xa0, open(0x30, signed)))
        }
        let whole = bag(certificate.der)
        #expect(try CertificateBag.certificates(whole).map(\.der) == [certificate.der])
        for count in 0..<whole.count {
            #expect(throws: CryptoFailure.self) { try CertificateBag.certificates(Array(whole.prefix(count))) }
        }
        let deep = (0..<1000).reduce(certificate.der) { inner, _ in open(0x30, inner) }
        let primitive: [UInt8] = [0x04, 0x80, 0, 0]
        for wrong in [whole + [0], bag(deep), bag(primitive), bag(certificate.der + primitive)] {
            #expect(throws: CryptoFailure.self) { try CertificateBag.certificates(wrong) }
        }
    }
}
