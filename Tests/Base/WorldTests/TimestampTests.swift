import Testing
import World

@Suite struct TimestampTests {
    @Test(
        arguments: [
            ("1970-01-01T00:00:00.000Z", 0), ("1969-12-31T23:59:59.999Z", -1),
            ("2000-02-29T00:00:00.000Z", 951_782_400_000),
            ("2000-03-01T00:00:00.000Z", 951_868_800_000), ("1999-12-31T23:59:59.000Z", 946_684_799_000),
            ("2024-02-29T12:34:56.789Z", 1_709_210_096_789), ("2026-11-21T08:22:34.123Z", 1_795_249_354_123),
            ("1900-02-28T23:59:59.000Z", -2_203_891_201_000), ("2038-01-19T03:14:08.000Z", 2_147_483_648_000),
            ("0001-01-01T00:00:00.000Z", -62_135_596_800_000), ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        ] as [(String, Int64)])
    func knownDatesRoundTrip(text: String, milliseconds: Int64) {
        #expect(Timestamp(rfc3339: text)?.milliseconds == milliseconds)
        #expect(Timestamp(milliseconds: milliseconds).rfc3339 == text)
        let sql = String(text.dropLast()).split(separator: "T").joined(separator: " ")
        #expect(Timestamp(milliseconds: milliseconds).sql == sql)
        #expect(Timestamp(sql: sql)?.milliseconds == milliseconds)
    }

    @Test func yearsOfMoreDigitsAreWritten() {
        #expect(Timestamp(milliseconds: 253_402_300_800_000).rfc3339 == "10000-01-01T00:00:00.000Z")
        #expect(Timestamp(milliseconds: 253_402_300_800_000).sql == "10000-01-01 00:00:00.000")
    }

    @Test(
        "Examples of RFC 3339 §5.8 in UTC",
        arguments: [
            ("1985-04-12T23:20:50.52Z", 482_196_050_520), ("1990-12-31T23:59:60Z", 662_688_000_000),
            ("2026-11-21T08:22:34Z", 1_795_249_354_000), ("2026-11-21T08:22:34.123456789Z", 1_795_249_354_123),
        ] as [(String, Int64)])
    func malformedTimestampsAreRefused(text: String, milliseconds: Int64) {
        #expect(Timestamp(rfc3339: text)?.milliseconds == milliseconds)
    }

    @Test(arguments: [
        "", "2026-11-21", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-04-31T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-10T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:61Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00+00:00",
        "2026-01-01 00:00:00Z", "2026-01-01T00:00:00Zx", "+026-01-01T00:00:00Z", "２026-01-01T00:00:00Z",
        "2026-01-01T00:00:00.1", "2026-01-01t00:00:00Z", " 2026-01-01T00:00:00Z",
    ])
    func impossibleTimestampsAreRefused(text: String) {
        #expect(Timestamp(rfc3339: text) == nil)
    }

    @Test("Each day of four centuries follows the previous one and survives a round trip") func everyDayRoundTrips()
        throws
    {
        var previous = Timestamp(rfc3339: "1799-12-31T00:00:00.000Z")
        for day in 0..<146_097 {
            let timestamp = Timestamp(milliseconds: -5_364_662_400_000 + Int64(day) * 86_400_000)
            let text = timestamp.rfc3339
            #expect(Timestamp(rfc3339: text) == timestamp)
            #expect(previous.map { $0.rfc3339 < text } == true)
            previous = timestamp
        }
        #expect(previous?.rfc3339 == "2199-12-31T00:00:00.000Z")
    }

    @Test func timestampArithmeticIsExact() {
        let moment = Timestamp(milliseconds: 1_500)
        #expect(moment + .seconds(2) == Timestamp(milliseconds: 3_500))
        #expect(moment - .milliseconds(2_000) == Timestamp(milliseconds: -500))
        #expect(moment - Timestamp(seconds: 1) == .milliseconds(500))
        #expect(Timestamp(milliseconds: -500).seconds == -1)
        #expect(Timestamp(milliseconds: 999).seconds == 0)
        #expect(Timestamp(seconds: 1) < moment)
        #expect(Instant(nanoseconds: 5) + .microseconds(1) == Instant(nanoseconds: 1_005))
        #expect(Instant(nanoseconds: 1_005) - Instant(nanoseconds: 5) == .microseconds(1))
        #expect(Duration.seconds(-1).wholeMilliseconds == -1_000)
    }

    /// Peers choose such numbers, as the `iat` of what they sign.
    @Test(
        arguments: [
            Int64.max, 9_223_372_036_854_776, 9_223_372_036_854_775, -9_223_372_036_854_775, -9_223_372_036_854_776,
            Int64.min,
        ] as [Int64])
    func numberThatNoClockShowsOverflowsNothing(seconds: Int64) {
        let now = Timestamp(milliseconds: 1_800_000_000_000)
        let chosen = Timestamp(seconds: seconds)
        let (isLater, since, until): (Bool, Duration, Duration) = (chosen > now, now - chosen, chosen - now)
        #expect(isLater == (seconds > 0))
        #expect(since.components.seconds.signum() == -seconds.signum())
        #expect(until.components.seconds.signum() == seconds.signum())
    }
}

@Suite struct SystemSourceTests {
    @Test func monotonicClockNeverGoesBack() {
        let time = SystemTime()
        let first = time.instant()
        #expect(time.instant() >= first)
        #expect(time.now() > Timestamp(seconds: 1_600_000_000))
    }

    @Test func randomnessFillsEveryByte() {
        var seen: [Bool] = Array(repeating: false, count: 64)
        for _ in 0..<16 {
            for (at, byte) in SystemRandomness().bytes(64).enumerated() where byte != 0 { seen[at] = true }
        }
        #expect(seen.allSatisfy { $0 })
        #expect(SystemRandomness().bytes(0).isEmpty)
    }

    @Test func numbersStayBelowTheirBound() {
        var seen: Set<UInt64> = []
        for _ in 0..<500 { seen.insert(SystemRandomness().number(below: 6)) }
        #expect(seen == [0, 1, 2, 3, 4, 5])
    }
}
