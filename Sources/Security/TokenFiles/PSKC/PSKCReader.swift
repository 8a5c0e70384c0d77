import Bytes
import World

/// Reads portable symmetric key containers (RFC 6030), the files that makers of tokens send. They
/// may be plain, or encrypted under a pre-shared key or a password.
///
/// Tested in `FigureTests.swift`, which has the examples of the RFC, and in
/// `BadPackageTests.swift`.
public enum PSKCReader {
    public static func read(
        _ bytes: [UInt8], key: PSKCKey? = nil, at now: Timestamp
    ) throws(SeedFaults) -> SeedFile {
        var container = PSKCContainer(PSKCEncryption(key), now: now)
        do throws(SeedFault) {
            try XMLReader.read(bytes) { root throws(SeedFault) in
                guard root.name == "KeyContainer" else {
                    throw root.fault(
                        "not a key container of RFC 6030 (urn:ietf:params:xml:ns:keyprov:pskc); "
                            + "convert files of its drafts first")
                }
                guard root.attributes["Version"] == "1.0" else {
                    throw root.fault("Version must be 1.0, but is \(root.attributes["Version"] ?? "missing")")
                }
            } child: { element throws(SeedFault) in
                try container.read(element)
            }
        } catch {
            throw SeedFaults([error], need: container.need)
        }
        return try container.collector.file(empty: "the file has no key for one-time codes")
    }
}

/// The state while one container is read.
private struct PSKCContainer {
    private var lock: PSKCEncryption
    private let now: Timestamp
    var collector = SeedCollector()
    /// The key or password that was missing; nil unless the reading ended because of it.
    private(set) var need: SeedFaults.Need?

    init(_ lock: PSKCEncryption, now: Timestamp) {
        self.lock = lock
        self.now = now
    }

    mutating func read(_ element: XMLElement) throws(SeedFault) {
        switch element.name {
        case "EncryptionKey": try lock.read(encryptionKey: element)
        case "MACMethod": try lock.read(macMethod: element)
        case "KeyPackage":
            for key in element.all("Key") { try read(key: key, of: element["DeviceInfo"]) }
        case "Signature":
            collector.remark("The file is signed; this command does not verify the signature. Use xmlsec1 --verify.")
        default: break
        }
    }

    private mutating func read(key: XMLElement, of device: XMLElement?) throws(SeedFault) {
        let reading = PSKCKeyReader(key: key, device: device, lock: lock, now: now)
        guard reading.algorithm != "pin" else {
            collector.remark("The file also contains PINs, which the tokens check themselves; they are not imported.")
            return
        }
        // If one value cannot be decrypted, none can, so the reading ends.
        if reading.isEncrypted, let missing = lock.missing {
            need = missing
            throw key.fault("the secrets are encrypted")
        }
        do throws(SeedFault) {
            collector.add(try reading.seed())
        } catch {
            collector.add(error)
        }
    }
}
