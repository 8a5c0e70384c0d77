import Couriers
import Curl
import Log
import Pushes
import Relay
import WebPush
import World

extension LoadedFiles.WebPush {
    func sender(time: any TimeSource, randomness: any Randomness, log: Log) -> WebPushSender {
        var options = WebPushSender.Options()
        options.client.addresses = AddressGuard(allowing: allowed)
        options.client.extraTrust = authority
        let vapid = VAPID(key: key, contact: contact, time: time, log: log)
        return WebPushSender(vapid: vapid, time: time, randomness: randomness, log: log, options: options)
    }
}

extension PushServices {
    /// The push services that are set; nil if there is none.
    convenience init?(apns: APNsSender?, fcm: FCMSender?, web: WebPushSender?) {
        let services: [(any PushCourier)?] = [
            apns.map { APNsCourier($0) }, fcm.map { FCMCourier($0) }, web.map { WebPushCourier($0) },
        ]
        guard services.contains(where: { $0 != nil }) else { return nil }
        self.init(services.compactMap { $0 })
    }
}
