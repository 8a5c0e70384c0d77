import Domain
import Pushes
import Relay
import Testing
import World

@testable import Couriers

@Suite struct NotificationTests {
    @Test func notificationContainsEveryFieldOfThePush() {
        let deliverBy = Timestamp(milliseconds: 1_800_000_100_333)
        let push = Sample.push(environment: .sandbox, deliverBy: deliverBy)
        #expect(
            push.notification
                == APNsNotification(
                    id: "01234567-89ab-cdef-0123-456789abcdef", deviceToken: Sample.token, environment: .sandbox,
                    payload: APNsPayload.bytes(for: push), collapseID: Sample.challenge, expiresAt: push.expiresAt,
                    deliverBy: deliverBy, owner: "Example Bank"))
    }

    /// The push service, chosen by the form of the token if the platform does not name one.
    @Test(arguments: [
        (Platform.ios, Sample.token, true), (.ios, "no token", true), (.other, Sample.token, true),
        (.other, "APA91bHun4:x", false), (.android, Sample.token, false), (.web, Sample.token, false),
    ])
    func phoneOfAnotherPlatformIsNotServedByAPNs(platform: Platform, token: String, isFor: Bool) {
        #expect(APNsCourier.isFor(platform, pushToken: token) == isFor)
    }
}
