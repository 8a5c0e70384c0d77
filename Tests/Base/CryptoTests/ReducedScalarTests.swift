import Bytes
import Testing

@testable import Crypto

/// FIPS 186-5, A.2.1: d = (c mod (n − 1)) + 1, for numbers that can be reduced by hand.
@Suite struct ReducedScalarTests {
    /// A number c with its first 8 bytes and its last 32, and the scalar of one digit, or all of it.
    struct Sample: Sendable {
        let high: String
        let low: String
        let scalar: String
    }

    /// The order n of the group without its last byte, which is 51.
    static let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc6325"
    static let zeros = "0000000000000000"
    static let samples: [Sample] = [
        // The smallest numbers.
        Sample(high: zeros, low: small(0), scalar: small(1)),
        Sample(high: zeros, low: small(1), scalar: small(2)),
        // c = n − 2 gives the largest scalar.
        Sample(high: zeros, low: order + "4f", scalar: order + "50"),
        // c = n − 1 and c = n are the first numbers that are reduced.
        Sample(high: zeros, low: order + "50", scalar: small(1)),
        Sample(high: zeros, low: order + "51", scalar: small(2)),
    ]

    private static func small(_ digit: Int) -> String { String(repeating: "0", count: 63) + String(digit) }

    @Test(arguments: samples) func numberIsReduced(_ sample: Sample) throws {
        let bytes = try #require(Hex.decode(sample.high + sample.low))
        #expect(try Hex.encode(P256PrivateKey.reduced(Secret(bytes)).reveal()) == sample.scalar)
    }

    /// c = 2^64 (n − 1) + 5: the whole length of the number counts.
    @Test func longNumberIsReduced() throws {
        let bytes = try #require(Hex.decode(Self.order + "50" + "0000000000000005"))
        #expect(try Hex.encode(P256PrivateKey.reduced(Secret(bytes)).reveal()) == Self.small(6))
    }

    @Test func keyIsThatOfTheScalar() throws {
        let number = [UInt8](repeating: 0, count: 39) + [8]
        let scalar = Secret([UInt8](repeating: 0, count: 31) + [9])
        #expect(
            try P256PrivateKey(reducing: Secret(number)).publicKey == P256PrivateKey(scalar: scalar).publicKey)
    }

    @Test(arguments: [0, 32, 39, 41]) func otherLengthsAreRefused(count: Int) {
        #expect(throws: CryptoFailure.self) {
            try P256PrivateKey(reducing: Secret([UInt8](repeating: 1, count: count)))
        }
    }
}
