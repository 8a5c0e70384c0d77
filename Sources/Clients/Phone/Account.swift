import Bytes
import JSON
import World

/// The account of the phone's user: phones, code factors and the last logins.
public struct OwnAccount: Sendable, Equatable {
    public struct Device: Sendable, Equatable {
        public let id: String
        public let name: String?
        /// `active`, `suspended` or `waiting`.
        public let state: String
        /// Whether it is this phone.
        public let isThis: Bool
    }

    public struct CodeFactor: Sendable, Equatable {
        /// `totp`, `hotp`, `sms`, `mail` or `recovery`.
        public let kind: String
        public let state: String?
        /// The masked address to which codes are sent.
        public let address: String?
        /// The number of unused recovery codes.
        public let left: Int?
    }

    public struct Login: Sendable, Equatable {
        public let challenge: String
        public let createdAt: Timestamp
        /// `success`, `failure` or `wait`.
        public let result: String
        public let reason: String?
        /// The values that a report of fraud about this login signs; nil if it would have no effect.
        public let report: Report?
    }

    public struct Report: Sendable, Equatable {
        public let nonce: String
        public let context: [UInt8]
    }

    public let username: String
    public let devices: [Device]
    public let factors: [CodeFactor]
    /// The logins, the newest first.
    public let logins: [Login]
}

extension Responder {
    /// Returns the account of the phone's user.
    public func account() async throws(CallFailure) -> OwnAccount {
        let answer = try await send(.init("/account", method: "GET"))
        let body = try answer.accepted()
        func list(_ name: String) throws(CallFailure) -> [JSONObject] {
            guard let list = body[name]?.array else { throw answer.odd("without \(name)") }
            return list.compactMap(\.object)
        }
        guard let username = body["username"]?.string else { throw answer.odd("without a user name") }
        var devices: [OwnAccount.Device] = []
        for object in try list("devices") {
            guard let id = object["device"]?.string, RelayAnswer.isID(id), let state = object["state"]?.string
            else { throw answer.odd("with an invalid phone") }
            devices.append(
                OwnAccount.Device(
                    id: id, name: object["name"]?.string, state: state, isThis: object["this"] == true))
        }
        var factors: [OwnAccount.CodeFactor] = []
        for object in try list("factors") {
            guard let kind = object["kind"]?.string else { throw answer.odd("with an invalid factor") }
            factors.append(
                OwnAccount.CodeFactor(
                    kind: kind, state: object["state"]?.string, address: object["address"]?.string,
                    left: object["left"]?.integer.map { Int($0) }))
        }
        var logins: [OwnAccount.Login] = []
        for object in try list("logins") { logins.append(try OwnAccount.Login(object, of: answer)) }
        return OwnAccount(username: username, devices: devices, factors: factors, logins: logins)
    }
}

extension OwnAccount.Login {
    fileprivate init(_ object: JSONObject, of answer: RelayAnswer) throws(CallFailure) {
        guard let challenge = object["challenge"]?.string, RelayAnswer.isID(challenge),
            let createdAt = object["created_at"]?.string.flatMap({ Timestamp(rfc3339: $0) }),
            let result = object["login"]?.string
        else { throw answer.odd("with an invalid login") }
        self.challenge = challenge
        self.createdAt = createdAt
        self.result = result
        reason = object["reason"]?.string
        report = object["report"]?.object.flatMap { report in
            guard let nonce = report["nonce"]?.string,
                let context = report["context"]?.string.flatMap({ Base64URL.decode($0) })
            else { return nil }
            return OwnAccount.Report(nonce: nonce, context: context)
        }
    }
}
