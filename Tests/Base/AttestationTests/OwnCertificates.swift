import Crypto
import World

/// DER for certificates and key descriptions of the tests' own.
enum TestDER {
    static func value(_ tag: [UInt8], _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        let length: [UInt8] =
            switch count {
            case 0..<0x80: [UInt8(count)]
            case 0x80..<0x100: [0x81, UInt8(count)]
            default: [0x82, UInt8(count >> 8), UInt8(count & 0xff)]
            }
        return tag + length + content
    }

    static func sequence(_ parts: [UInt8]...) -> [UInt8] { value([0x30], parts.flatMap { $0 }) }
    static func set(_ parts: [[UInt8]]) -> [UInt8] { value([0x31], parts.flatMap { $0 }) }
    static func octets(_ bytes: [UInt8]) -> [UInt8] { value([0x04], bytes) }
    static func boolean(_ flag: Bool) -> [UInt8] { value([0x01], [flag ? 0xff : 0]) }
    static func enumerated(_ number: Int) -> [UInt8] { value([0x0a], [UInt8(number)]) }
    static let null = value([0x05], [])

    static func integer(_ number: Int) -> [UInt8] {
        var digits: [UInt8] = []
        var rest = number
        repeat {
            digits.insert(UInt8(rest & 0xff), at: 0)
            rest >>= 8
        } while rest > 0
        return value([0x02], digits[0] >= 0x80 ? [0] + digits : digits)
    }

    static func tagged(_ number: Int, _ content: [UInt8]) -> [UInt8] {
        let tag: [UInt8] =
            switch number {
            case 0..<31: [0xa0 | UInt8(number)]
            case 31..<128: [0xbf, UInt8(number)]
            default: [0xbf, 0x80 | UInt8(number >> 7), UInt8(number & 0x7f)]
            }
        return value(tag, content)
    }

    /// An object identifier from its text.
    static func identifier(_ text: String) -> [UInt8] {
        let numbers = text.split(separator: ".").compactMap { Int($0) }
        var content = [UInt8(numbers[0] * 40 + numbers[1])]
        for number in numbers.dropFirst(2) {
            var digits = [UInt8(number & 0x7f)]
            var rest = number >> 7
            while rest > 0 {
                digits.insert(0x80 | UInt8(rest & 0x7f), at: 0)
                rest >>= 7
            }
            content += digits
        }
        return value([0x06], content)
    }

    static func time(_ moment: Timestamp) -> [UInt8] {
        value([0x18], moment.rfc3339.utf8.prefix(19).filter { (0x30...0x39).contains($0) } + [UInt8(ascii: "Z")])
    }
}

/// A certificate of the tests' own chains with its key, which can sign others. Everything in it is
/// the test's choice, since most of these must be refused.
struct OwnCertificate {
    static let start = Timestamp(seconds: 1_790_000_000)
    static let day: Duration = .seconds(86_400)

    let certificate: Certificate
    let key: P256PrivateKey
    private let name: [UInt8]

    /// The form of a name: the common name, or the serial number of a factory's authorities.
    static func name(_ text: String, attribute: String = "2.5.4.3") -> [UInt8] {
        TestDER.sequence(
            TestDER.set([TestDER.sequence(TestDER.identifier(attribute), TestDER.value([0x0c], Array(text.utf8)))]))
    }

    static func root(_ text: String, key: P256PrivateKey? = nil) throws -> OwnCertificate {
        let key = try key ?? P256PrivateKey.generate()
        let name = name(text)
        return try OwnCertificate(
            name: name, key: key, issuer: name, signer: key, isAuthority: true, serial: [1],
            validity: (start - day, start + .seconds(3650 * 86_400)), extensions: [])
    }

    /// Issues a certificate that is valid around `start`.
    func issue(
        _ name: [UInt8], key: P256PrivateKey? = nil, isAuthority: Bool = true, serial: [UInt8] = [0x12, 0x34],
        validity: (from: Timestamp, to: Timestamp)? = nil, extensions: [(identifier: String, value: [UInt8])] = []
    ) throws -> OwnCertificate {
        try OwnCertificate(
            name: name, key: try key ?? P256PrivateKey.generate(), issuer: self.name, signer: self.key,
            isAuthority: isAuthority, serial: serial,
            validity: validity ?? (Self.start - Self.day, Self.start + .seconds(30 * 86_400)), extensions: extensions)
    }

    private init(
        name: [UInt8], key: P256PrivateKey, issuer: [UInt8], signer: P256PrivateKey, isAuthority: Bool, serial: [UInt8],
        validity: (from: Timestamp, to: Timestamp), extensions: [(identifier: String, value: [UInt8])]
    ) throws {
        let algorithm = TestDER.sequence(TestDER.identifier("1.2.840.10045.4.3.2"))
        var all: [[UInt8]] = []
        if isAuthority {
            all.append(
                TestDER.sequence(
                    TestDER.identifier("2.5.29.19"), TestDER.boolean(true),
                    TestDER.octets(TestDER.sequence(TestDER.boolean(true)))))
        }
        for (identifier, value) in extensions {
            all.append(TestDER.sequence(TestDER.identifier(identifier), TestDER.octets(value)))
        }
        let body = TestDER.sequence(
            TestDER.tagged(0, TestDER.integer(2)), TestDER.value([0x02], serial), algorithm, issuer,
            TestDER.sequence(TestDER.time(validity.from), TestDER.time(validity.to)), name, key.publicKey.spki,
            all.isEmpty ? [] : TestDER.tagged(3, TestDER.sequence(all.flatMap { $0 })))
        let signature = try signer.sign(body)
        certificate = try Certificate(
            der: TestDER.sequence(body, algorithm, TestDER.value([0x03], [0] + OwnCertificate.der(signature))))
        self.key = key
        self.name = name
    }

    /// The DER form of a signature r‖s.
    static func der(_ signature: [UInt8]) -> [UInt8] {
        func number(_ digits: ArraySlice<UInt8>) -> [UInt8] {
            let digits = Array(digits.drop { $0 == 0 })
            return TestDER.value([0x02], (digits.first ?? 0) >= 0x80 ? [0] + digits : digits)
        }
        return TestDER.sequence(number(signature[..<32]), number(signature[32...]))
    }
}
