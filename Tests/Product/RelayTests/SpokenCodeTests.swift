import Domain
import Testing

@testable import Relay

/// The code that a person reads out to the help desk.
@Suite struct SpokenCodeTests {
    private func recovery(_ number: UInt8) throws -> RecoveryID {
        try #require(RecoveryID([UInt8](repeating: 0, count: 15) + [number]))
    }

    @Test func eachRecoveryHasACodeOfItsOwn() throws {
        let codes = try (0..<100).map { SpokenCode(of: try recovery($0)).text }
        #expect(Set(codes).count == 100)
        #expect(codes.allSatisfy { $0.utf8.count == 6 && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } })
        #expect(SpokenCode(of: try recovery(7)).text == codes[7])
    }

    @Test func codeIsTypedAsItIsHeard() throws {
        let (code, other) = (SpokenCode(of: try recovery(1)), SpokenCode(of: try recovery(2)))
        #expect(code.matches(code.text))
        #expect(code.matches("\(code.text.prefix(3)) \(code.text.suffix(3))"))
        #expect(code.matches("\(code.text.prefix(3))-\(code.text.suffix(3))"))
        for wrong in ["", other.text, code.text + "0", String(code.text.dropLast())] { #expect(!code.matches(wrong)) }
    }
}
