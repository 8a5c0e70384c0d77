import Bytes
import Crypto
import Domain
import EventLoop
import Glibc
import Relay
import TestSupport
import Testing
import World

@testable import KeyService

/// The key process and its client over a real socket.
@Suite(.timeLimit(.minutes(2)), .mayBlock) struct KeyServerTests {
    @Test func keyServerReturnsKeysAndCertificates() async throws {
        let served = try await ServedKeys()
        let keys = try served.client.unwrap(waiting: .zero)
        let sealed = try keys.sealer().seal([1, 2, 3], associated: [])
        #expect(try served.keys.sealer().open(sealed, associated: []) == [1, 2, 3])
        let key = try P256PrivateKey.generate().publicKey
        let device = try #require(ServedKeys.device())
        let deadline = served.time.instant() + .seconds(60)
        let pem = try served.client.issue(for: key, of: device, until: deadline)
        let certificate = try Certificate(pem: Array(pem.utf8))
        #expect(try certificate.publicKey() == key)
        #expect(certificate.uris == ["twoefay:device:\(device.text)"])
        for (text, uri) in [("sign", "signer:\(device.text):sign"), ("old:raw", "raw-signer:\(device.text):old")] {
            let tag = try #require(CertificateTag(text[...]))
            let signer = try served.client.issue(for: key, tag: tag, of: device, until: deadline)
            let tagged = try Certificate(pem: Array(signer.utf8))
            #expect(try tagged.publicKey() == key)
            #expect(tagged.uris == ["twoefay:\(uri)"])
        }
        #expect(TemporaryDirectory.mode(of: served.path) == 0o600)
        await served.stop()
        #expect(access(served.path, F_OK) != 0)
    }

    @Test func keyServerSignsRevocationLists() async throws {
        let served = try await ServedKeys()
        let revoked = [RevokedCertificate(serial: "0102ff", at: served.time.now(), isOnHold: true)]
        let deadline = served.time.instant() + .seconds(60)
        let list = try served.client.revocationList(revoked, until: deadline)
        var reader = DERReader(list)
        var outer = try reader.open(.sequence)
        let signed = try outer.content(.sequence)
        _ = try outer.content(.sequence)
        let signature = try outer.next().content.dropFirst()
        let (high, low) = (UInt8(signed.count >> 8), UInt8(signed.count & 0xff))
        let header: [UInt8] = [0x30] + (signed.count < 128 ? [] : high == 0 ? [0x81] : [0x82, high]) + [low]
        #expect(
            served.authority.key.publicKey.verify(derSignature: Array(signature), over: header + Array(signed)))
        let certificates = try RemoteCertificates(served.client, time: served.time)
        defer { certificates.close() }
        #expect(try await certificates.revocationList([], at: served.time.now()).count < list.count)
        let long = (0..<RevocationList.mostEntries).map { number in
            let serial = Hex.encode([0xff, UInt8(number >> 8), UInt8(number & 0xff)])
            return RevokedCertificate(serial: serial, at: served.time.now())
        }
        #expect(try await certificates.revocationList(long, at: served.time.now()).count > 16 * long.count)
        await served.stop()
    }

    /// Named, because a report of the tests would print up to four megabytes.
    enum Hostile: String, CaseIterable, Sendable {
        case endless, tooLong, empty, notJSON, wrongMembers, notText, longest, trailing

        var bytes: [UInt8] {
            switch self {
            case .endless: [0xff, 0xff, 0xff, 0xff, 1, 2]
            case .tooLong: [0, 0x40, 0, 1]
            case .empty: KeyFrame.encode([])
            case .notJSON: KeyFrame.encode(Array("not json".utf8))
            case .wrongMembers: KeyFrame.encode(Array(#"{"verb":"sign","digest":"AA"}"#.utf8))
            case .notText: KeyFrame.encode([0xff, 0xfe])
            case .longest: KeyFrame.encode([UInt8](repeating: UInt8(ascii: "["), count: KeyFrame.limit))
            case .trailing: KeyFrame.encode(KeyRequest.unwrap.message) + [0]
            }
        }
    }

    @Test(arguments: Hostile.allCases) func hostilePeerEndsOnlyItsOwnConnection(_ hostile: Hostile) async throws {
        let served = try await ServedKeys()
        let peer = try RawPeer(served.path)
        peer.send(hostile.bytes)
        // The answer is an error or empty, and never contains a key.
        let answer = peer.rest()
        #expect(answer.isEmpty || String(decoding: answer, as: UTF8.self).contains(#"{"error":"#))
        #expect(served.sink.lines.contains { $0.contains("event=keys.malformed") || $0.contains("event=keys.dropped") })
        #expect(try served.client.unwrap(waiting: .zero).sealing.count == 2)
        await served.stop()
    }

    @Test(arguments: [[], [0], [0, 0, 0, 9, 1, 2]] as [[UInt8]])
    func silentPeerIsDropped(_ bytes: [UInt8]) async throws {
        var limits = KeyServer.Limits()
        limits.request = .milliseconds(20)
        let served = try await ServedKeys(limits: limits)
        let peer = try RawPeer(served.path)
        peer.send(bytes)
        #expect(peer.rest().isEmpty)
        await served.sink.lines(of: "keys.dropped", count: 1)
        await served.stop()
    }

    @Test func peersBeyondTheLimitWait() async throws {
        var limits = KeyServer.Limits()
        limits.connections = 2
        limits.request = .seconds(600)
        let served = try await ServedKeys(limits: limits)
        var silent = [try RawPeer(served.path), try RawPeer(served.path)]
        let waiting = try RawPeer(served.path)
        waiting.send(KeyFrame.encode(KeyRequest.unwrap.message))
        silent.removeLast()
        #expect(!waiting.rest().isEmpty)
        #expect(silent.count == 1)
        await served.stop()
    }

    @Test func otherUserIsRefused() async throws {
        let served = try await ServedKeys(users: [getuid() + 1])
        let peer = try RawPeer(served.path)
        #expect(peer.rest().isEmpty)
        await served.sink.lines(of: "keys.stranger", count: 1)
        let refused = #expect(throws: KeyServiceFailure.self) { try served.client.unwrap(waiting: .zero) }
        #expect(refused?.description.contains("closed the connection") == true)
        await served.stop()
    }

    @Test func silentKeyServiceTimesOut() async throws {
        let directory = try TemporaryDirectory()
        let listener = try KeyListener(path: directory("socket"), isShared: false)
        defer { listener.close() }
        let time = SystemTime()
        let certificates = try RemoteCertificates(KeyServiceClient(path: listener.path, time: time), time: time)
        defer { certificates.close() }
        let (key, device) = (try P256PrivateKey.generate().publicKey, try #require(ServedKeys.device()))
        let client = KeyServiceClient(path: listener.path, time: time)
        #expect(client.fault == nil)
        #expect(throws: KeyServiceFailure.unavailable("the key service did not answer in time")) {
            try client.issue(for: key, of: device, until: time.instant() + .milliseconds(20))
        }
    }

    @Test func missingKeyServiceIsUnavailable() async throws {
        let directory = try TemporaryDirectory()
        let client = KeyServiceClient(path: directory("socket"))
        #expect(client.fault?.contains("cannot be reached") == true)
        let certificates = try RemoteCertificates(client, time: SystemTime())
        defer { certificates.close() }
        let (key, device) = (try P256PrivateKey.generate().publicKey, try #require(ServedKeys.device()))
        do throws(CertificateFailure) {
            _ = try await certificates.certificate(CertificateOrder(of: device, key: key), at: SystemTime().now())
            Issue.record("there is no service")
        } catch {
            guard case .unavailable = error else {
                Issue.record("\(error)")
                return
            }
        }
    }

    @Test func certificateForAnotherKeyIsRefused() async throws {
        let authority = try CertificateAuthority.create(commonName: "phones", days: 1, at: SystemTime().now())
        let other = try P256PrivateKey.generate().publicKey
        let served = try await ServedKeys { device, _ in
            (try? authority.phoneCertificate(for: other, of: device, at: SystemTime().now())).map { .certificate($0) }
                ?? .refused("failed")
        }
        let (key, device) = (try P256PrivateKey.generate().publicKey, try #require(ServedKeys.device()))
        let deadline = served.time.instant() + .seconds(60)
        #expect(throws: KeyServiceFailure.malformed("the answer of the key service has no certificate for this key")) {
            try served.client.issue(for: key, of: device, until: deadline)
        }
        await served.stop()
    }

    @Test func staleSocketIsReplacedButNotALiveOne() async throws {
        let directory = try TemporaryDirectory()
        let path = directory("socket")
        let first = try KeyListener(path: path, isShared: true)
        #expect(TemporaryDirectory.mode(of: path) == 0o660)
        #expect(throws: SystemFailure.self) { try KeyListener(path: path, isShared: false) }
        // A killed process leaves the socket file behind in this state.
        close(first.fd)
        try KeyListener(path: path, isShared: false).close()
        try TextFile.write("a file", to: path)
        #expect(throws: SystemFailure.self) { try KeyListener(path: path, isShared: false) }
        #expect(try TextFile.read(path) == "a file")
        let long = directory(String(repeating: "x", count: 108))
        #expect(throws: SystemFailure("bind", ENAMETOOLONG)) { try KeyListener(path: long, isShared: false) }
    }
}
