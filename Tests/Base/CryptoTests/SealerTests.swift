import Bytes
import Crypto
import Testing
import World

@Suite struct SealerTests {
    struct Case: Sendable {
        let key: String
        let nonce: String
        let plaintext: String
        let authenticated: String
        let ciphertext: String
        let tag: String
    }

    static let nist = [
        Case(
            key: String(repeating: "0", count: 64), nonce: String(repeating: "0", count: 24), plaintext: "",
            authenticated: "", ciphertext: "", tag: "530f8afbc74536b9a963b4f1c4cb738b"),
        Case(
            key: String(repeating: "0", count: 64), nonce: String(repeating: "0", count: 24),
            plaintext: String(repeating: "0", count: 32), authenticated: "",
            ciphertext: "cea7403d4d606b6e074ec5d3baf39d18", tag: "d0d1c8a799996bf0265b98b5d48ab919"),
        Case(
            key: "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
            nonce: "cafebabefacedbaddecaf888",
            plaintext: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
            authenticated: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
            ciphertext: "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
                + "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
            tag: "76fc6ece0f4e1768cddf8853bb2d551b"),
    ]

    @Test("Test cases 13, 14 and 16 of the GCM submission to NIST", arguments: nist) func gcmMatchesNISTVectors(
        example: Case
    ) throws {
        let key = Secret(try #require(Hex.decode(example.key)))
        let nonce = try #require(Hex.decode(example.nonce))
        let plaintext = try #require(Hex.decode(example.plaintext))
        let authenticated = try #require(Hex.decode(example.authenticated))
        let sealed = try GCM.seal(plaintext, key: key, nonce: nonce, authenticated: authenticated)
        #expect(Hex.encode(sealed.ciphertext) == example.ciphertext)
        #expect(Hex.encode(sealed.tag) == example.tag)
        #expect(
            GCM.open(sealed.ciphertext, tag: sealed.tag, key: key, nonce: nonce, authenticated: authenticated)
                == plaintext)
    }

    private let old = Sealer.Key(id: "2025", key: Secret(Array(repeating: 1, count: 32)))
    private let new = Sealer.Key(id: "2026", key: Secret(Array(repeating: 2, count: 32)))

    @Test(arguments: [0, 1, 15, 16, 17, 20, 1000]) func sealedBytesOpen(length: Int) throws {
        let sealer = try Sealer(keys: [new])
        let plaintext = SystemRandomness().bytes(length)
        let sealed = try sealer.seal(plaintext, associated: [7])
        #expect(sealed.count == length + 2 + 4 + 12 + 16)
        #expect(try sealer.open(sealed, associated: [7]) == plaintext)
        #expect(try sealer.seal(plaintext, associated: [7]) != sealed)
    }

    @Test func keyIsFoundByItsID() throws {
        let sealed = try Sealer(keys: [old]).seal([1, 2, 3], associated: [])
        let sealer = try Sealer(keys: [new, old])
        #expect(try sealer.open(sealed, associated: []) == [1, 2, 3])
        #expect(try sealer.isStale(sealed))
        #expect(try !sealer.isStale(try sealer.seal([], associated: [])))
        #expect(throws: SealFailure.unknownKey("2025")) { try Sealer(keys: [new]).open(sealed, associated: []) }
        let impostor = Sealer.Key(id: "2025", key: new.key)
        #expect(throws: SealFailure.tampered) { try Sealer(keys: [impostor]).open(sealed, associated: []) }
    }

    @Test func wrongAssociatedDataDoesNotOpen() throws {
        let sealer = try Sealer(keys: [new])
        let sealed = try sealer.seal([1, 2, 3], associated: Array("user 1".utf8))
        #expect(throws: SealFailure.tampered) { try sealer.open(sealed, associated: Array("user 2".utf8)) }
        #expect(throws: SealFailure.tampered) { try sealer.open(sealed, associated: []) }
    }

    @Test("Any changed bit and any missing or added byte is detected") func changedSealIsRefused() throws {
        let sealer = try Sealer(keys: [new, old])
        let sealed = try sealer.seal([1, 2, 3], associated: [9])
        for bit in 0..<sealed.count * 8 {
            var changed = sealed
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(throws: SealFailure.self) { try sealer.open(changed, associated: [9]) }
        }
        for count in 0..<sealed.count {
            #expect(throws: SealFailure.self) { try sealer.open(Array(sealed[..<count]), associated: [9]) }
        }
        #expect(throws: SealFailure.tampered) { try sealer.open(sealed + [0], associated: [9]) }
        #expect(throws: SealFailure.malformed) { try sealer.open([], associated: [9]) }
        #expect(throws: SealFailure.malformed) { try sealer.isStale([2, 0]) }
    }

    @Test func invalidKeysAreRefused() {
        #expect(throws: CryptoFailure.self) { try Sealer(keys: []) }
        #expect(throws: CryptoFailure.self) { try Sealer(keys: [.init(id: "a", key: Secret([1, 2, 3]))]) }
        #expect(throws: CryptoFailure.self) { try Sealer(keys: [.init(id: "", key: Secret(Array(1...32)))]) }
        #expect(throws: CryptoFailure.self) { try Sealer(keys: [old, .init(id: "2025", key: new.key)]) }
        let long = String(repeating: "x", count: 65)
        #expect(throws: CryptoFailure.self) { try Sealer(keys: [.init(id: long, key: Secret(Array(1...32)))]) }
    }
}
