import Bytes
import Crypto
import Curl
import Testing
import World

@testable import WebPush

@Suite struct ContentCodingTests {
    private func bytes(_ text: String) throws -> [UInt8] { try #require(Base64URL.decode(text)) }

    private func key(_ scalar: String) throws -> P256PrivateKey { try P256PrivateKey(scalar: Secret(bytes(scalar))) }

    // MARK: RFC 8188

    @Test func rfc8188EncodingMatchesTheExample() throws {
        let sealed = try ContentCoding.seal(
            Array("I am the walrus".utf8), key: Secret(bytes("yqdlZ-tYemfogSmv7Ws5PQ")),
            salt: bytes("I1BsxtFttlv3u_Oo94xnmw"))
        #expect(
            Base64URL.encode(sealed) == "I1BsxtFttlv3u_Oo94xnmwAAEAAA-NAVub2qFgBEuQKRapoZu-IxkIva3MEB1PD-ly8Thjg")
    }

    private let twoRecords =
        "uNCkWiNYzKTnBN9ji3-qWAAAABkCYTHOG8chz_gnvgOqdGYovxyjuqRyJFjEDyoF1Fvkj6hQPdPHI51OEUKEpgz3SsLWIqS_uA"

    @Test func rfc8188MultiRecordExampleDecodes() throws {
        let secret = Secret(try bytes("BO3ZVPxUlnLORbVGMpbT1Q"))
        let opened = ContentCoding.open(try bytes(twoRecords)) { id in id == Array("a1".utf8) ? secret : nil }
        #expect(opened.map { String(decoding: $0, as: UTF8.self) } == "I am the walrus")
    }

    @Test func changedOrTruncatedMessageIsRefused() throws {
        let secret = Secret(try bytes("BO3ZVPxUlnLORbVGMpbT1Q"))
        let whole = try bytes(twoRecords)
        #expect(ContentCoding.open(whole) { _ in nil } == nil)
        // Only the first record, which announces a second one.
        for count in 0..<whole.count { #expect(ContentCoding.open(Array(whole[..<count])) { _ in secret } == nil) }
        for at in whole.indices where !(21...22).contains(at) {
            var changed = whole
            changed[at] ^= 1
            #expect(ContentCoding.open(changed) { _ in secret } == nil, "byte \(at)")
        }
        // The same records in another order.
        let swapped = Array(whole[..<23] + whole[48...] + whole[23..<48])
        #expect(ContentCoding.open(swapped) { _ in secret } == nil)
    }

    // MARK: RFC 8291

    private let published =
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A"
        + "_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    private let text = "When I grow up, I want to be a watermelon"

    private func subscriber() throws -> (key: P256PrivateKey, subscription: PushSubscription) {
        let key = try key("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94")
        let auth = Secret(try bytes("BTBZMqHH6r4Tts7J_aSIgg"))
        let url = try #require(TransferURL("https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV"))
        return (key, PushSubscription(endpoint: url, publicKey: key.publicKey, auth: auth))
    }

    @Test func rfc8291EncodingMatchesTheExample() throws {
        let sealed = try MessageCoding.seal(
            Array(text.utf8), for: subscriber().subscription,
            sender: key("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"), salt: bytes("DGv6ra1nlYgDCS1FRnbzlw"),
            padding: 0)
        #expect(Base64URL.encode(sealed) == published)
    }

    @Test func rfc8291ExampleDecodes() throws {
        let (key, subscription) = try subscriber()
        let opened = MessageCoding.open(try bytes(published), key: key, auth: subscription.auth)
        #expect(opened.map { String(decoding: $0, as: UTF8.self) } == text)
        let stranger = try P256PrivateKey.generate()
        #expect(MessageCoding.open(try bytes(published), key: stranger, auth: subscription.auth) == nil)
        #expect(MessageCoding.open(try bytes(published), key: key, auth: Secret(Array(repeating: 0, count: 16))) == nil)
    }

    @Test(arguments: [(0, 1024), (1, 1024), (1024, 1024), (1025, 2048), (2049, 3993), (3993, 3993)])
    func paddingHidesTheLength(_ count: Int, _ filled: Int) throws {
        let (key, subscription) = try subscriber()
        let text = [UInt8](repeating: 0x61, count: count)
        let sealed = try MessageCoding.seal(text, for: subscription, randomness: SystemRandomness())
        // Head, key, delimiter and tag.
        #expect(sealed.count == filled + 86 + 1 + 16)
        #expect(sealed.count <= 4096)
        #expect(MessageCoding.open(sealed, key: key, auth: subscription.auth) == text)
        let again = try MessageCoding.seal(text, for: subscription, randomness: SystemRandomness())
        // Salt and key are new for each message.
        #expect(again.prefix(16) != sealed.prefix(16))
        #expect(again[21..<86] != sealed[21..<86])
    }

    @Test func oversizedMessageIsRefused() throws {
        let text = [UInt8](repeating: 0x61, count: MessageCoding.longest + 1)
        #expect(throws: CryptoFailure.self) {
            try MessageCoding.seal(text, for: subscriber().subscription, randomness: SystemRandomness())
        }
    }
}

@Suite struct PushSubscriptionTests {
    private static let point = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"

    private static func json(
        endpoint: String = "https://push.example.net/x", p256dh: String = point,
        auth: String = "BTBZMqHH6r4Tts7J_aSIgg",
        more: String = ""
    ) -> String {
        #"{"endpoint":"\#(endpoint)",\#(more)"keys":{"p256dh":"\#(p256dh)","auth":"\#(auth)"}}"#
    }

    @Test("subscriptions as browsers write them", arguments: [json(), json(more: #""expirationTime":null,"#)])
    func validSubscriptionIsParsed(_ json: String) throws {
        let subscription = try PushSubscription(token: Base64URL.encode(Array(json.utf8)))
        #expect(subscription.endpoint.text == "https://push.example.net/x")
        #expect(Base64URL.encode(subscription.publicKey.x963) == Self.point)
        #expect(subscription.auth.count == 16)
        let again = try PushSubscription(token: subscription.token)
        #expect(again.token == subscription.token)
        #expect(again.endpoint == subscription.endpoint)
    }

    @Test(
        "invalid subscriptions",
        arguments: [
            "", "{}", "[]", #"{"endpoint":"https://push.example.net/x"}"#,
            json(endpoint: "http://push.example.net/x"), json(endpoint: "https://user@push.example.net/x"),
            json(endpoint: "https://push.example.net/x#y"), json(endpoint: "push.example.net"), json(endpoint: ""),
            json(endpoint: "https://push.example.net/" + String(repeating: "x", count: 1000)),
            json(p256dh: ""), json(p256dh: String(point.dropLast(4))), json(p256dh: point + "="),
            // Not on the curve.
            json(p256dh: String(point.dropLast(4)) + "AAAA"),
            json(auth: ""), json(auth: "BTBZMqHH6r4Tts7J_aSI"), json(auth: "BTBZMqHH6r4Tts7J_aSIggAA"),
            json(more: #""endpoint":"https://other.example.net/","#),
        ])
    func malformedSubscriptionFieldIsRefused(_ json: String) {
        #expect(throws: PushSubscription.Fault.self) {
            try PushSubscription(token: Base64URL.encode(Array(json.utf8)))
        }
    }

    @Test(arguments: ["", "not base64!", "eyJ", "0123456789abcdef"]) func malformedSubscriptionIsRefused(_ text: String)
    {
        #expect(throws: PushSubscription.Fault.self) { try PushSubscription(token: text) }
    }
}
