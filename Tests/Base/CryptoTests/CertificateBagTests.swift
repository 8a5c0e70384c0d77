import Bytes
import Crypto
import Testing
import World

/// Certificates without signatures around them, in which EST returns certificates.
struct CertificateBagTests {
    /// The body of the server's answer in RFC 7030, A.3, without the line breaks.
    private static let answer = """
        MIIDOAYJKoZIhvcNAQcCoIIDKTCCAyUCAQExADALBgkqhkiG9w0BBwGgggMLMIID
        BzCCAe+gAwIBAgIBFTANBgkqhkiG9w0BAQUFADAbMRkwFwYDVQQDExBlc3RFeGFt
        cGxlQ0EgTndOMB4XDTEzMDUwOTIzMTU1M1oXDTE0MDUwOTIzMTU1M1owHzEdMBsG
        A1UEAxMUZGVtb3N0ZXA0IDEzNjgxNDEzNTIwggEiMA0GCSqGSIb3DQEBAQUAA4IB
        DwAwggEKAoIBAQClNp+kdz+Nj8XpEp9kaumWxDZ3eFYJpQKz9ddD5e5OzUeCm103
        ZIXQIxc0eVtMCatnRr3dnZRCAxGjwbqoB3eKt29/XSQffVv+odbyw0WdkQOIbntC
        Qry8YdcBZ+8LjI/N7M2krmjmoSLmLwU2V4aNKf0YMLR5Krmah3Ik31jmYCSvwTnv
        6mx6pr2pTJ82JavhTEIIt/fAYq1RYhkM1CXoBL+yhEoDanN7TzC94skfS3VV+f53
        J9SkUxTYcy1Rw0k3VXfxWwy+cSKEPREl7I6k0YeKtDEVAgBIEYM/L1S69RXTLuji
        rwnqSRjOquzkAkD31BE961KZCxeYGrhxaR4PAgMBAAGjUjBQMA4GA1UdDwEB/wQE
        AwIEsDAdBgNVHQ4EFgQU/qDdB6ii6icQ8wGMXvy1jfE4xtUwHwYDVR0jBBgwFoAU
        scRp5lujBKfYl6OLO7+5arIyQjwwDQYJKoZIhvcNAQEFBQADggEBACmxg1hvL6+7
        a+lFTARoxainBx5gxdZ9omSb0L+qL+4PDvg/+KHzKsDnMCrcU6M4YP5n0EDKmGa6
        4lY8fbET4tt7juJg6ixb95/760Th0vuctwkGr6+D6ETTfqyHnrbhX3lAhnB+0Ja7
        o1gv4CWxh1I8aRaTXdpOHORvN0SMXdcrlCys2vrtOl+LjR2a3kajJO6eQ5leOdzF
        QlZfOPhaLWen0e2BLNJI0vsC2Fa+2LMCnfC38XfGALa5A8e7fNHXWZBjXZLBCza3
        rEs9Mlh2CjA/ocSC/WxmMvd+Eqnt/FpggRy+F8IZSRvBaRUCtGE1lgDmu6AFUxce
        R4POrT2xz8ChADEA
        """

    private func message() throws -> [UInt8] { try #require(Base64.decode(Self.answer.filter { $0 != "\n" })) }

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
