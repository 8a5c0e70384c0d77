import Crypto
import World

/// DER for simulated certificates and key descriptions.
public enum DERWriter {
    public static func value(_ tag: [UInt8], _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        let length: [UInt8] =
            switch count {
            case 0..<0x80: [UInt8(count)]
            case 0x80..<0x100: [0x81, UInt8(count)]
            default: [0x82, UInt8(count >> 8), UInt8(count & 0xff)]
            }
        return tag + length + content
    }

    public static func sequence(_ parts: [UInt8]...) -> [UInt8] { value([0x30], parts.flatMap { $0 }) }
    public static func set(_ parts: [[UInt8]]) -> [UInt8] { value([0x31], parts.flatMap { $0 }) }
    public static func octets(_ bytes: [UInt8]) -> [UInt8] { value([0x04], bytes) }
    public static func boolean(_ flag: Bool) -> [UInt8] { value([0x01], [flag ? 0xff : 0]) }
    public static func enumerated(_ number: Int) -> [UInt8] { value([0x0a], [UInt8(number)]) }
    public static let null = value([0x05], [])

    public static func integer(_ number: Int) -> [UInt8] {
        var digits: [UInt8] = []
        var rest = number
        repeat {
            digits.insert(UInt8(rest & 0xff), at: 0)
            rest >>= 8
        } while rest > 0
        return value([0x02], digits[0] >= 0x80 ? [0] + digits : digits)
    }

    public static func tagged(_ number: Int, _ content: [UInt8]) -> [UInt8] {
        let tag: [UInt8] =
            switch number {
            case 0..<31: [0xa0 | UInt8(number)]
            case 31..<128: [0xbf, UInt8(number)]
            default: [0xbf, 0x80 | UInt8(number >> 7), UInt8(number & 0x7f)]
            }
        return value(tag, content)
    }

    /// An object identifier from its text.
    public static func identifier(_ text: String) -> [UInt8] {
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

    public static func time(_ moment: Timestamp) -> [UInt8] {
        value([0x18], moment.rfc3339.utf8.prefix(19).filter { (0x30...0x39).contains($0) } + [UInt8(ascii: "Z")])
    }
}

/// A certificate of a simulated chain with its key, which can sign others. Everything in it is the
/// caller's choice, since most of these must be refused.
public struct SimulatedCertificate: Sendable {
    public static let start = Timestamp(seconds: 1_790_000_000)
    public static let day: Duration = .seconds(86_400)

    public let certificate: Certificate
    public let key: P256PrivateKey
    /// The moment around which the certificates below this one are valid.
    public let moment: Timestamp
    private let name: [UInt8]

    /// The form of a name: the common name, or the serial number of a factory's authorities.
    public static func name(_ text: String, attribute: String = "2.5.4.3") -> [UInt8] {
        DERWriter.sequence(
            DERWriter.set([
                DERWriter.sequence(DERWriter.identifier(attribute), DERWriter.value([0x0c], Array(text.utf8)))
            ]))
    }

    /// Makes a root that is valid for ten years.
    public static func root(
        _ text: String, key: P256PrivateKey? = nil, at moment: Timestamp = start
    ) throws -> SimulatedCertificate {
        let key = try key ?? P256PrivateKey.generate()
        let name = name(text)
        return try SimulatedCertificate(
            name: name, key: key, issuer: name, signer: key, isAuthority: true, serial: [1],
            validity: (moment - day, moment + .seconds(3650 * 86_400)), extensions: [], at: moment)
    }

    /// Restores a root that was made before.
    public init(root text: String, certificate: Certificate, key: P256PrivateKey, at moment: Timestamp) {
        self.certificate = certificate
        self.key = key
        self.moment = moment
        name = Self.name(text)
    }

    /// Issues a certificate that is valid around the moment of this one.
    public func issue(
        _ name: [UInt8], key: P256PrivateKey? = nil, isAuthority: Bool = true, serial: [UInt8] = [0x12, 0x34],
        validity: (from: Timestamp, to: Timestamp)? = nil, extensions: [(identifier: String, value: [UInt8])] = []
    ) throws -> SimulatedCertificate {
        try SimulatedCertificate(
            name: name, key: try key ?? P256PrivateKey.generate(), issuer: self.name, signer: self.key,
            isAuthority: isAuthority, serial: serial,
            validity: validity ?? (moment - Self.day, moment + .seconds(30 * 86_400)), extensions: extensions,
            at: moment)
    }

    private init(
        name: [UInt8], key: P256PrivateKey, issuer: [UInt8], signer: P256PrivateKey, isAuthority: Bool, serial: [UInt8],
        validity: (from: Timestamp, to: Timestamp), extensions: [(identifier: String, value: [UInt8])],
        at moment: Timestamp
    ) throws {
        self.moment = moment
        let algorithm = DERWriter.sequence(DERWriter.identifier("1.2.840.10045.4.3.2"))
        var all: [[UInt8]] = []
        if isAuthority {
            all.append(
                DERWriter.sequence(
                    DERWriter.identifier("2.5.29.19"), DERWriter.boolean(true),
                    DERWriter.octets(DERWriter.sequence(DERWriter.boolean(true)))))
        }
        for (identifier, value) in extensions {
            all.append(DERWriter.sequence(DERWriter.identifier(identifier), DERWriter.octets(value)))
        }
        let body = DERWriter.sequence(
            DERWriter.tagged(0, DERWriter.integer(2)), DERWriter.value([0x02], serial), algorithm, issuer,
            DERWriter.sequence(DERWriter.time(validity.from), DERWriter.time(validity.to)), name, key.publicKey.spki,
            all.isEmpty ? [] : DERWriter.tagged(3, DERWriter.sequence(all.flatMap { $0 })))
        let signature = try signer.sign(body)
        certificate = try Certificate(
            der: DERWriter.sequence(body, algorithm, DERWriter.value([0x03], [0] + SimulatedCertificate.der(signature)))
        )
        self.key = key
        self.name = name
    }

    /// The DER form of a signature r‖s.
    public static func der(_ signature: [UInt8]) -> [UInt8] {
        func number(_ digits: ArraySlice<UInt8>) -> [UInt8] {
            let digits = Array(digits.drop { $0 == 0 })
            return DERWriter.value([0x02], (digits.first ?? 0) >= 0x80 ? [0] + digits : digits)
        }
        return DERWriter.sequence(number(signature[..<32]), number(signature[32...]))
    }
}
