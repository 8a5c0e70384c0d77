import Bytes
import Crypto
import Curl
import DeliveryOutcomes
import Domain
import EventLoop
import JSON
import Log
import Relay
import TestSupport
import Testing
import WebPush
import World

@testable import Couriers

@Suite struct WebPushCourierTests {
    private func courier(allowing ranges: [String] = []) throws -> WebPushCourier {
        var options = WebPushSender.Options()
        options.client.addresses = AddressGuard(allowing: try ranges.map { try #require(AddressRange($0)) })
        let log = Log(sink: MemorySink())
        let vapid = VAPID(key: try .generate(), contact: "mailto:op@example.com", time: SystemTime(), log: log)
        return WebPushCourier(
            WebPushSender(
                vapid: vapid, time: SystemTime(), randomness: SystemRandomness(), log: log, options: options))
    }

    private func token(_ endpoint: String) throws -> String { try TestSubscriber(endpoint).subscription.token }

    @Test func browsersAndSubscriptionsAreServed() throws {
        let courier = try courier()
        let token = try token("https://push.example.net/x")
        #expect(courier.serves(.web, pushToken: token))
        #expect(courier.serves(.web, pushToken: "rubbish"))
        #expect(courier.serves(.other, pushToken: token))
        #expect(courier.serves(.android, pushToken: token))
        #expect(!courier.serves(.other, pushToken: Sample.token))
        #expect(!courier.serves(.ios, pushToken: token))
        #expect(courier.service(of: Sample.push(token: token)) == .chosen)
    }

    @Test(
        "a subscription with an internal address",
        arguments: ["127.0.0.1", "10.1.2.3:8443", "169.254.169.254", "[::1]", "[::ffff:192.168.0.1]", "[fd00::1]:444"])
    func subscriptionToAPrivateAddressIsRefused(_ host: String) throws {
        let token = try token("https://\(host)/x")
        for platform in [Platform.web, .android, .other, .ios] {
            let fault = try PushServices([courier()]).fault(in: token, of: platform)
            #expect(fault?.english.hasPrefix("has an endpoint at ") == true, "\(platform)")
        }
        let all = ["0.0.0.0/0", "::/0"]
        #expect(try courier(allowing: all).fault(in: token, of: .web) == nil)
    }

    @Test func malformedSubscriptionIsReportedToTheBrowser() throws {
        let courier = try courier()
        #expect(courier.fault(in: "rubbish", of: .web)?.english.hasPrefix("must be ") == true)
        #expect(courier.fault(in: try token("https://push.example.net/x"), of: .web) == nil)
        // The address of a host name is checked only when something is sent.
        #expect(courier.fault(in: try token("https://localhost/x"), of: .web) == nil)
        #expect(courier.fault(in: "rubbish", of: .other) == nil)
    }

    @Test func webPushUsesTheCommonText() throws {
        let full = try #require(try JSONReader.read(Sample.push(place: "Vienna").webPayload).object)
        #expect(
            full == [
                "title": "Example Bank", "loc-key": "TWOEFAY_LOGIN_SERVICE_PLACE_IP",
                "loc-args": ["Online banking", "Vienna", "203.0.113.77"], "challenge": .string(Sample.challenge),
            ])
        let minimal = try #require(try JSONReader.read(Sample.push(detail: .minimal).webPayload).object)
        #expect(
            minimal == [
                "title-loc-key": "TWOEFAY_TITLE", "loc-key": "TWOEFAY_LOGIN", "challenge": .string(Sample.challenge),
            ])
    }

    @Test func oversizedWebPushTextIsOmitted() throws {
        let long = String(repeating: "\u{1}", count: 256)
        let bytes = Sample.push(website: long, service: long, ip: long, place: long).webPayload
        #expect(bytes.count <= MessageCoding.longest)
        #expect(bytes == Sample.push(detail: .minimal).webPayload)
    }
}

/// A courier that keeps the pushes that it gets.
private final class Provider: PushCourier {
    let prefix: String
    let platform: Platform
    init(_ prefix: String, _ platform: Platform) { (self.prefix, self.platform) = (prefix, platform) }

    func serves(_ platform: Platform, pushToken: String) -> Bool {
        platform == self.platform || (platform == .other && pushToken.hasPrefix(prefix))
    }
    func fault(in pushToken: String, of platform: Platform) -> LocalizedText? {
        pushToken.hasPrefix(prefix) ? nil : LocalizedText("is not \(prefix)", de: "ist nicht \(prefix)")
    }
    func service(of push: Push) -> PushService { .configured(host: prefix, isUnreachable: false) }
    func send(_ push: Push) async -> DeliveryOutcome { .misconfigured(.message, reason: prefix) }
}

@Suite struct PushServicesTests {
    private let services = PushServices([Provider("a", .ios), Provider("b", .web)])

    @Test func phoneBelongsToTheFirstServiceThatServesIt() async {
        #expect(services.serves(.ios, pushToken: "x"))
        #expect(services.serves(.web, pushToken: "x"))
        #expect(!services.serves(.android, pushToken: "b1"))
        #expect(services.serves(.other, pushToken: "b1"))
        #expect(!services.serves(.other, pushToken: "c1"))
        #expect(services.fault(in: "x", of: .web)?.english == "is not b")
        #expect(services.fault(in: "b1", of: .web) == nil)
        #expect(services.fault(in: "x", of: .android) == nil)
        #expect(await services.send(Sample.push(token: "a1")) == .misconfigured(.message, reason: "a"))
        #expect(await services.send(Sample.push(token: "b1")) == .misconfigured(.message, reason: "b"))
        #expect(await services.send(Sample.push(token: "c1")) == .misconfigured(.message, reason: "a"))
        for (token, host) in [("a1", "a"), ("b1", "b"), ("c1", "a")] {
            #expect(services.service(of: Sample.push(token: token)) == .configured(host: host, isUnreachable: false))
        }
    }
}
