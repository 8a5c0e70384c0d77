import Bytes
import Crypto
import Domain
import JSON
import Relay
import World

/// A request to the key service. No request signs bytes that the caller chooses, and none returns
/// the master key or the key of an authority.
public enum KeyRequest: Sendable, Equatable {
    /// Asks for the keys that are derived from the master key.
    case unwrap
    /// Asks for a certificate for the key of a phone.
    case issue(device: DeviceID, key: P256PublicKey)
    /// Asks for a certificate for another key of a phone, with a tag.
    case issueTagged(device: DeviceID, tag: CertificateTag, key: P256PublicKey)
    /// Asks for a certificate for the key of a website.
    case issueWebsite(name: String, key: P256PublicKey)
    /// Asks the command for a certificate. The phone's request asks for this name and nothing else.
    case request(device: DeviceID, tag: CertificateTag?, request: SigningRequest, isRenewal: Bool)
    /// Asks for a revocation list with these certificates. The service adds everything else.
    case revocationList([RevokedCertificate])

    /// Reads a request. Unknown verbs and members are refused.
    init(message: [UInt8]) throws(KeyServiceFailure) {
        let value: JSONValue
        do throws(JSONError) {
            value = try JSONReader.read(message, limits: JSONLimits(maxDepth: 2, maxMembers: 8))
        } catch {
            throw .malformed("a request that is not JSON")
        }
        guard let object = value.object, let verb = object["verb"]?.string else {
            throw .malformed("a request without a verb")
        }
        let members = Set(object.names)
        switch verb {
        case "unwrap" where members == ["verb"]: self = .unwrap
        case "issue" where members == ["verb", "device", "key"]:
            guard let device = object["device"]?.string.flatMap({ DeviceID($0) }),
                let bytes = object["key"]?.string.flatMap({ Base64URL.decode($0) }),
                let key = try? P256PublicKey(x963: bytes)
            else { throw .malformed("an issue without the id or the key of a phone") }
            self = .issue(device: device, key: key)
        case "issue-tagged" where members == ["verb", "device", "tag", "key"]:
            guard let device = object["device"]?.string.flatMap({ DeviceID($0) }),
                let tag = object["tag"]?.string.flatMap({ CertificateTag($0[...]) }),
                let bytes = object["key"]?.string.flatMap({ Base64URL.decode($0) }),
                let key = try? P256PublicKey(x963: bytes)
            else { throw .malformed("an issue-tagged without the id, the tag or the key of a phone") }
            self = .issueTagged(device: device, tag: tag, key: key)
        case "issue-website" where members == ["verb", "website", "key"]:
            guard let name = object["website"]?.string, FieldRule.websiteName(name) == nil,
                let bytes = object["key"]?.string.flatMap({ Base64URL.decode($0) }),
                let key = try? P256PublicKey(x963: bytes)
            else { throw .malformed("an issue-website without the name or the key of a website") }
            self = .issueWebsite(name: name, key: key)
        case "request" where members.subtracting(["tag"]) == ["verb", "device", "request", "renewal"]:
            self = try Self.commanded(object)
        case "crl" where members == ["verb", "revoked"]:
            guard let text = object["revoked"]?.string, let revoked = Self.revoked(text) else {
                throw .malformed("a crl whose list of certificates cannot be read")
            }
            self = .revocationList(revoked)
        case "unwrap", "issue", "issue-tagged", "issue-website", "request", "crl":
            throw .malformed("members that \(verb) does not allow")
        default: throw .malformed("an unknown verb")
        }
    }

    var message: [UInt8] {
        var object: JSONObject
        switch self {
        case .unwrap: object = ["verb": "unwrap"]
        case .issue(let device, let key):
            object = ["verb": "issue", "device": .string(device.text), "key": .string(Base64URL.encode(key.x963))]
        case .issueTagged(let device, let tag, let key):
            object = [
                "verb": "issue-tagged", "device": .string(device.text), "tag": .string(tag.text),
                "key": .string(Base64URL.encode(key.x963)),
            ]
        case .issueWebsite(let name, let key):
            object = [
                "verb": "issue-website", "website": .string(name), "key": .string(Base64URL.encode(key.x963)),
            ]
        case .request(let device, let tag, let request, let isRenewal):
            object = [
                "verb": "request", "device": .string(device.text), "request": .string(Base64URL.encode(request.der)),
                "renewal": .bool(isRenewal),
            ]
            object.set("tag", tag.map { .string($0.text) })
        case .revocationList(let revoked):
            object = ["verb": "crl", "revoked": .string(Self.text(revoked))]
        }
        return JSONWriter.write(object)
    }

    /// Reads a request for the command. The command would trust the name in it, so the name must be
    /// that of the phone or of its tag.
    private static func commanded(_ object: JSONObject) throws(KeyServiceFailure) -> KeyRequest {
        let tag = object["tag"]?.string.flatMap { CertificateTag($0[...]) }
        guard let device = object["device"]?.string.flatMap({ DeviceID($0) }),
            (object["tag"] == nil) == (tag == nil), let isRenewal = object["renewal"]?.bool,
            let der = object["request"]?.string.flatMap({ Base64URL.decode($0) }),
            let request = try? SigningRequest(der: der)
        else { throw .malformed("a request without the id, the tag or the certificate request of a phone") }
        guard CertificateOrder(of: device, tag: tag, key: request.key, request: request).isNamed else {
            throw .malformed("a request that does not ask for the name of its phone")
        }
        return .request(device: device, tag: tag, request: request, isRenewal: isRenewal)
    }

    /// Writes each certificate as its serial number, the seconds since 1970, and `h` if it is on
    /// hold: `4fa0:1795251887,4fa1:1795251890h`.
    private static func text(_ revoked: [RevokedCertificate]) -> String {
        revoked.map { "\($0.serial):\($0.at.seconds)\($0.isOnHold ? "h" : "")" }.joined(separator: ",")
    }

    private static func revoked(_ text: String) -> [RevokedCertificate]? {
        let items = text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: text.isEmpty)
        guard items.count <= RevocationList.mostEntries else { return nil }
        var revoked: [RevokedCertificate] = []
        revoked.reserveCapacity(items.count)
        for item in items {
            let parts = item.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
            guard parts.count == 2 else { return nil }
            let isOnHold = parts[1].last == UInt8(ascii: "h")
            let serial = String(decoding: parts[0], as: UTF8.self)
            // A serial number has at most 20 bytes (RFC 5280), and a year at most four digits.
            guard let number = Hex.decode(serial), (1...20).contains(number.count),
                let seconds = Int64(String(decoding: isOnHold ? parts[1].dropLast() : parts[1], as: UTF8.self)),
                (0..<253_402_300_800).contains(seconds)
            else { return nil }
            revoked.append(
                RevokedCertificate(serial: serial, at: Timestamp(seconds: seconds), isOnHold: isOnHold))
        }
        return revoked
    }
}

/// The answer to a request.
public enum KeyReply: Sendable {
    case keys(DataKeys)
    /// A certificate, in PEM.
    case certificate(String)
    /// A revocation list, in DER. It follows in a frame of raw bytes, because it may be long.
    case revocationList([UInt8])
    /// The output of the command. It follows in a frame of raw bytes.
    case output([UInt8])
    /// The command or its authority does not answer now.
    case away(String)
    /// The authority of the command wants to be asked again after this time.
    case later(String, Duration)
    case refused(String)

    /// The frames of the answer. Keys follow their list in a frame of raw bytes, because a string
    /// of them would stay in memory.
    var frames: [UInt8] {
        switch self {
        case .keys(let keys): Self.frames(keys)
        case .certificate(let pem): Self.frame(["certificate": .string(pem)])
        case .revocationList(let der): Self.frame(["crl": true]) + KeyFrame.encode(der)
        case .output(let bytes): Self.frame(["output": true]) + KeyFrame.encode(bytes)
        case .away(let reason): Self.frame(["unavailable": .string(reason)])
        case .later(let reason, let pause):
            Self.frame(["later": .string(reason), "seconds": .integer(pause.components.seconds)])
        case .refused(let reason): Self.frame(["error": .string(reason)])
        }
    }

    private static func frame(_ object: JSONObject) -> [UInt8] { KeyFrame.encode(JSONWriter.write(object)) }

    /// Writes the list and the keys. The array has its final size before the keys are appended,
    /// because an array that grows leaves copies in memory.
    private static func frames(_ keys: DataKeys) -> [UInt8] {
        let list = frame(keys.list)
        var frames: [UInt8] = []
        frames.reserveCapacity(list.count + KeyFrame.headerBytes + keys.count)
        frames.append(contentsOf: list)
        KeyFrame.appendHeader(keys.count, to: &frames)
        keys.appendBytes(to: &frames)
        return frames
    }

    /// Reads the first frame of an answer. Throws if it reports an error.
    static func object(_ message: [UInt8]) throws(KeyServiceFailure) -> JSONObject {
        guard let object = (try? JSONReader.read(message))?.object else {
            throw .malformed("the answer of the key service is not JSON")
        }
        if let reason = object["error"]?.string { throw .refused("the key service says: \(reason)") }
        if let reason = object["unavailable"]?.string { throw .unavailable("the key service says: \(reason)") }
        if let reason = object["later"]?.string {
            throw .later("the key service says: \(reason)", .seconds(object["seconds"]?.integer ?? 60))
        }
        return object
    }
}
