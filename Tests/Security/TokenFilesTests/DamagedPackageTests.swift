import Bytes
import TestSupport
import Testing
import TokenFiles
import World

/// Damaged and manipulated files, which are refused or read and never crash the program.
@Suite struct DamagedPackageTests {
    private static let key = PSKCKey.shared(
        Secret([0x12, 0x34, 0x56, 0x78, 0x90, 0x12, 0x34, 0x56, 0x78, 0x90, 0x12, 0x34, 0x56, 0x78, 0x90, 0x12]))
    private static let all = [
        PSKCFigures.figure2, PSKCFigures.figure3, PSKCFigures.figure4, PSKCFigures.figure5, PSKCFigures.figure6,
        PSKCFigures.figure7,
        PSKCFigures.figure8, PSKCFigures.figure9, PSKCFigures.figure10,
    ]

    private func read(_ bytes: [UInt8], _ key: PSKCKey? = Self.key) -> [Seed]? {
        try? PSKCReader.read(bytes, key: key, at: FigureTests.now).seeds
    }

    @Test func truncatedPackageIsRefused() {
        for figure in Self.all {
            let bytes = Array(figure.utf8)
            for count in stride(from: bytes.count - 1, through: 0, by: -3) {
                #expect(read(Array(bytes[..<count])) == nil)
            }
        }
    }

    /// No changed bit of the ciphertext or its MAC leads to another secret.
    @Test func changedSecretIsRefused() throws {
        let bytes = Array(PSKCFigures.figure6.utf8)
        let secret = Array("12345678901234567890".utf8)
        #expect(read(bytes)?.map { $0.secret.reveal() } == [secret])
        for text in [
            "AAECAwQFBgcICQoLDA0OD+cIHItlB3Wra1DUpxVvOx2lef1VmNPCMl8jwZqIUqGv", "Su+NvtQfmvfJzF6bmQiJqoLRExc=",
            "ESIzRFVmd4iZABEiM0RVZgKn6WjLaTC1sbeBMSvIhRejN9vJa2BOlSaMrR7I5wSX",
        ] {
            let range = try #require(PSKCFigures.figure6.utf8.firstRange(of: Array(text.utf8)))
            let start = PSKCFigures.figure6.utf8.distance(from: PSKCFigures.figure6.startIndex, to: range.lowerBound)
            for at in start..<start + text.utf8.count {
                for bit in 0..<8 {
                    var changed = bytes
                    changed[at] ^= 1 << bit
                    for seed in read(changed) ?? [] { #expect(seed.secret.reveal() == secret) }
                }
            }
        }
    }

    @Test func flippedBitNeverCrashes() {
        var read = 0
        for figure in Self.all {
            let bytes = Array(figure.utf8)
            for at in stride(from: 0, to: bytes.count, by: 3) {
                var changed = bytes
                changed[at] ^= 1 << (at / 3 & 7)
                if self.read(changed) != nil { read += 1 }
            }
        }
        // Changes in XML comments and names of manufacturers are harmless, so some files are read.
        #expect(read > 0)
    }
}
