import TestSupport
import Testing

@testable import API

/// The page docs/websites/api.md, compared with the routes and the problems.
struct APIPageTests {
    private let page: String

    init() throws {
        let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
        page = try TextFile.read("\(root)/docs/websites/api.md")
    }

    @Test func apiPageNamesEveryRouteAndParameter() throws {
        let rows = page.split(separator: "\n").filter { $0.hasPrefix("| `") }
        for route in API.table.routes {
            let name = "`\(route.method) \(route.path.text)`"
            let row = try #require(rows.first { $0.hasPrefix("| \(name) |") }, "\(name) is not in docs/websites/api.md")
            let original = page.split(separator: "\n").filter { !$0.hasPrefix("|") }.joined(separator: "\n")
            for form in route.forms {
                for parameter in form.parameters {
                    let named =
                        row.contains("`\(parameter.name)`") || (form.isOriginal && original.contains(parameter.name))
                    #expect(named, "\(name) takes \(parameter.name)")
                }
            }
        }
        for row in rows where row.contains("| anyone |") || row.contains("| website |") || row.contains("| phone |") {
            let name = row.split(separator: "`")[1]
            #expect(API.table.routes.contains { "\($0.method) \($0.path.text)" == name }, "\(name) is not a route")
        }
    }

    @Test func apiPageNamesEveryProblemCodeAndStatus() {
        for code in Problem.Code.allCases {
            #expect(page.contains("| `\(code.rawValue)` | \(code.status) |"), "\(code.rawValue)")
        }
    }
}
