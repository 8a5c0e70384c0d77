import Bytes
import TestSupport
import Testing
import TokenFiles
import World

/// The examples of RFC 6030, with the values that the RFC states.
@Suite struct FigureTests {
    static let now = Timestamp(seconds: 1_146_800_000)  // May 2006, when the keys of figure 10 were valid
    private static let shared = PSKCKey.shared(
        Secret([
            0x12, 0x34, 0x56, 0x78, 0x90, 0x12, 0x34, 0x56, 0x78, 0x90, 0x12, 0x34, 0x56, 0x78, 0x90, 0x12,
        ]))
    private static let password = PSKCKey.password(Secret(utf8: "qwerty"))

    private func read(_ figure: String, _ key: PSKCKey? = nil) throws -> SeedFile {
        try PSKCReader.read(Array(figure.utf8), key: key, at: Self.now)
    }

    private func faults(_ figure: String, _ key: PSKCKey? = nil) -> SeedFaults? {
        do throws(SeedFaults) {
            _ = try PSKCReader.read(Array(figure.utf8), key: key, at: Self.now)
            return nil
        } catch {
            return error
        }
    }

    private func text(_ seed: Seed) -> String { String(decoding: seed.secret.reveal(), as: UTF8.self) }

    @Test func rfc6030Figure2IsRead() throws {
        let seed = try #require(try read(PSKCFigures.figure2).seeds.first)
        #expect(text(seed) == "1234")
        #expect(seed.kind == .hotp(counter: 0))
        #expect((seed.username, seed.serial) == (nil, nil))
    }

    @Test func rfc6030SupplementaryDataIsRead() throws {
        let file = try read(PSKCFigures.figure3)
        let seed = try #require(file.seeds.first)
        #expect(file.seeds.count == 1 && file.remarks.isEmpty)
        #expect(text(seed) == "12345678901234567890")
        #expect(seed.kind == .hotp(counter: 0))
        #expect((seed.digits, seed.hash) == (8, .sha1))
        #expect(seed.serial == "987654321")
        #expect(seed.username == "UID=jsmith,DC=example-bank,DC=net")
        #expect(seed.line == 14)
    }

    @Test func keyWithoutASecretIsReported() throws {
        let fault = try #require(faults(PSKCFigures.figure4)?.faults.first)
        #expect(fault.message.contains("KeyReference MasterKeyLabel"))
    }

    @Test func pinKeyIsSkippedWithARemark() throws {
        let file = try read(PSKCFigures.figure5)
        #expect(file.seeds.map(text) == ["12345678901234567890"])
        #expect(file.remarks.count == 1)
    }

    @Test func packageUnderAPreSharedKeyIsDecrypted() throws {
        let seed = try #require(try read(PSKCFigures.figure6, Self.shared).seeds.first)
        #expect(text(seed) == "12345678901234567890")
        #expect((seed.digits, seed.serial) == (8, "987654321"))
        #expect(seed.kind == .hotp(counter: 0))
    }

    @Test func packageUnderAPasswordIsDecrypted() throws {
        let file = try read(PSKCFigures.figure7, Self.password)
        #expect(file.seeds.map(text) == ["12345678901234567890"])
        // The file also opens with the key that the RFC derives from the password.
        let derived = PSKCKey.shared(Secret(try #require(Hex.decode("651e63cd57008476af1ff6422cd02e41"))))
        #expect(try read(PSKCFigures.figure7, derived).seeds.map(text) == ["12345678901234567890"])
    }

    @Test func missingKeyOrPasswordIsNamed() {
        #expect(faults(PSKCFigures.figure6)?.need == .key("Pre-shared-key"))
        #expect(faults(PSKCFigures.figure7)?.need == .password("My Password 1"))
        #expect(
            faults(PSKCFigures.figure6, Self.password)?.faults.first?.message.contains("not with a password") == true)
    }

    @Test func wrongKeyDecryptsNothing() throws {
        let wrong = PSKCKey.shared(Secret(Array(repeating: 7, count: 16)))
        #expect(
            try #require(faults(PSKCFigures.figure6, wrong)?.faults.first).message.contains("ValueMAC does not match"))
        let password = PSKCKey.password(Secret(utf8: "qwertz"))
        #expect(
            try #require(faults(PSKCFigures.figure7, password)?.faults.first).message.contains(
                "ValueMAC does not match"))
        let short = PSKCKey.shared(Secret([1]))
        #expect(try #require(faults(PSKCFigures.figure6, short)?.faults.first).message.contains("the given key has 1"))
    }

    @Test func packageForACertificateIsRefusedWithAdvice() throws {
        for key in [nil, Self.shared, Self.password] {
            let fault = try #require(faults(PSKCFigures.figure8, key)?.faults.first)
            #expect(fault.message.contains("RSA") && fault.message.contains("ask the manufacturer"))
        }
    }

    @Test func packageSignatureIsReportedAsUnverified() throws {
        let file = try read(PSKCFigures.figure9)
        #expect(file.seeds.map(text) == ["12345678901234567890"])
        #expect(file.remarks.contains { $0.contains("does not verify the signature") })
    }

    /// Two of the four keys are valid in May 2006.
    @Test func severalPackagesAndValidityDatesAreRead() throws {
        let late = try #require(faults(PSKCFigures.figure10))
        #expect(late.faults.map(\.line) == late.faults.map(\.line).sorted())
        #expect(late.count == 2)
        #expect(late.faults.allSatisfy { $0.message.contains("it was valid until 2006-0") })
        let good = PSKCFigures.figure10.replacing("2006-03-31", with: "2036-03-31").replacing(
            "2006-04-30", with: "2036-04-30")
        #expect(try read(good).seeds.map(\.serial) == ["654321", "123456", "9999999", "9999999"])
        let early = good.replacing("2006-03-01", with: "2007-03-01")
        #expect(try #require(faults(early)?.faults.first).message.contains("key 3: it is not valid before 2007"))
    }
}

extension String {
    /// Replaces all occurrences of `old`.
    func replacing(_ old: String, with new: String) -> String {
        var rest = self[...]
        var text = ""
        while let range = rest.firstRange(of: old) {
            text += rest[..<range.lowerBound] + new
            rest = rest[range.upperBound...]
        }
        return text + rest
    }

}
