import GSM
import Testing
import World

@testable import Domain

@Suite struct SMSLimitTests {
    private static let user = UserID([UInt8](repeating: 7, count: 16))
    private static let now = Timestamp(rfc3339: "2026-11-22T09:59:59.999Z")

    /// Assigned country codes as ITU's Operational Bulletin lists them.
    @Test(
        "the country of a number",
        arguments: [
            ("+12025550123", "+1"), ("+79261234567", "+7"), ("+201001234567", "+20"), ("+4915112345678", "+49"),
            ("+35312345678", "+353"), ("+971501234567", "+971"), ("+8801712345678", "+880"), ("+420601123456", "+420"),
            ("+8613912345678", "+86"), ("+88213300655", "+882"), ("+211912345678", "+211"), ("+590690123456", "+590"),
        ])
    func countryPrefixIsDerivedFromANumber(_ number: String, _ country: String) {
        #expect(NumberPrefix.country(of: number).text == country)
    }

    @Test(arguments: ["+", "+1", "+49", "+4915112"]) func validNumberPrefixesAreAccepted(_ text: String) {
        #expect(NumberPrefix(text)?.text == text)
    }

    @Test(arguments: ["", "49", "+0", "+049", "+49 1", "+49151123", "++49", "+٤٩", "-49"])
    func malformedNumberPrefixesAreRefused(_ text: String) { #expect(NumberPrefix(text) == nil) }

    @Test func onlyAllowedNumbersAreCharged() throws {
        let user = try #require(Self.user)
        let now = try #require(Self.now)
        let limits = SMSLimits(allowed: ["+49", "+4366"].compactMap { NumberPrefix($0) })
        for number in ["+4915112345678", "+436641234567"] {
            #expect(limits.charge(user: user, to: number, at: now) != nil, "\(number)")
        }
        for number in ["+43512123456", "+12025550123", "4915112345678", "+49", "", "+49151\n2345678"] {
            #expect(limits.charge(user: user, to: number, at: now) == nil, "\(number)")
        }
        #expect(SMSLimits(allowed: []).charge(user: user, to: "+4915112345678", at: now) == nil)
    }

    @Test func configuredPrefixIsCountedSeparately() throws {
        let named = ["+49", "+4915", "+4"].compactMap { NumberPrefix($0) }
        let limits = SMSLimits(allowed: [.all], counted: named)
        #expect(limits.prefix(of: "+4915112345678").text == "+4915")
        #expect(limits.prefix(of: "+4930123456").text == "+49")
        // A whole zone has many countries.
        #expect(limits.prefix(of: "+420601123456").text == "+420")
    }

    @Test func messageCountsForUserCountryAndDay() throws {
        let limits = SMSLimits(userHour: 1, userDay: 2, prefixHour: 3, prefixDay: nil, day: 5)
        let user = try #require(Self.user)
        let now = try #require(Self.now)
        let charge = try #require(limits.charge(user: user, to: "+4915112345678", at: now))
        #expect(charge.prefix.text == "+49")
        #expect(
            charge.tallies == [
                .init(period: "2026-11-22", scope: "", limit: 5),
                .init(period: "2026-11-22", scope: "+49", limit: nil),
                .init(period: "2026-11-22 09", scope: "+49", limit: 3),
                .init(period: "2026-11-22", scope: "07070707070707070707070707070707", limit: 2),
                .init(period: "2026-11-22 09", scope: "07070707070707070707070707070707", limit: 1),
            ])
    }
}
