import Domain
import JSON
import Pushes
import Relay
import Testing
import World

@testable import Couriers

@Suite struct FCMCourierTests {
    private static let token = "c1dEfGhIjKlMnOpQrStUvW:APA91b" + String(repeating: "x_-9", count: 30)

    @Test func messageHasTheMembersOfAWebPushAsTexts() throws {
        let deliverBy = Timestamp(milliseconds: 1_800_000_100_333)
        let push = Sample.push(deliverBy: deliverBy)
        let message = push.message
        #expect(message.token == push.deviceToken && message.owner == push.website)
        #expect(message.expiresAt == push.expiresAt && message.deliverBy == deliverBy)
        let web = try #require(try JSONReader.read(push.webPayload).object)
        #expect(message.data.names == web.names)
        for member in web.members {
            let text = try #require(message.data[member.name]?.string)
            if let list = member.value.array {
                #expect(try JSONReader.read(Array(text.utf8)).array == list)
            } else {
                #expect(text == member.value.string)
            }
        }
        #expect(message.data["challenge"]?.string == push.challenge.text)
    }

    /// The phone of each platform and token belongs to one service at most.
    @Test(arguments: [
        (Platform.android, token, true), (.other, token, true), (.ios, token, false), (.web, token, false),
        (.android, Sample.token, false), (.android, "another-vendor", false), (.android, "", false),
    ])
    func phoneIsServedByTheFormOfItsToken(platform: Platform, token: String, isFor: Bool) {
        #expect(FCMCourier.isFor(platform, pushToken: token) == isFor)
    }

    @Test func minimalMessageNamesNothing() {
        let message = Sample.push(detail: .minimal).message
        #expect(
            message.data == [
                "title-loc-key": "TWOEFAY_TITLE", "loc-key": "TWOEFAY_LOGIN", "challenge": .string(Sample.challenge),
            ])
    }

    /// Escapes inside the list of arguments count, as FCM counts the bytes of the text.
    @Test func textThatIsTooLongBecomesMinimal() {
        let long = String(repeating: "\u{1}", count: 256)
        let push = Sample.push(service: long, ip: long, place: long)
        #expect(FCMMessage.bytes(of: push.message.data) <= FCMMessage.dataLimit)
        #expect(push.message.data["loc-key"] == "TWOEFAY_LOGIN")
    }
}
