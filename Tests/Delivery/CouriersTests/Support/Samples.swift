import Domain
import Relay
import World

enum Sample {
    static let challenge = "00112233445566778899aabbccddeeff"
    static let user = "7766554433221100ffeeddccbbaa9988"
    static let device = "8899aabbccddeeff0011223344556677"
    static let token = String(repeating: "a1", count: 32)

    static func push(
        id: String = "0123456789abcdef0123456789abcdef", token: String = Sample.token,
        environment: PushEnvironment = .production, detail: PushDetail = .full, website: String = "Example Bank",
        service: String? = "Online banking", ip: String? = "203.0.113.77",
        place: String? = nil,
        expiresAt: Timestamp = Timestamp(milliseconds: 1_800_000_300_999), deliverBy: Timestamp? = nil
    ) -> Push {
        guard let id = OutboxEntryID(id), let challenge = ChallengeID(challenge), let device = DeviceID(device),
            let user = UserID(self.user)
        else {
            fatalError("not an id: \(id)")
        }
        return Push(
            id: id, challenge: challenge, user: user, device: device, deviceToken: token,
            environment: environment, detail: detail, website: website, service: service, ip: ip,
            place: place, askedAt: expiresAt - .seconds(300), expiresAt: expiresAt, deliverBy: deliverBy)
    }
}
