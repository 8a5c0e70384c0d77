import Bytes
import Crypto
import JSON
import Synchronization
import Testing
import TwoefayClient

@Suite struct ReceiptCheckTests {
    @Test func validReceiptIsAnApproval() async throws {
        let login = try Login()
        let spent = Mutex<[String]>([])
        let approval = try await login.check.approval(
            try login.signed(), to: login.asked, from: [login.phone], at: login.now
        ) {
            request in
            spent.withLock { $0.append(request) }
            return true
        }
        #expect(approval.device == login.device && approval.userVerification == .passcode)
        #expect(approval.signedAt == 1_795_249_354)
        #expect(spent.withLock { $0 } == ["r-7f3k"])
    }

    @Test func unsentFieldsMayBeMissing() async throws {
        var login = try Login()
        for name in ["service", "action", "details", "ip", "place", "user_agent"] { login.context[name] = nil }
        login.context["number_digits"] = 0
        login.claims["number"] = nil
        login.asked = LoginRecord(
            challenge: login.asked.challenge, username: "ada", request: "r-7f3k", number: nil,
            askedAt: login.asked.askedAt)
        #expect(await login.fault(try login.signed()) == .digits)
        login.leastDigits = 0
        #expect(await login.fault(try login.signed()) == nil)
    }

    /// A website that does not configure digits requires two. A relay cannot omit the number.
    @Test(arguments: [nil, "7", "07"] as [String?]) func twoDigitNumberIsRequiredByDefault(number: String?) async throws
    {
        var login = try Login()
        login.context["number_digits"] = .integer(Int64(number?.utf8.count ?? 0))
        login.claims["number"] = number.map { .string($0) }
        login.asked = LoginRecord(
            challenge: login.asked.challenge, username: "ada", request: "r-7f3k", number: number,
            service: login.asked.service, action: login.asked.action, details: login.asked.details, ip: login.asked.ip,
            userAgent: login.asked.userAgent, askedAt: login.asked.askedAt)
        let check = ReceiptCheck(origin: Login.origin, website: "shop", displayName: "The Shop")
        let answered = try login.signed()
        var fault: ReceiptFault?
        do throws(ReceiptFault) {
            _ = try await check.approval(answered, to: login.asked, from: [login.phone], at: login.now) { _ in true }
        } catch {
            fault = error
        }
        #expect(fault == (number == "07" ? nil : .digits))
    }

    /// A receipt of exactly ten minutes is not too old.
    @Test(arguments: [(-5, false), (0, false), (600, false), (601, true), (86_400, true)] as [(Int64, Bool)])
    func oldReceiptIsRefused(age: Int64, isTooOld: Bool) async throws {
        var login = try Login()
        login.now = login.asked.askedAt + age
        #expect(await login.fault(try login.signed()) == (isTooOld ? .age : nil))
    }

    @Test(arguments: [0, 2, 3]) func requiredDigitsAreChecked(digits: Int) async throws {
        var login = try Login()
        login.leastDigits = digits
        #expect(await login.fault(try login.signed()) == (digits > 2 ? .digits : nil))
    }

    /// Some clients send an empty list in place of none.
    @Test func emptyDetailsEqualNoDetails() async throws {
        var login = try Login()
        login.context["details"] = []
        login.asked.details = []
        #expect(await login.fault(try login.signed()) == nil)
    }

    @Test func receiptIsAcceptedOncePerRequest() async throws {
        let login = try Login()
        let open = Mutex<Set<String>>(["r-7f3k"])
        let receipts = [try login.signed(), try login.signed()]
        var faults: [ReceiptFault?] = []
        for receipt in [receipts[0], receipts[0], receipts[1]] {
            do throws(ReceiptFault) {
                _ = try await login.check.approval(receipt, to: login.asked, from: [login.phone], at: login.now) {
                    request in
                    open.withLock { $0.remove(request) != nil }
                }
                faults.append(nil)
            } catch {
                faults.append(error)
            }
        }
        #expect(faults == [nil, .requestUsed, .requestUsed])
    }

    @Test func refusedReceiptConsumesNothing() async throws {
        var login = try Login()
        login.context["ip"] = "198.51.100.1"
        let refused = try login.signed()
        await #expect(throws: ReceiptFault.field("ip")) {
            try await login.check.approval(refused, to: login.asked, from: [login.phone], at: login.now) { _ in
                Issue.record("spent")
                return true
            }
        }
    }

    @Test(arguments: UserVerification.allCases, UserVerification.allCases)
    func requiredUserVerificationIsChecked(made: UserVerification, wanted: UserVerification) async throws {
        var login = try Login()
        login.claims["uv"] = .string(made.rawValue)
        let check = ReceiptCheck(origin: Login.origin, website: "shop", leastVerification: wanted)
        let order: [UserVerification] = [.none, .passcode, .biometric]
        let isEnough = try #require(order.firstIndex(of: made)) >= (try #require(order.firstIndex(of: wanted)))
        let answered = try login.signed()
        do throws(ReceiptFault) {
            let approval = try await check.approval(answered, to: login.asked, from: [login.phone], at: login.now) {
                _ in true
            }
            #expect(isEnough && approval.userVerification == made)
        } catch {
            #expect(!isEnough && error == .userVerification)
        }
    }

    @Test(
        arguments: [
            (60, 60, true), (61, 60, false), (nil, 60, false), (-1, 60, false), (90_000, nil, true), (nil, nil, true),
        ] as [(Int64?, Int64?, Bool)])
    func ageOfTheVerificationIsChecked(made: Int64?, wanted: Int64?, isEnough: Bool) async throws {
        var login = try Login()
        login.claims["uv"] = "passcode"
        if let made { login.claims["uv_age"] = .integer(made) }
        let check = ReceiptCheck(origin: Login.origin, website: "shop", longestVerificationAge: wanted)
        func fault(_ login: Login) async throws -> ReceiptFault? {
            let answered = try login.signed()
            do throws(ReceiptFault) {
                let approval = try await check.approval(answered, to: login.asked, from: [login.phone], at: login.now) {
                    _ in true
                }
                #expect(approval.userVerificationAge == made)
                return nil
            } catch {
                return error
            }
        }
        #expect(try await fault(login) == (isEnough ? nil : .userVerificationAge))
        // Without a verification, its age counts for nothing.
        login.claims["uv"] = "none"
        #expect(try await fault(login) == (wanted == nil ? nil : .userVerificationAge))
        login.claims["uv_age"] = "60"
        #expect(try await fault(login) == .claims)
    }

    @Test("Only a signed success of /auth is verified") func onlyASignedSuccessIsChecked() throws {
        let whole: JSONObject = [
            "login": "success", "proof": "signed", "device": "d", "receipt": "r", "context": "c", "factor": "push",
        ]
        #expect(try LoginEvidence(whole) == LoginEvidence(device: "d", receipt: "r", context: "c"))
        for login in ["failure", "wait", ""] {
            var other = whole
            other["login"] = .string(login)
            #expect(throws: ReceiptFault.notSuccessful) { try LoginEvidence(other) }
        }
        for proof in ["code", "certificate", "website"] {
            var other = whole
            other["proof"] = .string(proof)
            #expect(throws: ReceiptFault.notSigned(proof: proof)) { try LoginEvidence(other) }
        }
        for name in ["device", "receipt", "context"] {
            var other = whole
            other[name] = nil
            #expect(throws: ReceiptFault.incomplete) { try LoginEvidence(other) }
        }
    }

    /// Each ECDSA signature has two valid forms. The request is used once, so the other form is no
    /// second approval.
    @Test func bothSignatureFormsAreAccepted() async throws {
        let login = try Login()
        let answered = try login.signed()
        let parts = answered.receipt.split(separator: ".")
        let signature = try #require(Base64URL.decode(parts[2]))
        let turned = Base64URL.encode(signature[..<32] + (try negated(signature[32...])))
        let other = LoginEvidence(
            device: answered.device, receipt: "\(parts[0]).\(parts[1]).\(turned)", context: answered.context)
        #expect(other != answered)
        #expect(await login.fault(other) == nil)
    }

    /// Returns n - s, by subtraction digit by digit.
    private func negated(_ s: ArraySlice<UInt8>) throws -> [UInt8] {
        let order = try #require(Hex.decode("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"))
        var borrow = 0
        var digits: [UInt8] = []
        for (a, b) in zip(order, s).reversed() {
            let difference = Int(a) - Int(b) - borrow
            borrow = difference < 0 ? 1 : 0
            digits.append(UInt8(truncatingIfNeeded: difference))
        }
        return digits.reversed()
    }
}
