import Bytes
import Crypto
import Domain
import JSON

/// A request to the key service. No request signs bytes that the caller chooses, and none returns
/// the master key or the key of an authority.
public enum KeyRequest: Sendable, Equatable {
    /// Asks for the keys that are derived from the master key.
    case unwrap
    /// Asks for a certificate for the key of a phone.
    case issue(device: DeviceID, key: P256PublicKey)

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
        case "unwrap", "issue": throw .malformed("members that \(verb) does not allow")
        default: throw .malformed("an unknown verb")
        }
    }

    var message: [UInt8] {
        let object: JSONObject
        switch self {
        case .unwrap: object = ["verb": "unwrap"]
        case .issue(let device, let key):
            object = ["verb": "issue", "device": .string(device.text), "key": .string(Base64URL.encode(key.x963))]
        }
        return JSONWriter.write(object)
    }
}

/// The answer to a request.
public enum KeyReply: Sendable {
    case keys(DataKeys)
    /// A certificate, in PEM.
    case certificate(String)
    case refused(String)

    /// The frames of the answer. Keys follow their list in a frame of raw bytes, because a string
    /// of them would stay in memory.
    var frames: [UInt8] {
        switch self {
        case .keys(let keys): Self.frames(keys)
        case .certificate(let pem): Self.frame(["certificate": .string(pem)])
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
        return object
    }
}
