import Testing

@testable import Domain

/// The `traceparent` of W3C Trace Context, with the values of the standard and its test suite.
struct TraceParentTests {
    private static let ids = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"

    @Test(arguments: ["01", "00", "ff"]) func valueOfVersionZeroIsPassedOn(flags: String) throws {
        let parent = try #require(TraceParent("00-\(Self.ids)-\(flags)"))
        #expect(parent.text == "00-\(Self.ids)-\(flags)")
        #expect(parent.trace == "0af7651916cd43dd8448eb211c80319c")
    }

    @Test(arguments: [
        ("cc-\(ids)-01", "01"), ("cc-\(ids)-01-what-the-future-will-be-like", "01"), ("01-\(ids)-ff-", "01"),
        ("fe-\(ids)-02", "00"),
    ])
    func laterVersionIsReadAsVersionZero(value: String, flags: String) {
        #expect(TraceParent(value)?.text == "00-\(Self.ids)-\(flags)")
    }

    @Test(arguments: [
        "", "00", "00-\(ids)", "00-\(ids)-", "00-\(ids)-1", "00-\(ids)-01-", "00-\(ids)-01-extra", "00-\(ids)-01 ",
        "ff-\(ids)-01", "0-\(ids)-01", ".0-\(ids)-01", "0A-\(ids)-01", "00-\(ids)-0A", "00-\(ids)-.0",
        "cc-\(ids)-01.what", "00_\(ids)_01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-.af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319-b7ad6b71692033310-01",
        "00-\u{e4}f7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
    ])
    func malformedValueIsNone(value: String) {
        #expect(TraceParent(value) == nil)
    }
}
