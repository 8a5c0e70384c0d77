import Attestation
import Bytes
import Testing

@Suite struct CBORReaderTests {
    private func read(_ hex: String, _ limits: CBORLimits = CBORLimits()) throws(CBORError) -> CBORValue {
        try CBORReader.read(Hex.decode(hex) ?? [], limits: limits)
    }

    @Test(
        "Values of RFC 8949 appendix A are read",
        arguments: [
            ("00", .unsigned(0)), ("01", .unsigned(1)), ("0a", .unsigned(10)), ("17", .unsigned(23)),
            ("1818", .unsigned(24)), ("1819", .unsigned(25)), ("1864", .unsigned(100)), ("1903e8", .unsigned(1000)),
            ("1a000f4240", .unsigned(1_000_000)), ("1b000000e8d4a51000", .unsigned(1_000_000_000_000)),
            ("1bffffffffffffffff", .unsigned(18_446_744_073_709_551_615)), ("3bffffffffffffffff", .negative(.max)),
            ("20", .negative(0)), ("29", .negative(9)), ("3863", .negative(99)), ("3903e7", .negative(999)),
            ("f4", .bool(false)), ("f5", .bool(true)), ("f6", .null), ("40", .bytes([])),
            ("4401020304", .bytes([1, 2, 3, 4])), ("60", .text("")), ("6161", .text("a")),
            ("6449455446", .text("IETF")),
            ("62225c", .text("\"\\")), ("62c3bc", .text("\u{fc}")), ("63e6b0b4", .text("\u{6c34}")),
            ("64f0908591", .text("\u{10151}")), ("80", .array([])),
            ("83010203", .array([.unsigned(1), .unsigned(2), .unsigned(3)])),
            (
                "8301820203820405",
                .array([
                    .unsigned(1), .array([.unsigned(2), .unsigned(3)]), .array([.unsigned(4), .unsigned(5)]),
                ])
            ),
            (
                "98190102030405060708090a0b0c0d0e0f101112131415161718181819",
                .array((1...25).map { .unsigned($0) })
            ),
            ("a0", .map([])),
            (
                "a201020304",
                .map([
                    CBORMember(key: .unsigned(1), value: .unsigned(2)),
                    CBORMember(key: .unsigned(3), value: .unsigned(4)),
                ])
            ),
            (
                "a26161016162820203",
                .map([
                    CBORMember(key: .text("a"), value: .unsigned(1)),
                    CBORMember(key: .text("b"), value: .array([.unsigned(2), .unsigned(3)])),
                ])
            ),
            (
                "826161a161626163",
                .array([.text("a"), .map([CBORMember(key: .text("b"), value: .text("c"))])])
            ),
        ] as [(String, CBORValue)])
    func examplesAreRead(hex: String, value: CBORValue) throws {
        #expect(try read(hex) == value)
    }

    @Test(
        "Values of RFC 8949 appendix A that are not supported are refused",
        arguments: [
            ("c249010000000000000000", .unsupported), ("f90000", .unsupported), ("fa47c35000", .unsupported),
            ("fb3ff199999999999a", .unsupported), ("f97c00", .unsupported), ("f7", .unsupported), ("f0", .unsupported),
            ("f8ff", .unsupported), ("c11a514b67b0", .unsupported), ("d74401020304", .unsupported),
            ("5f42010243030405ff", .indefiniteLength), ("7f657374726561646d696e67ff", .indefiniteLength),
            ("9fff", .indefiniteLength), ("9f018202039f0405ffff", .indefiniteLength),
            ("bf61610161629f0203ffff", .indefiniteLength),
            ("bf6346756ef563416d7421ff", .indefiniteLength),
        ] as [(String, CBORError)])
    func unsupportedExamplesAreRefused(hex: String, error: CBORError) {
        #expect(throws: error) { try read(hex) }
    }

    @Test(
        "Bytes that are not strict CBOR are refused",
        arguments: [
            ("", .incomplete), ("18", .incomplete), ("19ff", .incomplete), ("4401", .incomplete), ("8201", .incomplete),
            ("a101", .incomplete), ("5bffffffffffffffff", .incomplete), ("0000", .trailingBytes),
            ("1817", .notShortest), ("1900ff", .notShortest), ("1a0000ffff", .notShortest),
            ("1b00000000ffffffff", .notShortest), ("5803010203", .notShortest), ("1c", .unsupported),
            ("62c328", .invalidUTF8), ("a2616101616102", .duplicateKey), ("a201020103", .duplicateKey),
            ("9bffffffffffffffff", .tooManyValues), ("bbffffffffffffffff", .tooManyValues), ("ff", .indefiniteLength),
        ] as [(String, CBORError)])
    func malformedBytesAreRefused(hex: String, error: CBORError) {
        #expect(throws: error) { try read(hex) }
    }

    @Test func depthAndNumberOfValuesAreLimited() throws {
        let limits = CBORLimits(maxDepth: 3, maxValues: 5)
        #expect(try read("818180", limits) == .array([.array([.array([])])]))
        #expect(throws: CBORError.tooDeep) { try read("81818180", limits) }
        #expect(throws: CBORError.tooDeep) { try read("a101a101a101a0", CBORLimits(maxDepth: 3)) }
        #expect(try read("8400000000", limits).array?.count == 4)
        #expect(throws: CBORError.tooManyValues) { try read("850000000000", limits) }
        #expect(throws: CBORError.tooDeep) {
            try CBORReader.read(
                [UInt8](repeating: 0x81, count: 100_000), limits: CBORLimits(maxDepth: 1000, maxValues: 1000))
        }
    }

    @Test func canonicallyEquivalentKeysAreDifferentKeys() throws {
        // "é" as one code point, and as two.
        let map = try read("a262c3a9016365cc8102")
        #expect(map["\u{e9}"] == .unsigned(1))
        #expect(map["e\u{301}"] == .unsigned(2))
        #expect(map["e"] == nil)
    }
}
