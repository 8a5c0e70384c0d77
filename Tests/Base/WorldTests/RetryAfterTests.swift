import Testing
import World

@Suite("Retry-After (RFC 9110 §10.2.3)") struct RetryAfterTests {
    /// 1994-11-06T08:49:37Z, the time in the example of the RFC.
    private let now = Timestamp(milliseconds: 784_111_777_000)

    @Test(
        arguments: [
            ("0", 0), ("1", 1), ("120", 120), ("007", 7), ("999999999", 999_999_999),
        ] as [(String, Int64)])
    func secondsAreParsed(text: String, seconds: Int64) {
        #expect(RetryAfter.wait(text, at: now) == .seconds(seconds))
    }

    @Test("A number that overflows is a long wait, not none")
    func hugeSecondsAreALongWait() {
        for text in ["10000000000", String(repeating: "9", count: 40)] {
            #expect(RetryAfter.wait(text, at: now).map { $0 >= .seconds(100 * 365 * 86_400) } == true)
        }
    }

    @Test(
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 0), ("Sun, 06 Nov 1994 08:50:00 GMT", 23),
            ("Mon, 07 Nov 1994 08:49:37 GMT", 86_400), ("Sat, 05 Nov 1994 08:49:37 GMT", 0),
            ("Fri, 31 Dec 1999 23:59:59 GMT", 162_573_022),
        ] as [(String, Int64)])
    func datesAreParsed(text: String, seconds: Int64) {
        #expect(RetryAfter.wait(text, at: now) == .seconds(seconds))
    }

    @Test(arguments: [
        "", " ", "-1", "+1", "1.5", "1s", " 1", "1 ", "soon", "\u{0661}", "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 25:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ])
    func malformedRetryAfterIsIgnored(text: String) {
        #expect(RetryAfter.wait(text, at: now) == nil)
    }
}
