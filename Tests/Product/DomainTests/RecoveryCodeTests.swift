import Bytes
import Testing
import World

@testable import Domain

@Suite struct RecoveryCodeTests {
    private static func user(_ byte: UInt8) throws -> UserID {
        try #require(UserID(Array(repeating: byte, count: 16)))
    }

    @Test func recoveryCodeIsShownInFourGroups() {
        #expect(RecoveryCode.text(Array("foobarbazq".utf8)) == "mzxw-6ytb-ojrg-c6tr")
    }

    @Test func recoveryCodeIgnoresCaseAndSeparators() throws {
        let (ada, bob) = (try Self.user(1), try Self.user(2))
        let digest = try #require(RecoveryCode.digest("mzxw-6ytb-ojrg-c6tr", user: ada))
        for typed in ["MZXW6YTBOJRGC6TR", " mzxw 6ytb ojrg c6tr ", "Mzxw-6ytbojrg C6tr"] {
            #expect(RecoveryCode.digest(typed, user: ada) == digest)
        }
        #expect(RecoveryCode.digest("mzxw-6ytb-ojrg-c6ts", user: ada) != digest)
        #expect(RecoveryCode.digest("mzxw-6ytb-ojrg-c6tr", user: bob) != digest)
    }

    @Test(arguments: [
        "", "mzxw", "mzxw-6ytb-ojrg-c6tr-a", "mzxw-6ytb-ojrg-c6t0", "123456", "mzxw-6ytb-ojrg-c6tr====",
        String(repeating: " ", count: 100) + "mzxw-6ytb-ojrg-c6tr",
    ])
    func malformedRecoveryCodeIsRefused(typed: String) throws {
        #expect(RecoveryCode.digest(typed, user: try Self.user(1)) == nil)
    }

    @Test func tenRecoveryCodesAreDerivedFromTheOperationSecret() throws {
        let ada = try Self.user(1)
        let secret = OperationSecret(drawnFrom: SystemRandomness())
        let codes = RecoveryCode.codes(secret)
        #expect(codes.count == 10 && Set(codes).count == 10)
        #expect(codes == RecoveryCode.codes(try #require(OperationSecret(secret.reveal()))))
        #expect(codes.allSatisfy { RecoveryCode.digest($0, user: ada) != nil })
    }
}
