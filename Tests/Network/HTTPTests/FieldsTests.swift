import HTTP
import Testing

struct FieldsTests {
    private let fields = Fields([
        .init("accept", "*/*"), .init("token", "first"), .init("empty", ""), .init("token", "sécond"),
        .init("accept-language", "de"),
    ])

    @Test func fieldsRoundTrip() {
        #expect(fields.all.map(\.name) == ["accept", "token", "empty", "token", "accept-language"])
        #expect(fields.all.map(\.value) == ["*/*", "first", "", "sécond", "de"])
        #expect(Fields().all.isEmpty)
        #expect(Fields([]) == Fields())
    }

    @Test func fieldIsFoundByItsWholeName() {
        #expect(fields["token"] == "first")
        #expect(fields.values("token") == ["first", "sécond"])
        #expect(fields["empty"] == "")
        #expect(fields["accept-language"] == "de")
        #expect(fields["accept-"] == nil)
        #expect(fields["Token"] == nil)
        #expect(fields["first"] == nil, "a value is no name")
        #expect(fields[""] == nil)
        #expect(fields.values("none") == [])
    }

    @Test func fieldsGrowBeyondTheReservedCapacity() {
        var many = Fields()
        for number in 0..<300 { many.add("x-\(number)", String(repeating: "a", count: number)) }
        #expect(many.all.count == 300)
        #expect(many["x-299"]?.utf8.count == 299)
        #expect(many["x-0"] == "")
    }

    @Test func equalFieldsHaveTheSameOrder() {
        var same = Fields([.init("accept", "*/*")])
        for field in fields.all.dropFirst() { same.add(field.name, field.value) }
        #expect(same == fields)
        #expect(Fields(fields.all.reversed()) != fields)
        // The same letters, divided differently between name and value.
        #expect(Fields([.init("ab", "c")]) != Fields([.init("a", "bc")]))
    }

    @Test func copyOfFieldsIsIndependent() {
        var copy = fields
        copy.add("x", "1")
        #expect(copy["x"] == "1")
        #expect(fields["x"] == nil)
    }

    @Test func invalidUTF8FieldIsRepaired() {
        let name: [UInt8] = [0x78]
        let value: [UInt8] = [0x61, 0xff, 0x62]
        var broken = Fields()
        name.withUnsafeBufferPointer { name in value.withUnsafeBufferPointer { value in broken.add(name, value) } }
        #expect(broken["x"] == "a\u{fffd}b")
        #expect(broken.all == [.init("x", "a\u{fffd}b")])
    }
}
