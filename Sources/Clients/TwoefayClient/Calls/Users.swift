import Bytes
import JSON

extension RelayClient {
    /// A user who was made known, and what binds the first phone.
    public struct Registered: Sendable, Equatable {
        /// The relay's name for the user.
        public let token: String
        public let activation: Activation
    }

    /// Makes a user known. Where the answer got lost on its way, the repetition throws `.shownOnce`: the user is known then,
    /// and `activation(for:)` gives another code.
    public func register(
        _ username: String, email: String? = nil, phone: String? = nil, displayName: String? = nil,
        language: String? = nil
    ) async throws(CallFault) -> Registered {
        var body: JSONObject = ["username": .string(username)]
        for (name, value) in [
            ("email", email), ("phone", phone), ("display_name", displayName), ("language", language),
        ] {
            body.set(name, value.map { .string($0) })
        }
        let answer = try await call("POST", "/register", body)
        return Registered(
            token: try answer.text("token"), activation: try Activation(try answer.object("activation")))
    }

    /// For another phone. Throws `.approvalRequired` where the user has to say yes first: see `Problem.approval`.
    ///
    /// - Parameter approval: the challenge with which the user did.
    public func activation(for username: String, approval: String? = nil) async throws(CallFault) -> Activation {
        try Activation(try await call("POST", Self.path(username, "activation"), Self.body(approval)))
    }

    public func user(_ username: String) async throws(CallFault) -> RelayUser {
        try RelayUser(try await call("GET", Self.path(username)))
    }

    /// Of the user nothing is left but ids.
    public func forget(_ username: String) async throws(CallFault) {
        try await call("DELETE", Self.path(username))
    }

    /// Lifts a lock, or a freeze where the website may. Where codes are locked it throws `.approvalRequired`: the user
    /// has to approve on a phone, see `Problem.approval`. A recovery code does not lift that (`.codesLocked`).
    ///
    /// - Parameters:
    ///   - recoveryCode: lifts what the user called fraud, too.
    ///   - approval: the challenge with which the user has approved of codes being taken again.
    ///   - isKnown: the browser is known as this user's, as in `LoginRequest`.
    /// - Returns: false where that is none of the user's codes, which counts.
    @discardableResult
    public func unlock(
        _ username: String, recoveryCode: String? = nil, approval: String? = nil, isKnown: Bool = false
    ) async throws(CallFault) -> Bool {
        var body = Self.body(approval)
        if isKnown { body.set("known", true) }
        body.set("otp", recoveryCode.map { .string($0) })
        return try await call("POST", Self.path(username, "unlock"), body)["unlocked"]?.bool ?? true
    }

    // MARK: Names and addresses

    /// What is to be changed of a user.
    public struct Change: Sendable, Equatable {
        public enum Value: Sendable, Equatable {
            case to(String)
            case removed
        }

        public var email: Value?
        public var phone: Value?
        public var displayName: Value?
        public var language: Value?

        public init(
            email: Value? = nil, phone: Value? = nil, displayName: Value? = nil, language: Value? = nil
        ) {
            self.email = email
            self.phone = phone
            self.displayName = displayName
            self.language = language
        }

        var body: JSONObject {
            var body = JSONObject()
            for (name, value) in [
                ("email", email), ("phone", phone), ("display_name", displayName), ("language", language),
            ] {
                switch value {
                case .to(let text): body[name] = .string(text)
                case .removed: body[name] = .null
                case nil: break
                }
            }
            return body
        }
    }

    /// Where it gives a new address or has an approval, and no answer comes, it is not repeated but throws `.unanswered`: whether
    /// it was done, `user` shows of what counts, and the code that is there of what waits.
    ///
    /// - Returns: the new addresses that wait for the code which went there: see `confirm`.
    @discardableResult
    public func change(
        _ username: String, _ change: Change, approval: String? = nil
    ) async throws(CallFault) -> [String] {
        var body = change.body
        body.set("approval", approval.map { .string($0) })
        return try await call("PATCH", Self.path(username), body).texts("waiting")
    }

    /// - Returns: false for a wrong code, which counts.
    public func confirm(_ address: String, of username: String, code: String) async throws(CallFault) -> Bool {
        try await call(
            "POST", Self.path(username, "confirm"), ["address": .string(address), "otp": .string(code)]
        ).flag("confirmed")
    }

    /// A new address is sent another code.
    public func sendCode(to address: String, of username: String) async throws(CallFault) {
        try await call("POST", Self.path(username, "confirm"), ["address": .string(address)])
    }

    // MARK: Phones

    /// A phone that is suspended keeps its place and may be resumed.
    @discardableResult
    public func suspend(_ device: String, of username: String) async throws(CallFault) -> Device {
        try await change(device, of: username, ["state": "suspended"])
    }

    @discardableResult
    public func resume(_ device: String, of username: String) async throws(CallFault) -> Device {
        try await change(device, of: username, ["state": "active"])
    }

    @discardableResult
    public func rename(_ device: String, of username: String, to name: String) async throws(CallFault) -> Device {
        try await change(device, of: username, ["name": .string(name)])
    }

    /// For good: the phone has to be bound anew, with another key.
    public func unbind(_ device: String, of username: String) async throws(CallFault) {
        try await call("DELETE", Self.path(username, "devices", device))
    }

    private func change(
        _ device: String, of username: String, _ body: JSONObject
    ) async throws(CallFault) -> Device {
        try Device(try await call("PATCH", Self.path(username, "devices", device), body))
    }

    static func path(_ username: String, _ rest: String...) -> String {
        (["", "user", username] + rest).map(PercentEncoding.encode).joined(separator: "/")
    }

    static func body(_ approval: String?) -> JSONObject {
        var body = JSONObject()
        body.set("approval", approval.map { .string($0) })
        return body
    }
}
