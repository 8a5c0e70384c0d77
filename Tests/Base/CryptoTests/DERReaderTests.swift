import Bytes
import Crypto
import Testing

@Suite struct DERReaderTests {
    private func reader(_ hex: String) -> DERReader { DERReader(Hex.decode(hex) ?? []) }

    @Test(
        "Integers are read in the encodings of X.690, 8.3",
        arguments: [
            ("020100", 0), ("02017f", 127), ("02020080", 128), ("02020100", 256), ("020180", -128), ("0202ff7f", -129),
            ("02087fffffffffffffff", Int64.max), ("02088000000000000000", Int64.min),
        ] as [(String, Int64)])
    func integersAreRead(hex: String, number: Int64) throws {
        var reader = reader(hex)
        #expect(try reader.integer() == number)
        try reader.finish()
    }

    @Test(
        "Encodings that DER does not allow are refused",
        arguments: [
            ("0200", .content), ("02020001", .content), ("0202ff80", .content), ("0209010000000000000000", .content),
            ("0281017f", .length), ("0280", .length), ("0282000100", .length), ("02847fffffff", .length),
            ("02", .incomplete), ("020201", .incomplete), ("0281", .incomplete), ("0282ff", .incomplete),
            ("0a0101", .type), ("220101", .type), ("820101", .type), ("1f1e00", .tag), ("1f801f00", .tag),
            ("1f", .incomplete), ("1fffffffff7f00", .tag), ("", .incomplete),
        ] as [(String, DERError)])
    func otherEncodingsAreRefused(hex: String, error: DERError) {
        var reader = reader(hex)
        #expect(throws: error) { try reader.integer() }
    }

    @Test func booleansAndNullHaveOneEncoding() throws {
        var values = reader("0101ff0101000500")
        #expect(try values.boolean())
        #expect(try !values.boolean())
        try values.null()
        try values.finish()
        for hex in ["010101", "0100", "01020000"] {
            var value = reader(hex)
            #expect(throws: DERError.content) { try value.boolean() }
        }
        var null = reader("050100")
        #expect(throws: DERError.content) { try null.null() }
    }

    @Test func highTagNumbersAreRead() throws {
        // [709] { OCTET STRING }, [31] { NULL } and [2^28 − 1] { NULL }.
        var values = reader("bf854503040161bf1f020500bfffffff7f020500")
        var (number, inner) = try values.openExplicit()
        #expect(number == 709)
        #expect(try inner.octets() == [0x61])
        try inner.finish()
        #expect(try values.openExplicit().number == 31)
        #expect(try values.openExplicit().number == 268_435_455)
        try values.finish()
    }

    @Test func valuesMustEndWhereTheirContainerEnds() throws {
        var outer = reader("3003020101020102")
        var sequence = try outer.open(.sequence)
        #expect(try sequence.integer() == 1)
        try sequence.finish()
        #expect(throws: DERError.incomplete) { try sequence.integer() }
        #expect(throws: DERError.trailingBytes) { try outer.finish() }
        var short = try #require(
            try? { () throws in
                var outer = reader("3002020101")
                return try outer.open(.sequence)
            }())
        #expect(throws: DERError.incomplete) { try short.integer() }
    }
}
