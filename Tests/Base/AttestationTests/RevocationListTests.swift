import Attestation
import Crypto
import JSON
import Testing
import World

@Suite struct RevocationListTests {
    private let fetchedAt = Timestamp(seconds: 1_790_000_000)

    private func read(_ json: String) throws(RevocationList.Fault) -> RevocationList {
        try RevocationList(json: Array(json.utf8), fetchedAt: fetchedAt)
    }

    @Test func publishedListIsRead() throws {
        // `status.json` of google/android-key-attestation, shortened.
        let list = try read(
            """
            {"entries": {
              "6681152659205225093": {"status": "REVOKED", "reason": "KEY_COMPROMISE"},
              "8350192447815228107": {"status": "REVOKED", "reason": "KEY_COMPROMISE"},
              "cc66e9a93713b6e643b26c15879786f7": {
                "status": "SUSPENDED", "reason": "KEY_COMPROMISE", "comment": "Entry for testing only"}
            }}
            """)
        #expect(list.count == 3)
        #expect(list.fetchedAt == fetchedAt)
        let other = try Vectors.chain("tegu-36")[1]
        #expect(!list.contains(other))
    }

    @Test func certificateOfAPublishedChainIsFound() throws {
        // This certificate's serial number begins with a zero, which the list leaves out.
        let intermediate = try Vectors.chain("xperia-33")[2]
        #expect(intermediate.serial == "03882667606589968575")
        #expect(try read(#"{"entries":{"3882667606589968575":{"status":"REVOKED"}}}"#).contains(intermediate))
    }

    @Test(
        "Texts of another form are refused",
        arguments: [
            "{}", "[]", #"{"entries":[]}"#, #"{"entries":{"":{"status":"REVOKED"}}}"#,
            #"{"entries":{"xyz":{"status":"REVOKED"}}}"#, #"{"entries":{"abc":{}}}"#, #"{"entries":{"abc":"REVOKED"}}"#,
        ])
    func otherFormsAreRefused(json: String) {
        #expect {
            try read(json)
        } throws: { error in
            if case RevocationList.Fault.form = error { true } else { false }
        }
    }

    @Test func truncatedListIsRefused() {
        #expect(throws: RevocationList.Fault.json(JSONError(offset: 12, kind: .incomplete))) {
            try read(#"{"entries":{"#)
        }
    }

    @Test func listOfManyEntriesIsRead() throws {
        let entries = (0..<50_000).map { #""\#(String($0 + 0x1000_0000, radix: 16))":{"status":"REVOKED"}"# }
        #expect(try read(#"{"entries":{\#(entries.joined(separator: ","))}}"#).count == 50_000)
    }
}
