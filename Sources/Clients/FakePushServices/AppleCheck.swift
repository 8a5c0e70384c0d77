import HTTP
import JSON

/// Checks a request as Apple does before it looks up the device token.
///
/// The result depends only on the request. `ProviderTokenCheck` checks the provider token, whose
/// validity depends on the time.
struct AppleCheck {
    let topic: String
    static let payloadLimit = 4096
    private static let start = "/3/device/"
    static let collapseLimit = 64
    private static let pushTypes: Set<String> = [
        "alert", "background", "complication", "controls", "fileprovider", "liveactivity", "location", "mdm",
        "pushtotalk", "voip", "widgets",
    ]

    enum Finding {
        case right(ReceivedPush)
        case wrong(RefusalReason)
    }

    /// Checks the method and the path. Apple checks these before it authenticates the provider.
    func wrongAddress(_ request: Request) -> RefusalReason? {
        guard request.method == "POST" else { return .methodNotAllowed }
        guard request.path.hasPrefix(Self.start) || request.path == "/3/device", request.query == nil else {
            return .badPath
        }
        return nil
    }

    func look(at request: Request, providerToken: String?) -> Finding {
        do throws(Wrong) {
            return .right(try read(request, providerToken: providerToken))
        } catch {
            return .wrong(error.reason)
        }
    }

    private struct Wrong: Error {
        let reason: RefusalReason
        init(_ reason: RefusalReason) { self.reason = reason }
    }

    private func read(_ request: Request, providerToken: String?) throws(Wrong) -> ReceivedPush {
        let device = try device(in: request)
        let fields = request.fields
        var seen: [String] = []
        for field in fields.all where field.name.hasPrefix("apns-") || field.name == "authorization" {
            guard !seen.contains(field.name) else { throw Wrong(.duplicateHeaders) }
            seen.append(field.name)
        }
        guard let id = fields["apns-id"], Self.isUUID(id) else { throw Wrong(.badMessageID) }
        guard let topic = fields["apns-topic"] else { throw Wrong(.missingTopic) }
        guard topic == self.topic else { throw Wrong(.deviceTokenNotForTopic) }
        guard let type = fields["apns-push-type"], Self.pushTypes.contains(type) else { throw Wrong(.invalidPushType) }
        let priority = fields["apns-priority"] ?? "10"
        guard ["10", "5", "1"].contains(priority), let priority = Int(priority) else { throw Wrong(.badPriority) }
        var expiration: Int64?
        if let text = fields["apns-expiration"] {
            guard let seconds = Int64(text), seconds >= 0, String(seconds) == text else {
                throw Wrong(.badExpirationDate)
            }
            expiration = seconds
        }
        let collapse = fields["apns-collapse-id"]
        guard (collapse ?? "").utf8.count <= Self.collapseLimit else { throw Wrong(.badCollapseID) }
        return ReceivedPush(
            deviceToken: device, id: id, topic: topic, pushType: type, collapseID: collapse, expiration: expiration,
            priority: priority, providerToken: providerToken, payload: try payload(of: request),
            payloadBytes: request.body.count)
    }

    private func device(in request: Request) throws(Wrong) -> String {
        if let reason = wrongAddress(request) { throw Wrong(reason) }
        let device = String(request.path.dropFirst(Self.start.count))
        guard !device.isEmpty else { throw Wrong(.missingDeviceToken) }
        let isHexadecimal = device.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte | 0x20)
        }
        guard isHexadecimal, device.utf8.count.isMultiple(of: 2) else { throw Wrong(.badDeviceToken) }
        return device
    }

    private func payload(of request: Request) throws(Wrong) -> JSONObject {
        guard request.body.count <= Self.payloadLimit else { throw Wrong(.payloadTooLarge) }
        // Apple has no reason for a payload that is not JSON. The check treats an unreadable
        // payload as empty.
        guard let payload = try? JSONReader.read(request.body).object, payload["aps"]?.object != nil else {
            throw Wrong(.payloadEmpty)
        }
        return payload
    }

    /// Whether the text is a UUID in canonical form and in lower case, as Apple requires.
    static func isUUID(_ text: String) -> Bool {
        let text = Array(text.utf8)
        return text.count == 36
            && text.enumerated().allSatisfy { index, byte in
                [8, 13, 18, 23].contains(index)
                    ? byte == UInt8(ascii: "-") : (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
            }
    }
}
