import Bytes
import Crypto
import Testing
import World

@testable import Domain

@Suite struct TemporaryCodeTests {
    private static func sealer(_ keys: UInt8...) throws -> Sealer {
        try Sealer(
            keys: keys.map { Sealer.Key(id: "\($0)", key: Secret([UInt8](repeating: $0, count: 32))) })
    }

    private static func user(_ byte: UInt8) throws -> UserID {
        try #require(UserID(Array(repeating: byte, count: 16)))
    }

    /// All 32 letters, each from its five bits, of which the last ones come first.
    @Test func everyLetterStandsForFiveBits() {
        func code(_ letters: [UInt64]) -> String {
            let bits = letters.enumerated().reduce(UInt64(0)) { $0 | $1.element << UInt64(5 * $1.offset) }
            return TemporaryCode.text((0..<7).map { UInt8(truncatingIfNeeded: bits >> UInt64(48 - 8 * $0)) })
        }
        #expect(code(Array(0..<10)) == "01234-56789")
        #expect(code(Array(10..<20)) == "ABCDE-FGHJK")
        #expect(code(Array(20..<30)) == "MNPQR-STVWX")
        #expect(code([30, 31] + Array(0..<8)) == "YZ012-34567")
    }

    @Test func randomCodesDiffer() throws {
        let codes = (0..<200).map { _ in TemporaryCode.text(SystemRandomness().bytes(TemporaryCode.bytes)) }
        #expect(Set(codes).count == 200)
        for code in codes {
            #expect(code.utf8.count == 11 && TemporaryCode.canonical(code) == Array(code.filter { $0 != "-" }.utf8))
            #expect(CodeWindow.isCode(code))
        }
    }

    @Test func caseSpacesAndLookAlikesAreForgiven() throws {
        let (ada, bob) = (try Self.user(1), try Self.user(2))
        let sealer = try Self.sealer(1)
        let digest = try #require(TemporaryCode.digest("7K01P-X2Q9R", user: ada, sealer))
        for typed in ["7k01px2q9r", " 7K O1P - x2q9r ", "7kOIp-X2Q9R", "7k0lp x2q9r", "7-K-0-1-P-X-2-Q-9-R"] {
            #expect(TemporaryCode.digest(typed, user: ada, sealer) == digest, "\(typed)")
        }
        #expect(TemporaryCode.digest("7K01P-X2Q9S", user: ada, sealer) != digest)
        #expect(TemporaryCode.digest("7K01P-X2Q9R", user: bob, sealer) != digest)
    }

    @Test(arguments: [
        "", "7K3MP", "7K3MP-X2Q9", "7K3MP-X2Q9RA", "7U3MP-X2Q9R", "7K3MP_X2Q9R", "123456", "12345678", "٧K3MP-X2Q9R",
        "7K3MP-X2Q9R\n", "abcd-efgh-2345-ijkl", String(repeating: " ", count: 60) + "7K3MP-X2Q9R",
    ])
    func otherTextIsNoTemporaryCode(typed: String) throws {
        #expect(TemporaryCode.canonical(typed) == nil)
        #expect(TemporaryCode.digests(typed, user: try Self.user(1), try Self.sealer(1)) == [])
    }

    /// The digest depends on a key outside the store, and codes stay valid while the key is changed.
    @Test func digestDependsOnTheKey() throws {
        let ada = try Self.user(1)
        let old = try #require(TemporaryCode.digest("7K3MP-X2Q9R", user: ada, try Self.sealer(1)))
        #expect(TemporaryCode.digest("7K3MP-X2Q9R", user: ada, try Self.sealer(2)) != old)
        #expect(TemporaryCode.digests("7k3mp x2q9r", user: ada, try Self.sealer(2, 1)).contains(old))
    }

    @Test func onlyAWebsiteThatNamesItAcceptsTheFactor() throws {
        #expect(!Policy().factors.contains(.operator))
        var policy = Policy()
        try policy.set("factors", to: "push, operator")
        #expect(policy.factors == [.push, .operator] && policy.text(of: "factors") == "push, operator")
        #expect(Assurance(factor: .operator, numberAsked: true, uv: .biometric) == .low)
        for level in Assurance.allCases where level > .low {
            #expect(policy.narrowed(to: nil, atLeast: level, asksNumber: true).factors == [.push])
        }
        #expect(policy.narrowed(to: [.operator], atLeast: nil, asksNumber: true).factors == [.operator])
    }

    @Test func temporaryCodeNeverBeginsByItself() {
        let cascade = Cascade(factors: [.operator, .recovery, .totp])
        let means = Cascade.AvailableFactors(phone: nil, codes: [.operator, .recovery, .totp])
        #expect(cascade.first(means) == .totp)
        let alone = Cascade.AvailableFactors(phone: nil, codes: [.operator])
        #expect(cascade.first(alone) == nil && cascade.canAnswer(alone))
        #expect(RecoveryProof(.operator) == nil)
    }

    /// A temporary code approves nothing beside the strongest factor, except what takes it.
    @Test func temporaryCodeApprovesOnlyWhatTakesIt() throws {
        var policy = Policy()
        try policy.set("factors", to: "push, totp, recovery, operator")
        for phone in [nil, .pushable] as [Cascade.AvailableFactors.Phone?] {
            let means = Cascade.AvailableFactors(phone: phone, codes: [.totp, .operator])
            let best: [Factor] = phone == nil ? [.totp] : [.push]
            #expect(policy.strongest(of: means, takesOperator: false).factors == best + [.recovery])
            #expect(policy.strongest(of: means, takesOperator: true).factors == best + [.recovery, .operator])
            let without = Cascade.AvailableFactors(phone: phone, codes: [.totp])
            #expect(policy.strongest(of: without, takesOperator: true).factors == best + [.recovery])
        }
    }
}
