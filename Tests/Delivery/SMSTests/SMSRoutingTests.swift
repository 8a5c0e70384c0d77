import Domain
import GSM
import Testing

@testable import SMS

@Suite struct SMSRoutingTests {
    private func prefixes(_ texts: String...) -> [NumberPrefix] { texts.compactMap { NumberPrefix($0) } }

    @Test func longestPrefixComesFirst() {
        let routing = SMSRouting([
            .init(gateway: "world", priority: 1), .init(gateway: "spare", priority: 2),
            .init(gateway: "german", prefixes: prefixes("+49", "+43"), priority: 9),
            .init(gateway: "mobile", prefixes: prefixes("+4915", "+4916", "+4917")),
            .init(gateway: "first", priority: 1),
        ])
        let names = { (number: String) in routing.gateways(for: number).map(\.gateway) }
        #expect(names("+4915112345678") == ["mobile", "german", "world", "first", "spare"])
        #expect(names("+4930123456") == ["german", "world", "first", "spare"])
        #expect(names("+12025550123") == ["world", "first", "spare"])
    }

    @Test func numberWithoutAPrefixHasNoGateway() {
        let routing = SMSRouting([.init(gateway: "german", prefixes: prefixes("+49"))])
        #expect(routing.gateways(for: "+12025550123").isEmpty)
        #expect(SMSRouting([]).gateways(for: "+4915112345678").isEmpty)
    }

    @Test func segmentCostFollowsTheNumber() throws {
        let tariff = ["+": 100_000, "+49": 75_000, "+4915": 60_000].compactMap { text, price in
            NumberPrefix(text).map { ($0, Int64(price)) }
        }
        let route = SMSRouting.Route(gateway: "one", tariff: Dictionary(uniqueKeysWithValues: tariff))
        #expect(route.cost(of: 1, to: "+4915112345678") == 60_000)
        #expect(route.cost(of: 3, to: "+4930123456") == 225_000)
        #expect(route.cost(of: 2, to: "+12025550123") == 200_000)
        #expect(SMSRouting.Route(gateway: "free").cost(of: 2, to: "+12025550123") == 0)
    }
}
