import Bytes
import Domain
import Glibc
import Testing
import World

@Suite struct OTPTests {
    private static func seed(_ count: Int) -> Secret {
        Secret((0..<count).map { Array("1234567890".utf8)[$0 % 10] })
    }

    static let rfc4226 = [
        "755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489",
    ]

    @Test("RFC 4226 appendix D", arguments: Array(rfc4226.enumerated()))
    func hotpMatchesRFC4226Vectors(place: Int, code: String) {
        let counter = UInt64(place)
        #expect(OTP.code(secret: Self.seed(20), counter: counter, algorithm: .sha1, digits: 6) == code)
        #expect(OTP.matches(code, secret: Self.seed(20), counter: counter, algorithm: .sha1, digits: 6))
        #expect(!OTP.matches(code, secret: Self.seed(20), counter: counter + 1, algorithm: .sha1, digits: 6))
    }

    /// The times in seconds, with the codes by SHA-1, SHA-256 and SHA-512. The keys are those of the erratum, as
    /// long as the hashes.
    static let rfc6238: [(seconds: Int64, codes: [String])] = [
        (59, ["94287082", "46119246", "90693936"]),
        (1_111_111_109, ["07081804", "68084774", "25091201"]),
        (1_111_111_111, ["14050471", "67062674", "99943326"]),
        (1_234_567_890, ["89005924", "91819424", "93441116"]),
        (2_000_000_000, ["69279037", "90698825", "38618901"]),
        (20_000_000_000, ["65353130", "77737706", "47863826"]),
    ]

    @Test("RFC 6238 appendix B", arguments: rfc6238) func totpMatchesRFC6238Vectors(seconds: Int64, codes: [String]) {
        let step = UInt64(OTP.step(at: Timestamp(seconds: seconds), period: 30))
        for (at, algorithm) in [OTPAlgorithm.sha1, .sha256, .sha512].enumerated() {
            let secret = Self.seed([20, 32, 64][at])
            #expect(OTP.code(secret: secret, counter: step, algorithm: algorithm, digits: 8) == codes[at])
        }
    }

    @Test func totpStepsCountFrom1970() {
        #expect(OTP.step(at: Timestamp(milliseconds: 29_999), period: 30) == 0)
        #expect(OTP.step(at: Timestamp(milliseconds: 30_000), period: 30) == 1)
        #expect(OTP.step(at: Timestamp(milliseconds: 119_999), period: 60) == 1)
        #expect(OTP.step(at: Timestamp(milliseconds: -1), period: 30) == 0)
    }

    @Test func nonDigitsAreNoCode() {
        #expect(OTP.isCode("012345", digits: 6))
        for text in ["", "12345", "1234567", "12345a", " 12345", "١٢٣٤٥٦", "１２３４５６"] {
            #expect(!OTP.isCode(text, digits: 6), "\(text)")
        }
    }

    /// 10,000 codes by random keys, counters and times, each hundred from one run of oathtool.
    @Test func otpMatchesOathtool() throws {
        var chance = Draws(state: 4226)
        var script = "set -e\n"
        var ours: [String] = []
        for _ in 0..<100 {
            let size = [20, 32, 64][Int.random(in: 0...2, using: &chance)]
            let key = (0..<size).map { _ in UInt8.random(in: 0...255, using: &chance) }
            let digits = Int.random(in: OTP.digits, using: &chance)
            let isTimed = Bool.random(using: &chance)
            let algorithm = isTimed ? OTPAlgorithm.allCases[Int.random(in: 0...2, using: &chance)] : .sha1
            let first: UInt64
            if isTimed {
                let period = Bool.random(using: &chance) ? 30 : 60
                let seconds = Int64.random(in: 0..<4_000_000_000, using: &chance)
                first = UInt64(OTP.step(at: Timestamp(seconds: seconds), period: period))
                script += "oathtool --totp=\(algorithm.rawValue) -d \(digits) -w 99 -s \(period)s -N @\(seconds)"
            } else {
                first =
                    UInt64.random(in: 0..<UInt64(Int64.max), using: &chance)
                    >> UInt64.random(in: 0..<60, using: &chance)
                script += "oathtool --hotp -d \(digits) -w 99 -c \(first)"
            }
            script += " \(Hex.encode(key))\n"
            ours += (0..<100).map {
                OTP.code(secret: Secret(key), counter: first + $0, algorithm: algorithm, digits: digits)
            }
        }
        let theirs = try Self.run(script).split(separator: "\n").map { String($0) }
        #expect(theirs.count == 10_000)
        #expect(theirs == ours)
    }

    /// A manufacturer's file may contain any counter.
    @Test func counterOverflowIsRefused() {
        #expect(CodeWindow.counters(from: 7) == Array(7..<17))
        #expect(CodeWindow.counters(from: -1) == Array(0..<10))
        #expect(CodeWindow.counters(from: Int64.max - 11) == (0..<10).map { Int64.max - 11 + $0 })
        for expected in [Int64.max - 10, .max - 1, .max] { #expect(CodeWindow.counters(from: expected).isEmpty) }
    }

    /// Runs a shell script, and returns its output.
    private static func run(_ script: String) throws -> String {
        let pipe = try #require(popen(script, "r"))
        var output: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while case let count = fread(&chunk, 1, chunk.count, pipe), count > 0 { output += chunk[..<count] }
        #expect(pclose(pipe) == 0)
        return String(decoding: output, as: UTF8.self)
    }
}

/// SplitMix64: the same numbers in every run.
private struct Draws: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
