import Bytes
import Directory
import DirectorySources
import Domain
import JSON
import YAML

/// Reads the settings of one source of users. It reports all problems of the source at once.
struct DirectorySettingsReader: SettingsItemReader {
    /// The kinds of sources, as `kind` names them.
    enum Kind: String, CaseIterable {
        case activeDirectory = "active-directory"
        case ldap, csv

        /// The settings of this kind besides those of all kinds.
        var settings: [String] {
            switch self {
            case .activeDirectory, .ldap:
                ["url", "ca", "insecure", "bind_dn", "password_file", "base", "filter", "page_size", "timeout"]
            case .csv: ["file"]
            }
        }

        var mapping: DirectoryMapping {
            switch self {
            case .activeDirectory: .activeDirectory
            case .ldap: .standard
            case .csv: .columns
            }
        }

        /// The filter for people. Accounts that are disabled in Active Directory count as gone.
        var filter: String {
            switch self {
            case .activeDirectory:
                "(&(objectCategory=person)(objectClass=user)(!(userAccountControl:1.2.840.113556.1.4.803:=2)))"
            case .ldap, .csv: "(objectClass=inetOrgPerson)"
            }
        }
    }

    private static let common = [
        "name", "website", "kind", "attributes", "groups", "adopt", "interval", "disable_limit", "max_entries",
        "country", "lowercase",
    ]

    let node: YAMLNode
    var problems: [(place: YAMLPosition, message: String)] = []
    private(set) var label = "a directory"

    init(_ node: YAMLNode) { self.node = node }

    mutating func read() -> Settings.DirectorySettings? {
        guard let members = node.mapping else {
            printError(node.place, "each directory must contain keys with values")
            return nil
        }
        let name = text("name")
        if let name { label = "directory \(name)" }
        guard let kind = text("kind").flatMap(Kind.init(rawValue:)) else {
            let kinds = Kind.allCases.map(\.rawValue)
            let near = text("kind").flatMap { Spelling.nearest(to: $0, among: kinds) }
            printError(
                place("kind"),
                "\(label): kind must be one of \(kinds.joined(separator: ", "))"
                    + (near.map { "; did you mean \($0)?" } ?? ""))
            return nil
        }
        refuseUnknown(members, among: Self.common + kind.settings, "a setting of kind \(kind.rawValue)")
        if name == nil { printError(node.place, "a directory has no name") }
        if let name, !Self.isName(name) {
            printError(place("name"), "name must be 1 to 32 letters, digits, dots, dashes and underscores")
        }
        require("website")
        let website = text("website")
        if let website, let fault = FieldRule.websiteName(website) {
            printError(place("website"), "\(label): website \(fault)")
        }
        let form = kind == .csv ? csv() : ldap(kind)
        guard let form else { return nil }
        var directory = Settings.DirectorySettings(
            name: name ?? "", website: website ?? "", kind: form, mapping: mapping(kind.mapping))
        directory.groups = groups(kind)
        directory.adopts = flag("adopt")
        directory.interval = interval()
        directory.disableLimit = integer("disable_limit", 0...100) ?? directory.disableLimit
        directory.mostEntries = integer("max_entries", 1...1_000_000) ?? directory.mostEntries
        return problems.isEmpty ? directory : nil
    }

    private mutating func refuseUnknown(_ members: [YAMLNode.Member], among known: [String], _ what: String) {
        for member in members where !known.contains(member.name) {
            let near = Spelling.nearest(to: member.name, among: known).map { "did you mean \($0)?" }
            printError(
                member.place,
                "\(label): \(member.name) is not \(what); \(near ?? "the settings are \(known.joined(separator: ", "))")"
            )
        }
    }

    private mutating func interval() -> Int {
        if text("interval") == "none" { return 0 }
        guard let node = node["interval"] else { return 3600 }
        if let number = node.integer, (1...604_800).contains(number) { return Int(number) }
        printError(node.place, "\(label): interval must be none or a whole number of seconds from 1 to 604800")
        return 0
    }

    // MARK: Kinds

    private mutating func csv() -> Settings.DirectorySettings.Kind? {
        require("file")
        return file("file").map { .csv($0) }
    }

    private mutating func ldap(_ kind: Kind) -> Settings.DirectorySettings.Kind? {
        require("url", "base")
        guard let url = text("url"), let base = text("base") else { return nil }
        let urls = url.split(separator: " ").map(String.init)
        let isPlain = flag("insecure")
        for url in urls {
            if let fault = LDAPServer.fault(of: url, isPlain: isPlain) {
                printError(place("url"), "\(label): url \(fault)")
            }
        }
        let filter = text("filter") ?? kind.filter
        if !Self.isFilter(filter) { printError(place("filter"), "\(label): filter must be in parentheses") }
        var ldap = Settings.DirectorySettings.LDAPSettings(urls: urls, base: base, filter: filter)
        ldap.authority = file("ca")
        ldap.isPlain = isPlain
        ldap.account = text("bind_dn")
        ldap.passwordFile = file("password_file")
        if (ldap.account == nil) != (ldap.passwordFile == nil) {
            printError(node.place, "\(label): bind_dn and password_file must be set together")
        }
        ldap.pageSize = integer("page_size", 1...1000) ?? ldap.pageSize
        ldap.timeout = integer("timeout", 1...300) ?? ldap.timeout
        return .ldap(ldap)
    }

    /// Whether the text can be one complete filter. Otherwise it could close the filter around it.
    static func isFilter(_ text: String) -> Bool {
        var depth = 0
        for (index, byte) in text.utf8.enumerated() {
            if byte == UInt8(ascii: "(") { depth += 1 }
            if byte == UInt8(ascii: ")") { depth -= 1 }
            if depth == 0, index < text.utf8.count - 1 { return false }
        }
        return depth == 0 && text.utf8.count > 2
    }

    // MARK: Attributes

    private mutating func mapping(_ usual: DirectoryMapping) -> DirectoryMapping {
        var mapping = usual
        mapping.lowercases = flag("lowercase")
        mapping.country = text("country")
        if let country = mapping.country, FieldRule.phone(country + "1234567") != nil {
            printError(place("country"), "\(label): country must be a country code, such as \"+49\"")
        }
        guard let node = node["attributes"] else { return mapping }
        guard let members = node.mapping else {
            printError(node.place, "\(label): attributes must contain keys with values")
            return mapping
        }
        let known = ["id", "username", "email", "phone", "display_name", "language"]
        refuseUnknown(members, among: known, "a value of a user")
        for member in members {
            let name = member.value.isNull ? nil : member.value.string
            guard member.value.isNull || name.map(Self.isAttribute) == true else {
                printError(
                    member.value.place, "\(label): \(member.name) must be the name of an attribute, or ~ for none")
                continue
            }
            switch member.name {
            case "email": mapping.email = name
            case "phone": mapping.phone = name
            case "display_name": mapping.displayName = name
            case "language": mapping.language = name
            default:
                guard let name else {
                    printError(member.value.place, "\(label): \(member.name) is required")
                    continue
                }
                if member.name == "id" { mapping.id = name } else { mapping.username = name }
            }
        }
        return mapping
    }

    private static func isAttribute(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x61...0x7a).contains($0 | 0x20) || "-._".utf8.contains($0)
            }
    }

    // MARK: Groups

    private mutating func groups(_ kind: Kind) -> [Settings.DirectorySettings.Group] {
        list("groups").compactMap { item in
            guard let members = item.mapping else {
                printError(item.place, "\(label): each group must contain keys with values")
                return nil
            }
            refuseUnknown(
                members, among: kind == .csv ? ["group", "policy"] : ["group", "filter", "policy"],
                "a setting of a group")
            let (group, filter) = (item["group"]?.string, item["filter"]?.string)
            guard (group == nil) != (filter == nil) else {
                printError(item.place, "\(label): a group needs either group or filter")
                return nil
            }
            if let filter, !Self.isFilter(filter) {
                printError(item["filter"]?.place ?? item.place, "\(label): filter must be in parentheses")
            }
            return policy(item).map { .init(group: group, filter: filter, policy: $0) }
        }
    }

    /// Reads the policy of a group. Returns JSON as the store keeps it.
    private mutating func policy(_ item: YAMLNode) -> String? {
        guard let members = item["policy"]?.mapping, !members.isEmpty else {
            printError(item["policy"]?.place ?? item.place, "\(label): policy must contain keys with values")
            return nil
        }
        var object = JSONObject()
        var policy = Policy()
        for key in Policy.groupKeys {
            let name = SettingsKeys.underscored(key)
            guard let member = members.first(where: { $0.name == name }) else { continue }
            do throws(Policy.Fault) {
                try policy.set(key, to: member.value.string ?? "")
                object.set(key, .string(policy.text(of: key) ?? ""))
            } catch {
                printError(member.value.place, "\(label): \(error.message)")
            }
        }
        refuseUnknown(members, among: Policy.groupKeys.map(SettingsKeys.underscored), "a policy of a group")
        return String(decoding: JSONWriter.write(.object(object)), as: UTF8.self)
    }
}
