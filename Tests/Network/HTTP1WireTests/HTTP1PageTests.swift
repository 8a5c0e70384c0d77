import FuzzTargets
import HTTP
import TestSupport
import Testing

/// The table of docs/internals/http1.md, compared with the cases.
struct HTTP1PageTests {
    @Test func pageHasEveryCase() throws {
        let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
        let page = try TextFile.read("\(root)/docs/internals/http1.md")
        let table = HTTP1Case.all.map(\.row).joined(separator: "\n")
        #expect(page.contains(table + "\n"), "the table of docs/internals/http1.md must be:\n\(table)")
        for fault in RequestFault.allCases where fault.status == 400 {
            #expect(page.contains("`\(fault.rawValue)`"), "\(fault.rawValue)")
        }
    }
}
